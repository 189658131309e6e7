package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/lease"
)

func TestAcquireAndReportArriveAsTheyWereSent(t *testing.T) {
	e := embed(t)
	var asked lease.Request
	var told lease.Report
	f := granting()
	acquire, report := f.acquire, f.report
	f.acquire = func(ctx context.Context, r lease.Request) (lease.Answer, error) {
		asked = r
		return acquire(ctx, r)
	}
	f.report = func(ctx context.Context, r lease.Report) (lease.Reply, error) {
		told = r
		return report(ctx, r)
	}
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f, Cell: "prod"})
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{Cell: "prod"})

	r := request(7, "acme/prod", "acme/*/>\r\n \x00\xff")
	a, err := c.Acquire(bounded(t), r)
	require.NoError(t, err)
	require.Equal(t, r, asked)
	require.Equal(t, grantOf(r), a)

	rep := lease.Report{
		Holder: holder, Sent: time.Minute, Heartbeat: true,
		Counts:  []lease.Count{{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: 3, Age: 7}}, Returned: 1, Cut: 1}},
		GivenUp: []lease.GivenUp{{ID: lease.ID{Holder: holder, Seq: 8}, Keys: r.Keys}},
	}
	reply, err := c.Report(bounded(t), rep)
	require.NoError(t, err)
	require.Equal(t, rep, told)
	require.Equal(t, []lease.Renewal{{ID: r.ID, SlotTTL: 10 * time.Second}}, reply.Renewed)
	require.Equal(t, []lease.ID{{Holder: holder, Seq: 8}}, reply.Acknowledged)
	require.Equal(t, a.Epoch, reply.Epoch)
}

func TestLargeReportsAreSaidInParts(t *testing.T) {
	e := embed(t)
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: granting()})
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	r := lease.Report{Holder: holder, Heartbeat: true}
	for i := range uint64(6000) {
		r.Counts = append(r.Counts, lease.Count{ID: lease.ID{Holder: holder, Seq: i}, Keys: []lease.Key{"acme"}})
	}
	reply, err := c.Report(bounded(t), r)
	require.NoError(t, err)
	require.Len(t, reply.Renewed, len(r.Counts))
	for i, n := range reply.Renewed {
		require.Equal(t, r.Counts[i].ID, n.ID)
	}
}

// TestEveryTenantFindsItsPartition: awkward tenants over eight partitions.
func TestEveryTenantFindsItsPartition(t *testing.T) {
	e := embed(t)
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: granting(), Partitions: 8})
	nc := dialed(t, e.URL(), ConnectConfig{})
	c := NewClient(nc, ClientConfig{Partitions: 8})
	for i, tenant := range awkward {
		_, err := c.Acquire(bounded(t), request(uint64(i), lease.Key(tenant)))
		require.NoError(t, err, "%.80q", tenant)
	}
	_, err := NewClient(nc, ClientConfig{Partitions: 2}).Acquire(bounded(t), request(99, "acme"))
	require.ErrorIs(t, err, lease.ErrBadRequest)
	require.ErrorContains(t, err, "partition 7 of 8; the subject says 1")
}

// TestNobodyLeadsIsToldAtOnce: B148. The context would end much later.
func TestNobodyLeadsIsToldAtOnce(t *testing.T) {
	e := embed(t)
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	_, err := c.Acquire(bounded(t), request(1, "acme"))
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
	_, err = c.Status(bounded(t), "")
	require.ErrorIs(t, err, lease.ErrNoCoordinator)

	// Through the gap of a restart, the same id is asked until it is answered.
	stop := serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: granting()})
	_, err = c.Acquire(bounded(t), request(2, "acme"))
	require.NoError(t, err)
	stop()
	_, err = c.Acquire(bounded(t), request(3, "acme"))
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: granting()})
	_, err = c.Acquire(bounded(t), request(3, "acme"))
	require.NoError(t, err)
}

