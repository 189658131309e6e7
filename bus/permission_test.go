package bus

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/lease"
)

// as is the connection of a user of a configuration.
func as(user string) ConnectConfig { return ConnectConfig{User: user, Password: "p"} }

// TestForbiddenIsToldNotTimedOut is B154, for who asks.
func TestForbiddenIsToldNotTimedOut(t *testing.T) {
	url := configured(t, `authorization { users = [
		{ user: coordinator, password: p }
		{ user: acme, password: p, permissions: {
			publish: "ration.v1.default.p.*.*.acme", subscribe: ["_INBOX.>", "ration.v1.default.recall.*"] } }
		{ user: deaf, password: p, permissions: { publish: ">", subscribe: "elsewhere" } }
		{ user: own, password: p, permissions: { publish: "ration.>", subscribe: "_INBOX_own.>" } }
	] }`)
	serve(t, dialed(t, url, as("coordinator")), ServeConfig{Lessor: granting()})

	acme := NewClient(dialed(t, url, as("acme")), ClientConfig{})
	_, err := acme.Acquire(bounded(t), request(1, "acme/prod"))
	require.NoError(t, err)
	_, err = acme.Acquire(bounded(t), request(2, "other/prod"))
	require.ErrorIs(t, err, ErrPermission)
	require.ErrorIs(t, err, lease.ErrForbidden)
	require.ErrorContains(t, err, `may not publish to "ration.v1.default.p.0.acquire.other"`)
	_, err = acme.Acquire(bounded(t), request(3, "acme/prod"))
	require.NoError(t, err, "other traffic goes on")

	deaf := NewClient(dialed(t, url, as("deaf")), ClientConfig{})
	for i := range 2 {
		_, err = deaf.Acquire(bounded(t), request(4, "acme"))
		require.ErrorIs(t, err, ErrPermission, "try %d", i)
		require.ErrorContains(t, err, `may not subscribe to "_INBOX.>"`)
	}
	err = deaf.Recalls(bounded(t), holder, func(lease.Recall) {})
	require.ErrorIs(t, err, ErrPermission)
	require.ErrorContains(t, err, "recall.shell-1-7f3a")

	cfg := as("own")
	cfg.InboxPrefix = "_INBOX_own"
	_, err = NewClient(dialed(t, url, cfg), ClientConfig{}).Acquire(bounded(t), request(5, "acme"))
	require.NoError(t, err)
}

// Who is in another account than the coordinator finds nobody, at once: B154.
func TestInAnotherAccountThereIsNobody(t *testing.T) {
	url := configured(t, `accounts: {
		ours: { users: [ { user: coordinator, password: p }, { user: ours, password: p } ] }
		theirs: { users: [ { user: theirs, password: p } ] }
	}`)
	serve(t, dialed(t, url, as("coordinator")), ServeConfig{Lessor: granting()})
	_, err := NewClient(dialed(t, url, as("theirs")), ClientConfig{}).Acquire(bounded(t), request(1, "acme"))
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
	require.ErrorContains(t, err, "nobody serves ration.v1.default.p.0.acquire.acme")
	_, err = NewClient(dialed(t, url, as("ours")), ClientConfig{}).Acquire(bounded(t), request(1, "acme"))
	require.NoError(t, err)
}

// TestServingIsNotReadyWhereItIsForbidden is B154, for who is asked: a coordinator that
// may not hear what it has to hear never says that it is ready, and names the subject.
func TestServingIsNotReadyWhereItIsForbidden(t *testing.T) {
	for _, subject := range []string{"ration.v1.default.p.0.*.*", "ration.v1.default.p.0.ping", "ration.v1.default.admin.status"} {
		url := configured(t, `authorization { users = [
			{ user: closed, password: p, permissions: { subscribe: { deny: "`+subject+`" } } } ] }`)
		for range 50 {
			nc, err := Connect(url, ConnectConfig{User: "closed", Password: "p", Wait: 10 * time.Second})
			require.NoError(t, err)
			err = Serve(bounded(t), nc, ServeConfig{
				Lessor: granting(),
				Status: func(context.Context, lease.Key) (any, error) { return nil, errors.New("nobody asks") },
				Ready:  func() { t.Errorf("ready, without %s", subject) },
			})
			nc.Close()
			require.ErrorIs(t, err, ErrPermission)
			require.ErrorContains(t, err, `may not subscribe to "`+subject+`"`)
		}
	}
}

// TestWhatIsForbiddenForEachMessageIsSaidOnce: a coordinator that may not answer says so,
// and does not fill its log with it.
func TestWhatIsForbiddenForEachMessageIsSaidOnce(t *testing.T) {
	url := configured(t, `authorization { users = [
		{ user: mute, password: p, permissions: { publish: { deny: "_INBOX.>" } } }
		{ user: acme, password: p }
	] }`)
	log := &log{}
	cfg := as("mute")
	cfg.Log = log.logger()
	mute := dialed(t, url, cfg)
	var asked atomic.Int64
	f := granting()
	f.acquire = func(_ context.Context, r lease.Request) (lease.Answer, error) {
		asked.Add(1)
		return grantOf(r), nil
	}
	serve(t, mute, ServeConfig{Lessor: f})
	hand := dialed(t, url, as("acme"))
	const n = 200
	for range n {
		require.NoError(t, hand.PublishRequest("ration.v1.default.p.0.acquire.k", nats.NewInbox(), []byte(sound)))
	}
	const said = `this user may not publish to \"_INBOX.>\"`
	require.Eventually(t, func() bool { return asked.Load() == n && log.holds(said) }, 30*time.Second, time.Millisecond)
	require.NoError(t, mute.FlushWithContext(bounded(t)))
	watchOf(mute).caughtUp(bounded(t), mute)
	require.Less(t, log.count(said), n/10)
}

func TestSubjectsToPermitAreThoseOfAllConnections(t *testing.T) {
	for subject, permit := range map[string]string{
		"ration.v1.default.p.0.acquire.acme": "ration.v1.default.p.0.acquire.acme",
		"$SRV.INFO.ration":                   "$SRV.INFO.ration",
		"_INBOX.abc.*":                       "_INBOX.>",
		"_INBOX.abc.xyz":                     "_INBOX.>",
		"_INBOX.abc":                         "_INBOX.>",
		"_INBOX_acme.one.abc.xyz":            "_INBOX_acme.one.>",
		"elsewhere":                          "elsewhere",
	} {
		require.Equal(t, permit, permitted(subject))
	}
}
