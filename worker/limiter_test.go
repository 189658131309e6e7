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

	"ration/lease"
)

// With a context that has ended nothing is taken, and nothing sent.
func TestAnEndedContextTakesNothing(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [1000/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		l := w.Limiter("k")
		require.NoError(t, l.Wait(t.Context()))
		time.Sleep(10 * time.Millisecond)
		before, asked := w.Stats(), s.asked.Load()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		late, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		for range 5000 {
			require.ErrorIs(t, l.Wait(gone), context.Canceled)
			_, err := l.Acquire(late, 1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Equal(t, before.Granted, w.Stats().Granted)
		require.Equal(t, before.Spent, w.Stats().Spent)
		require.Equal(t, asked, s.asked.Load())
		s.end(t, w)
	})
}

func TestACostBelowOneIsAnErrorThatNamesIt(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		for _, n := range []int64{0, -3} {
			require.ErrorContains(t, w.Limiter("k").WaitN(t.Context(), n), fmt.Sprint(n))
			_, err := w.Limiter("k").Acquire(t.Context(), n)
			require.ErrorContains(t, err, fmt.Sprint(n))
			require.False(t, w.Limiter("k").AllowN(n))
		}
		require.Zero(t, s.asked.Load())
		s.end(t, w)
	})
}

// Who stands behind a large caller is served when that leaves, at once.
func TestACancelledHeadServesTheNext(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/10s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		l := w.Limiter("k")
		require.NoError(t, l.WaitN(t.Context(), 9))
		head, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- l.WaitN(head, 5) }()
		synctest.Wait()
		second := make(chan error, 1)
		go func() { second <- l.WaitN(t.Context(), 1) }()
		time.Sleep(500 * time.Millisecond)
		require.Empty(t, second)
		cancel()
		require.ErrorIs(t, <-first, context.Canceled)
		begun := time.Now()
		require.NoError(t, <-second)
		require.Less(t, time.Since(begun), 10*time.Millisecond)
		s.end(t, w)
	})
}

// A limit that is waited for is kept.
func TestWaitersKeepTheLimit(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [1/100ms]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var served atomic.Int64
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				if w.Limiter("k").Wait(ctx) == nil {
					served.Add(1)
				}
			})
		}
		group.Wait()
		require.LessOrEqual(t, served.Load(), int64(20))
		require.GreaterOrEqual(t, served.Load(), int64(19))
		s.end(t, w)
	})
}

// No more calls run than slots, and an overrunning call keeps its.
func TestSlotsAreHeldUntilTheCallEnds(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [2 concurrent]}]", func(t *testing.T, s *scripted) {
		a, b := s.start(t, "a"), s.start(t, "b")
		var running, most atomic.Int64
		var group sync.WaitGroup
		for i := range 40 {
			w := []*Worker{a, b}[i%2]
			group.Go(func() {
				h, err := w.Limiter("k").Acquire(t.Context(), 1)
				if !errorsNil(t, err) {
					return
				}
				n := running.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				span := 50 * time.Millisecond
				if i == 7 {
					span = time.Minute // far beyond any TTL
				}
				time.Sleep(span)
				running.Add(-1)
				if h.Context().Err() != nil {
					t.Errorf("call %d lost its slot: %v", i, context.Cause(h.Context()))
				}
				h.Finish()
			})
		}
		group.Wait()
		require.EqualValues(t, 2, most.Load())
		require.ErrorIs(t, a.Limiter("k").Wait(t.Context()), lease.ErrNeedsSlot)
		require.False(t, a.Limiter("k").Allow())
		s.end(t, a, b)
		require.Zero(t, s.held())
	})
}

func errorsNil(t *testing.T, err error) bool {
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// What is refused takes nothing from what is left.
func TestAllowRefusesWhatIsNotThereAndKeepsTheRest(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1h]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		l := w.Limiter("k")
		require.NoError(t, l.WaitN(t.Context(), 8))
		for range 3 {
			require.False(t, l.AllowN(5))
			time.Sleep(2 * time.Second)
		}
		got := 0
		for range 20 {
			if l.Allow() {
				got++
			}
			time.Sleep(300 * time.Millisecond)
		}
		require.Equal(t, 2, got)
		s.end(t, w)
	})
}

// A cancel storm: the books balance, the others are served at the contract's
// pace, nothing is held for the cancelled.
func TestCancelStorm(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		var served, cancelled atomic.Int64
		var group sync.WaitGroup
		begun := time.Now()
		for i := range 1000 {
			ctx, cancel := context.WithCancel(t.Context())
			if i%10 != 0 { // some of them in the very instant of a grant
				time.AfterFunc(time.Duration(i*7919%8000)*time.Millisecond, cancel)
			}
			group.Go(func() {
				defer cancel()
				switch err := w.Limiter("k").Wait(ctx); {
				case err == nil:
					served.Add(1)
				case errors.Is(err, context.Canceled):
					cancelled.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		require.EqualValues(t, 1000, served.Load()+cancelled.Load())
		require.GreaterOrEqual(t, served.Load(), int64(100))
		took := time.Since(begun)
		least := time.Duration((served.Load()-1)/10) * time.Second
		require.GreaterOrEqual(t, took, least)
		require.LessOrEqual(t, took, least+least/5000+500*time.Millisecond)
		b := w.Stats()
		balanced(t, b, "after the storm")
		require.Equal(t, served.Load(), b.Spent)
		time.Sleep(2 * time.Second)
		require.Zero(t, w.Stats().Held)
		require.Zero(t, s.held())
		s.end(t, w)
	})
}