// TestNothingIsSentLate: B149. What failed while NATS was away is not sent
// when it is back.
func TestNothingIsSentLate(t *testing.T) {
	e, err := Embed("-1")
	require.NoError(t, err)
	u, err := url.Parse(e.URL())
	require.NoError(t, err)
	var seen sync.Map
	f := granting()
	f.acquire = func(_ context.Context, r lease.Request) (lease.Answer, error) {
		seen.Store(r.ID.Seq, true)
		return grantOf(r), nil
	}
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f})
	nc := dialed(t, e.URL(), ConnectConfig{})
	c := NewClient(nc, ClientConfig{})
	_, err = c.Acquire(bounded(t), request(0, "acme"))
	require.NoError(t, err)

	e.Close()
	for i := range uint64(100) {
		_, err := c.Acquire(bounded(t), request(i+1, "acme"))
		require.ErrorIs(t, err, lease.ErrNoCoordinator, "request %d", i+1)
	}
	e, err = Embed(u.Host)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	last := request(1000, "acme")
	require.Eventually(t, func() bool {
		_, err := c.Acquire(bounded(t), last)
		return err == nil
	}, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, nc.FlushWithContext(bounded(t)))
	var ids []uint64
	seen.Range(func(k, _ any) bool {
		ids = append(ids, k.(uint64))
		return true
	})
	require.ElementsMatch(t, []uint64{0, 1000}, ids)
}

// TestLostConnectionFailsWhatIsUnderWay: the reply could not arrive any more.
func TestLostConnectionFailsWhatIsUnderWay(t *testing.T) {
	e := embed(t)
	arrived := make(chan struct{})
	f := granting()
	f.acquire = func(ctx context.Context, _ lease.Request) (lease.Answer, error) {
		close(arrived)
		<-ctx.Done()
		return lease.Answer{}, ctx.Err()
	}
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f})
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	failed := make(chan error)
	ctx := bounded(t)
	go func() {
		_, err := c.Acquire(ctx, request(1, "acme"))
		failed <- err
	}()
	<-arrived
	e.Close()
	require.ErrorIs(t, <-failed, lease.ErrNoCoordinator)
}

// TestTimedOutRequestsLeaveNothing: B151. Their late grants are dropped.
func TestTimedOutRequestsLeaveNothing(t *testing.T) {
	e := embed(t)
	hold := make(chan struct{})
	var late atomic.Int64
	f := granting()
	f.acquire = func(_ context.Context, r lease.Request) (lease.Answer, error) {
		if r.ID.Seq > 0 {
			<-hold
			late.Add(1)
		}
		return grantOf(r), nil
	}
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f})
	nc := dialed(t, e.URL(), ConnectConfig{})
	c := NewClient(nc, ClientConfig{})
	_, err := c.Acquire(bounded(t), request(0, "acme"))
	require.NoError(t, err)
	subscriptions := nc.NumSubscriptions()

	const n = 500
	var all sync.WaitGroup
	for i := range uint64(n) {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			_, err := c.Acquire(ctx, request(i+1, "acme"))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("request %d: %v", i+1, err)
			}
		})
	}
	all.Wait()
	close(hold)
	require.Eventually(t, func() bool { return late.Load() > 0 }, 30*time.Second, time.Millisecond)
	a, err := c.Acquire(bounded(t), request(0, "acme"))
	require.NoError(t, err)
	require.Equal(t, uint64(0), a.ID.Seq, "a late answer was taken for another's")
	require.Equal(t, subscriptions, nc.NumSubscriptions())
	c.watch.mu.Lock()
	defer c.watch.mu.Unlock()
	require.Empty(t, c.watch.waits)
}

func TestCancelledAskerLeavesAtOnce(t *testing.T) {
	e := embed(t)
	hand := dialed(t, e.URL(), ConnectConfig{})
	sub, err := hand.SubscribeSync("ration.v1.default.p.0.>") // takes, and never answers
	require.NoError(t, err)
	require.NoError(t, hand.Flush())
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	ctx, cancel := context.WithCancelCause(context.Background())
	failed := make(chan error)
	go func() {
		_, err := c.Acquire(ctx, request(1, "acme"))
		failed <- err
	}()
	_, err = sub.NextMsgWithContext(bounded(t))
	require.NoError(t, err)
	cancel(errors.New("the caller went home"))
	require.ErrorIs(t, <-failed, context.Canceled)
}

