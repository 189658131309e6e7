package bus

import (
	"context"
	"errors"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestNobodyLeadsIsToldAtOnce is B148. The context would end much later.
func TestNobodyLeadsIsToldAtOnce(t *testing.T) {
	e := embed(t)
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	require.Less(t, vacancy, 100*time.Millisecond)
	began := time.Now()
	_, err := c.Acquire(bounded(t), request(1, "acme"))
	t.Logf("told after %v", time.Since(began).Round(time.Millisecond))
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

// TestNothingIsSentLate is B149: what failed while NATS was away is not sent when it is
// back.
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

// TestTimedOutRequestsLeaveNothing is B151: a hundred thousand requests time out, and
// their grants come late. None is taken for another's, and nothing is kept of them. (That
// a late grant comes back is up to the id that was given up: hand_test of
// integration/system.)
func TestTimedOutRequestsLeaveNothing(t *testing.T) {
	e := embed(t)
	hand := dialed(t, e.URL(), ConnectConfig{})
	var mu sync.Mutex
	var held []*nats.Msg
	hold := true
	_, err := hand.Subscribe("ration.v1.default.p.0.acquire.acme", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if held = append(held, m); hold {
			return
		}
		for _, m := range held {
			answerTo(t, m)
		}
		held = nil
	})
	require.NoError(t, err)
	require.NoError(t, hand.Flush())
	nc := dialed(t, e.URL(), ConnectConfig{})
	c := NewClient(nc, ClientConfig{})

	rounds, asked := 20, 5000
	if testing.Short() {
		rounds = 4
	}
	subscriptions, heap := 0, uint64(0)
	for round := range rounds {
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		for i := range asked {
			all.Go(func() {
				_, err := c.Acquire(ctx, request(uint64(1+round*asked+i), "acme"))
				if !errors.Is(err, context.Canceled) {
					t.Errorf("request %d: %v", i, err)
				}
			})
		}
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(held) == asked
		}, 60*time.Second, time.Millisecond)
		cancel(context.DeadlineExceeded)
		all.Wait()
		mu.Lock()
		hold = false
		mu.Unlock()
		a, err := c.Acquire(bounded(t), request(0, "acme")) // after the late ones
		require.NoError(t, err)
		require.Equal(t, uint64(0), a.ID.Seq, "a late answer was taken for another's")
		mu.Lock()
		hold = true
		mu.Unlock()

		c.watch.mu.Lock()
		require.Empty(t, c.watch.waits)
		c.watch.mu.Unlock()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if round < rounds/4 { // buffers have grown to their size
			subscriptions, heap = nc.NumSubscriptions(), m.HeapAlloc
			continue
		}
		require.Equal(t, subscriptions, nc.NumSubscriptions())
		// A hundred bytes for each would be more than that in the end.
		require.Less(t, m.HeapAlloc, heap+4<<20, "round %d", round)
	}
}

func answerTo(t *testing.T, m *nats.Msg) {
	r, err := decodeRequest(m.Data)
	if err != nil {
		t.Error(err)
		return
	}
	body, err := encodeAnswer(grantOf(r))
	if err != nil {
		t.Error(err)
		return
	}
	_ = m.Respond(body) // who asked may have gone
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
