package bus

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestWhatIsDroppedIsCountedAndSaid is B152: messages come while none is let in, and there
// is little room for them. What is dropped is counted where operators look, and said once;
// all else is answered, and who asks later is served.
func TestWhatIsDroppedIsCountedAndSaid(t *testing.T) {
	e := embed(t)
	log := &log{}
	s := newServing(dialed(t, e.URL(), ConnectConfig{Log: log.logger()}), ServeConfig{
		Lessor: granting(),
		Status: func(context.Context, lease.Key) (any, error) { return []byte(`{}`), nil },
	}.complete())
	ctx, stop := context.WithCancelCause(t.Context())
	s.stop = stop
	require.NoError(t, s.start(ctx))
	defer func() {
		stop(nil)
		s.end()
	}()
	require.NoError(t, s.subs[0].SetPendingLimits(10, -1))

	hand := dialed(t, e.URL(), ConnectConfig{})
	inbox := nats.NewInbox()
	answers, err := hand.SubscribeSync(inbox)
	require.NoError(t, err)
	s.asking.mu.Lock() // nothing is let in
	const n = 100
	for range n {
		require.NoError(t, hand.PublishRequest("ration.v1.default.p.0.acquire.k", inbox, []byte(sound)))
	}
	dropped := 0
	require.Eventually(t, func() bool {
		dropped, err = s.subs[0].Dropped()
		return err == nil && dropped > 0 && dropped >= n-11
	}, 30*time.Second, time.Millisecond)
	s.asking.mu.Unlock()
	for range n - dropped {
		m, err := answers.NextMsgWithContext(bounded(t))
		require.NoError(t, err)
		require.Contains(t, string(m.Data), "granted")
	}
	_, err = NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{}).Acquire(bounded(t), request(1, "k"))
	require.NoError(t, err)
	require.Equal(t, dropped, s.statistics().Dropped)
	require.EqualValues(t, n-dropped+1, s.statistics().Acquires)
	m, err := hand.RequestWithContext(bounded(t), "$SRV.STATS.ration", nil)
	require.NoError(t, err)
	require.Contains(t, string(m.Data), `"dropped":`)
	const said = "messages come faster than they are taken; some are dropped"
	require.Eventually(t, func() bool { return log.holds(said) }, 30*time.Second, time.Millisecond)
	require.Equal(t, 1, log.count(said))
}
