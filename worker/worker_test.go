package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ration/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestALostLeaseEndsTheHandlesContext(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [2 concurrent]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		h, err := w.Limiter("k").Acquire(t.Context(), 1)
		require.NoError(t, err)
		ctx := h.Context()
		s.down.Store(true)
		begun := time.Now()
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), ErrLeaseLost)
		require.Less(t, time.Since(begun), 10*time.Second, "before the ledger gives the slot away")
		h.Finish()
		require.EqualValues(t, 1, w.Stats().LostCalls)
		s.down.Store(false)
		s.end(t, w)
	})
}

func TestNoCoordinatorIsTheReasonOfADeadline(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		s.down.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := w.Limiter("k").Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, lease.ErrNoCoordinator)
		require.Error(t, w.Contact(ctx, "k"))
		asked := s.asked.Load()
		require.LessOrEqual(t, asked, int64(60), "it backs off")
		go func() { time.Sleep(3 * time.Second); s.down.Store(false) }()
		require.NoError(t, w.Limiter("k").Wait(t.Context()), "it goes on asking")
		require.NoError(t, w.Contact(t.Context(), "k"))
		s.end(t, w)
	})
}

// guarded is a lessor that may be forbidden to be asked.
type guarded struct {
	*scripted
	forbidden atomic.Bool
}

func (g *guarded) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	if g.forbidden.Load() {
		g.asked.Add(1)
		return lease.Answer{}, fmt.Errorf("nats says: %w", lease.ErrForbidden)
	}
	return g.scripted.Acquire(ctx, r)
}

// B154: who waits for as long as it takes is told that it is forbidden to ask, which is no
// refusal by the contract; whoever calls later asks anew.
func TestForbiddenToAskIsToldToAllWhoWait(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1h]}]", func(t *testing.T, s *scripted) {
		g := &guarded{scripted: s}
		cfg := DefaultConfig()
		cfg.MonotonicOnly, cfg.Seed = true, 1
		w, err := New(g, cfg)
		require.NoError(t, err)
		defer func() { // also where the test fails
			w.Close(context.Background())
			s.stop()
		}()
		g.forbidden.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var callers sync.WaitGroup
		for n := range int64(5) {
			callers.Go(func() {
				err := w.Limiter("k").WaitN(ctx, 1+n)
				var refused *RefusedError
				if ctx.Err() != nil || !errors.Is(err, lease.ErrForbidden) || errors.As(err, &refused) {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		require.LessOrEqual(t, s.asked.Load(), int64(5))
		require.False(t, w.Limiter("k").Allow())
		g.forbidden.Store(false)
		require.NoError(t, w.Limiter("k").Wait(t.Context()))
		require.NoError(t, w.Close(t.Context()))
		balanced(t, w.Stats(), w.Name())
	})
}

func TestCloseReturnsAllFailsWhoWaitsAndSaysGoodbye(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1h, 4 concurrent]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		l := w.Limiter("k")
		h, err := l.Acquire(t.Context(), 3)
		require.NoError(t, err)
		waits := make(chan error, 1)
		go func() { _, err := l.Acquire(t.Context(), 9); waits <- err }()
		synctest.Wait()
		s.end(t, w)
		require.ErrorIs(t, <-waits, lease.ErrStopped)
		require.ErrorIs(t, context.Cause(h.Context()), ErrClosed)
		require.EqualValues(t, 1, s.goodbyes.Load())
		require.Zero(t, s.held())
		_, err = l.Acquire(t.Context(), 1)
		require.ErrorIs(t, err, ErrClosed)
		_, err = w.Limiter("other").Acquire(t.Context(), 1)
		require.ErrorIs(t, err, ErrClosed)
		require.NoError(t, w.Close(t.Context()))
	})
}

func TestAPausedWorkerTakesANewIncarnation(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [2 concurrent]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		old := w.Holder()
		h, err := w.Limiter("k").Acquire(t.Context(), 1)
		require.NoError(t, err)
		w.late(11 * time.Second) // by then it had not begun
		require.Equal(t, old, w.Holder())
		time.Sleep(12 * time.Second)
		w.late(11 * time.Second)
		<-h.Context().Done()
		require.ErrorIs(t, context.Cause(h.Context()), ErrLeaseLost)
		require.Equal(t, old.Name, w.Holder().Name)
		require.NotEqual(t, old.Incarnation, w.Holder().Incarnation)
		second := w.Holder()
		w.late(11 * time.Second) // another timer that the same pause held up
		require.Equal(t, second, w.Holder())
		next, err := w.Limiter("k").Acquire(t.Context(), 1)
		require.NoError(t, err)
		next.Finish()
		s.end(t, w)
	})
}

func TestIdleLanesLeaveMemoryButNotTheBooks(t *testing.T) {
	bubble(t, "limits: [{key: '{k}', rules: [10/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		for i := range 50 {
			require.NoError(t, w.Limiter(lease.Key(fmt.Sprint("t/", i))).Wait(t.Context()))
		}
		require.Len(t, w.allLanes(), 50)
		time.Sleep(2 * time.Minute)
		require.Empty(t, w.allLanes())
		require.EqualValues(t, 50, w.Stats().Spent)
		require.NoError(t, w.Limiter("t/1").Wait(t.Context()))
		s.end(t, w)
	})
}

func TestSentIsTheInstantOfTheSpend(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [1/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		var last time.Time
		for range 5 {
			h, err := w.Limiter("k").Acquire(t.Context(), 1)
			require.NoError(t, err)
			require.WithinDuration(t, time.Now(), h.Sent(), time.Microsecond)
			if !last.IsZero() {
				require.GreaterOrEqual(t, h.Sent().Sub(last), time.Second)
			}
			last = h.Sent()
			time.Sleep(100 * time.Millisecond)
			h.Finish()
		}
		s.end(t, w)
	})
}

func TestACallerThatWaitsForLongAsksOnceASecond(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [1/1h]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		require.NoError(t, w.Limiter("k").Wait(t.Context()))
		time.Sleep(2 * time.Second)
		asked, begun := s.asked.Load(), time.Now()
		require.NoError(t, w.Limiter("k").Wait(t.Context()))
		took := time.Since(begun)
		require.Greater(t, took, 59*time.Minute)
		require.LessOrEqual(t, s.asked.Load()-asked, int64(took/time.Second)+2)
		s.end(t, w)
	})
}

func TestConfigsSayWhichRelationDoesNotHold(t *testing.T) {
	cfg := DefaultConfig()
	require.NoError(t, cfg.Validate())
	cfg.PauseLimit = cfg.Heartbeat
	require.ErrorContains(t, cfg.Validate(), "1s")
	_, err := New(nil, cfg)
	require.Error(t, err)
	pool := DefaultPoolConfig()
	pool.BackoffMax = pool.BackoffMin / 2
	require.ErrorContains(t, pool.Validate(), "12.5ms")
}