// TestForbiddenIsToldNotTimedOut: B154.
func TestForbiddenIsToldNotTimedOut(t *testing.T) {
	url := configured(t, `authorization { users = [
		{ user: coordinator, password: p }
		{ user: acme, password: p, permissions: {
			publish: "ration.v1.default.p.*.*.acme", subscribe: ["_INBOX.>", "ration.v1.default.recall.*"] } }
		{ user: deaf, password: p, permissions: { publish: ">", subscribe: "elsewhere" } }
		{ user: own, password: p, permissions: { publish: "ration.>", subscribe: "_INBOX_own.>" } }
	] }`)
	as := func(user string) ConnectConfig { return ConnectConfig{User: user, Password: "p"} }
	serve(t, dialed(t, url, as("coordinator")), ServeConfig{Lessor: granting()})

	acme := NewClient(dialed(t, url, as("acme")), ClientConfig{})
	_, err := acme.Acquire(bounded(t), request(1, "acme/prod"))
	require.NoError(t, err)
	_, err = acme.Acquire(bounded(t), request(2, "other/prod"))
	require.ErrorIs(t, err, ErrPermission)
	require.ErrorContains(t, err, `may not publish to "ration.v1.default.p.0.acquire.other"`)
	_, err = acme.Acquire(bounded(t), request(3, "acme/prod"))
	require.NoError(t, err, "other traffic goes on")

	deaf := NewClient(dialed(t, url, as("deaf")), ClientConfig{})
	for i := range 2 {
		_, err = deaf.Acquire(bounded(t), request(4, "acme"))
		require.ErrorIs(t, err, ErrPermission, "try %d", i)
		require.ErrorContains(t, err, "may not subscribe to")
	}
	err = deaf.Recalls(bounded(t), holder, func(lease.Recall) {})
	require.ErrorIs(t, err, ErrPermission)
	require.ErrorContains(t, err, "recall.shell-1-7f3a")

	cfg := as("own")
	cfg.InboxPrefix = "_INBOX_own"
	_, err = NewClient(dialed(t, url, cfg), ClientConfig{}).Acquire(bounded(t), request(5, "acme"))
	require.NoError(t, err)

	err = Serve(bounded(t), dialed(t, url, as("acme")), ServeConfig{Lessor: granting()})
	require.ErrorIs(t, err, ErrPermission)
}

// TestOversizedHarmsNobodyElse: B155.
func TestOversizedHarmsNobodyElse(t *testing.T) {
	url := configured(t, "max_payload: 512")
	serve(t, dialed(t, url, ConnectConfig{}), ServeConfig{
		Lessor: granting(),
		Status: func(context.Context, lease.Key) (any, error) { return strings.Repeat("s", 4096), nil },
	})
	nc := dialed(t, url, ConnectConfig{})
	c := NewClient(nc, ClientConfig{})
	for says, keys := range map[string][]lease.Key{
		"9 keys":      {"a", "a", "a", "a", "a", "a", "a", "a", "a"},
		"at most":     {lease.Key(strings.Repeat("k", 2<<20))},
		"max_payload": {lease.Key(strings.Repeat("k", 1024))},
		"two tenants": {"a/x", "b/x"},
		"no key":      nil,
	} {
		_, err := c.Acquire(bounded(t), request(1, keys...))
		require.ErrorIs(t, err, lease.ErrBadRequest, says)
		require.ErrorContains(t, err, says)
	}
	_, err := c.Status(bounded(t), "")
	require.ErrorIs(t, err, lease.ErrBadRequest)
	require.ErrorContains(t, err, "ask for one key")
	_, err = c.Acquire(bounded(t), request(2, "a"))
	require.NoError(t, err)
	require.Zero(t, nc.Stats().Reconnects)
}

