package bus

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// The context would end much later.
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

// What failed while NATS was away is not sent when it is back.
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

// Late grants of requests that timed out are dropped.
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