func TestClosedConnectionIsNoCoordinator(t *testing.T) {
	e := embed(t)
	nc := dialed(t, e.URL(), ConnectConfig{})
	c := NewClient(nc, ClientConfig{})
	ended := make(chan error)
	started := make(chan struct{})
	go func() {
		close(started)
		ended <- c.Recalls(context.Background(), holder, func(lease.Recall) {})
	}()
	<-started
	nc.Close()
	require.ErrorIs(t, <-ended, lease.ErrNoCoordinator)
	_, err := c.Acquire(bounded(t), request(1, "acme"))
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
	require.ErrorIs(t, NewClient(nc, ClientConfig{}).Recalls(bounded(t), holder, nil), lease.ErrNoCoordinator)
	require.Eventually(t, func() bool { return watchOf(nc) == nil }, 30*time.Second, time.Millisecond)
}

func TestAnswersThatMakeNoSenseAreTheCoordinatorsFault(t *testing.T) {
	e := embed(t)
	hand := dialed(t, e.URL(), ConnectConfig{})
	answers := make(chan string, 1)
	_, err := hand.Subscribe("ration.v1.default.>", func(m *nats.Msg) { _ = m.Respond([]byte(<-answers)) })
	require.NoError(t, err)
	require.NoError(t, hand.Flush())
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	for body, sentinel := range map[string]error{
		"":        lease.ErrInternal,
		"{}":      lease.ErrInternal,
		`{"v":2}`: lease.ErrFormat,
		`{"v":1,"id":"shell-1.7f3a/2","outcome":"ended","epoch":"1.1"}`: lease.ErrInternal, // another's
		`{"v":1,"error":{"code":"line_full"}}`:                          lease.ErrLineFull,
	} {
		answers <- body
		_, err := c.Acquire(bounded(t), request(1, "acme"))
		require.ErrorIs(t, err, sentinel, body)
		answers <- body
		_, err = c.Report(bounded(t), lease.Report{Holder: holder, Counts: []lease.Count{{ID: request(1).ID, Keys: []lease.Key{"acme"}}}})
		if !strings.Contains(body, "ended") {
			require.ErrorIs(t, err, sentinel, body)
		}
	}
}

func TestReportOfNothingIsNotSent(t *testing.T) {
	e := embed(t)
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	_, err := c.Report(bounded(t), lease.Report{Holder: holder, Heartbeat: true})
	require.NoError(t, err, "there is nobody who could have answered")
	_, err = c.Report(bounded(t), lease.Report{Holder: holder, Sent: math.MinInt64, GivenUp: []lease.GivenUp{{Keys: []lease.Key{"a"}}}})
	require.ErrorIs(t, err, lease.ErrBadRequest)
}

func TestRecallsReachTheirHolderOnly(t *testing.T) {
	e := embed(t)
	out := make(chan lease.Recall)
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{
		Lessor: granting(),
		Recalls: func(ctx context.Context, got func(lease.Recall)) error {
			for {
				select {
				case r := <-out:
					got(r)
				case <-ctx.Done():
					return nil
				}
			}
		},
	})
	nc := dialed(t, e.URL(), ConnectConfig{})
	c := NewClient(nc, ClientConfig{})
	ctx, cancel := context.WithCancel(context.Background())
	heard := make(chan lease.Recall, 16)
	ended := make(chan error)
	go func() { ended <- c.Recalls(ctx, holder, func(r lease.Recall) { heard <- r }) }()
	require.Eventually(t, func() bool { return nc.NumSubscriptions() == 1 }, 30*time.Second, time.Millisecond)
	require.NoError(t, nc.FlushWithContext(bounded(t)))

	require.NoError(t, nc.Publish(recallSubject(DefaultCell, holder), []byte("garbage")))
	for i, h := range []lease.Holder{{Name: "shell-1", Incarnation: 1}, {Name: "shell", Incarnation: 0x7f3a}, holder, {Name: ""}, holder} {
		out <- lease.Recall{Holder: h, Key: lease.Key(fmt.Sprintf("key %d", i)), Slots: int64(i)}
	}
	require.Equal(t, lease.Recall{Holder: holder, Key: "key 2", Slots: 2}, <-heard)
	require.Equal(t, lease.Recall{Holder: holder, Key: "key 4", Slots: 4}, <-heard)
	cancel()
	require.NoError(t, <-ended)
	require.Empty(t, heard)
	require.ErrorIs(t, c.Recalls(ctx, lease.Holder{}, nil), lease.ErrBadRequest)
}
