package system

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

	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
)

// allowance is by how much a trailing window is longer, for clocks that differ.
func allowance(w time.Duration) time.Duration { return w / 5000 }

// acquired acquires, and fails the test if that fails.
func acquired(t *testing.T, l *worker.Limiter, cost int64) *worker.Handle {
	t.Helper()
	h, err := l.Acquire(context.Background(), cost)
	require.NoError(t, err)
	return h
}

// waiter is a caller that waits in a goroutine of its own.
type waiter struct {
	cancel context.CancelFunc
	done   chan struct{}
	handle *worker.Handle
	err    error
	at     time.Time // when it was decided
}

func waits(l *worker.Limiter, cost int64) *waiter {
	return waitsWith(context.Background(), l, cost)
}

func waitsWith(ctx context.Context, l *worker.Limiter, cost int64) *waiter {
	ctx, cancel := context.WithCancel(ctx)
	w := &waiter{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.handle, w.err = l.Acquire(ctx, cost)
		w.at = time.Now()
	}()
	synctest.Wait() // so that it stands in line before the next one
	return w
}

func (w *waiter) decided() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// TestWaiterOnOneKeyHoldsNobodyUpOnAnother is B53: a line belongs to its key.
func TestWaiterOnOneKeyHoldsNobodyUpOnAnother(t *testing.T) {
	within(t, "  - {key: a, rules: [1/30s]}\n  - {key: b, rules: [1000/1s]}\n", func(w *world) {
		one := w.join("one")
		acquired(t, one.Limiter("a"), 1).Finish()
		parked := waits(one.Limiter("a"), 1)
		began := time.Now()
		for range 100 {
			acquired(t, one.Limiter("b"), 1).Finish()
		}
		require.Less(t, time.Since(began), 50*time.Millisecond, "virtual time: only waiting takes any")
		require.False(t, parked.decided())
		<-parked.done
		require.NoError(t, parked.err)
		parked.handle.Finish()
	})
}

// TestCancelledCallerTakesNothing is B56: a caller whose context has ended before
// it asks gets that error, always, and asks nobody for anything.
func TestCancelledCallerTakesNothing(t *testing.T) {
	within(t, "  - {key: k, rules: [1000/1s]}\n", func(w *world) {
		one := w.join("one")
		l := one.Limiter("k")
		acquired(t, l, 1).Finish() // some are at hand now
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		past, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		defer cancel()
		before := one.Stats()
		for range 10_000 {
			require.ErrorIs(t, l.Wait(cancelled), context.Canceled)
			_, err := l.Acquire(past, 1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Equal(t, before.Requests, one.Stats().Requests)
		require.Equal(t, before.Spent+before.Held, one.Stats().Spent+one.Stats().Held)
	})
}

// TestHeadThatLeavesLetsThoseBehindThrough is B59: 9 of 10 are out; the first in
// line wants 5, the second 1. When the first leaves, by cancel or by its deadline,
// the second is served in that instant, though nothing came back.
func TestHeadThatLeavesLetsThoseBehindThrough(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		for _, patience := range []time.Duration{time.Hour, 300 * time.Millisecond} {
			t.Run(fmt.Sprintf("%d workers, patience %v", workers, patience), func(t *testing.T) {
				within(t, "  - {key: k, rules: [10/1h]}\n", func(w *world) {
					first := w.join("first").Limiter("k")
					second, third := first, first
					if workers > 1 {
						second = w.join("second").Limiter("k")
					}
					if workers > 2 {
						third = w.join("third").Limiter("k")
					}
					out := acquired(t, third, 9)
					ctx, cancel := soon(patience)
					defer cancel()
					head := waitsWith(ctx, first, 5)
					behind := waits(second, 1)
					require.False(t, behind.decided(), "first come, first served")
					if patience == time.Hour {
						head.cancel()
					}
					<-head.done
					require.Error(t, head.err)
					<-behind.done
					require.NoError(t, behind.err)
					require.Less(t, behind.at.Sub(head.at), 50*time.Millisecond)
					behind.handle.Finish()
					out.Finish()
				})
			})
		}
	}
}

// TestCancelBeforeParkingIsHeard is B61: a cancel in the very instant of asking
// ends the wait in that instant, with nothing else going on.
func TestCancelBeforeParkingIsHeard(t *testing.T) {
	within(t, "  - {key: k, rules: [1/1h]}\n", func(w *world) {
		l := w.join("one").Limiter("k")
		acquired(t, l, 1).Finish()
		began := time.Now()
		for range scaled(200, 5000) {
			ctx, cancel := context.WithCancel(context.Background())
			var caller sync.WaitGroup
			caller.Go(func() {
				if err := l.Wait(ctx); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			caller.Go(cancel)
			caller.Wait()
		}
		require.Less(t, time.Since(began), 50*time.Millisecond)
	})
}

// TestWaitersAreNotLetThroughTogether is B62: a hundred wait on 1/100ms for two
// seconds; each one who is woken takes a token of its own.
func TestWaitersAreNotLetThroughTogether(t *testing.T) {
	for rule, least := range map[string]int{
		"1/100ms": 14, "1/100ms fixed": 14, "1/100ms pace": 14,
		"1/100ms bucket":  14, // does not fill while its token is held, that is a third of its window at most
		"1/100ms counter": 10, // one in two periods, by what it estimates
	} {
		t.Run(rule, func(t *testing.T) {
			within(t, "  - {key: k, rules: ["+rule+"]}\n", func(w *world) {
				ctx, cancel := soon(2 * time.Second)
				defer cancel()
				var mu sync.Mutex
				served := 0
				var callers sync.WaitGroup
				for i := range 3 {
					l := w.join(fmt.Sprint("w", i)).Limiter("k")
					for range 34 {
						callers.Go(func() {
							if l.Wait(ctx) == nil {
								mu.Lock()
								served++
								mu.Unlock()
							}
						})
					}
				}
				callers.Wait()
				require.LessOrEqual(t, served, 21)
				require.GreaterOrEqual(t, served, least)
			})
		})
	}
}

// TestCallersThatDoNotWaitUseTheContract is B58: a hundred callers ask again and again,
// and none of them waits. What they ask for and leave again is no debt.
func TestCallersThatDoNotWaitUseTheContract(t *testing.T) {
	within(t, "  - {key: k, rules: [10/1s]}\n", func(w *world) {
		ctx, cancel := soon(10 * time.Second)
		defer cancel()
		var served, left atomic.Int64
		var callers sync.WaitGroup
		for i := range 4 {
			l := w.join(fmt.Sprint("w", i)).Limiter("k")
			for j := range 25 {
				callers.Go(func() {
					for ctx.Err() == nil {
						<-time.After(time.Duration(5+j) * time.Millisecond)
						if j%2 == 0 && l.Allow() {
							served.Add(1)
							continue
						}
						now, cancel := context.WithTimeout(ctx, time.Millisecond)
						h, err := l.Acquire(now, 1)
						cancel()
						switch {
						case err != nil:
						case j%5 == 0:
							left.Add(1)
							h.Cancel()
						default:
							served.Add(1)
							h.Finish()
						}
					}
				})
			}
		}
		callers.Wait()
		t.Logf("%d served, %d left", served.Load(), left.Load())
		require.GreaterOrEqual(t, served.Load(), int64(95))
		require.LessOrEqual(t, served.Load(), int64(110))
		for _, joined := range w.workers {
			require.NoError(t, joined.Close(context.Background()))
		}
		require.EqualValues(t, served.Load(), w.books().Spent)
	})
}

// TestLargeCallIsNotOvertakenForEver is B64: one who wants all ten stands first;
// small ones come every 50 ms, at its own worker and at another.
func TestLargeCallIsNotOvertakenForEver(t *testing.T) {
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			within(t, "  - {key: k, rules: [10/1s]}\n", func(w *world) {
				one := w.join("one")
				other := one
				if workers == 2 {
					other = w.join("other")
				}
				acquired(t, one.Limiter("k"), 10).Finish()
				began := time.Now()
				large := waits(one.Limiter("k"), 10)
				var small []*waiter
				for range 30 {
					<-time.After(50 * time.Millisecond)
					small = append(small, waits(other.Limiter("k"), 1))
				}
				<-large.done
				require.NoError(t, large.err)
				require.LessOrEqual(t, large.at.Sub(began), time.Second+allowance(time.Second)+10*time.Millisecond)
				large.handle.Finish()
				for _, s := range small {
					<-s.done
					require.NoError(t, s.err)
					require.GreaterOrEqual(t, s.at.Sub(large.at), time.Second, "the small ones come after it")
					s.handle.Finish()
				}
			})
		})
	}
}

// TestCancelledWaitersDoNotPileUp is B67: one holds for ten minutes, and thousands
// come to wait and go.
func TestCancelledWaitersDoNotPileUp(t *testing.T) {
	within(t, "  - {key: k, rules: [1 concurrent]}\n", func(w *world) {
		h := acquired(t, w.join("long").Limiter("k"), 1)
		l := w.join("crowd").Limiter("k")
		var callers sync.WaitGroup
		for i := range scaled(2_000, 10_000) {
			callers.Go(func() {
				ctx, cancel := soon(time.Duration(1+i%600) * time.Second)
				defer cancel()
				if _, err := l.Acquire(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		settle(w, "nobody to wait", func(s lease.Status) bool { return s.Waiting == 0 && s.Leases == 1 })
		require.NoError(t, h.Context().Err(), "the long call has kept its slot")
		h.Finish()
	})
}

// settle waits until the ledger is as the test wants it, in virtual time.
func settle(w *world, what string, holds func(lease.Status) bool) {
	w.t.Helper()
	proves(w.t, what, func() error {
		if s := w.status(); !holds(s) {
			return fmt.Errorf("%d leases, %+v held, %d waiting", s.Leases, s.Held, s.Waiting)
		}
		return nil
	})
}

// TestWaitingAsLongAsToldWorks: a refusal says how long to wait, for
// every rule, and after exactly as long it works, once.
func TestWaitingAsLongAsToldWorks(t *testing.T) {
	for _, rules := range []string{"5/60s", "5/60s fixed", "5/60s bucket burst=5", "1/7s, 5/60s"} {
		t.Run(rules, func(t *testing.T) {
			within(t, "  - {key: k, rules: ["+rules+"]}\n", func(w *world) {
				l := w.join("one").Limiter("k")
				var spends []oracle.Spend
				<-time.After(11*time.Minute + 39*time.Second) // not where a fixed window begins
				told := 0
				for len(spends) < 12 {
					h, err := briefly(l)
					var refused *worker.RefusedError
					if err != nil && !errors.As(err, &refused) {
						require.ErrorIs(t, err, context.DeadlineExceeded) // what is held might have come back in time
						continue
					}
					if err != nil {
						require.Positive(t, refused.Wait)
						told++
						<-time.After(refused.Wait)
						h, err = briefly(l)
						require.NoError(t, err, "after a wait of %v", refused.Wait)
					}
					spends = append(spends, spendOf(h, 1))
					h.Finish()
				}
				require.Positive(t, told)
				require.Empty(t, oracle.Violations(spends, oracle.MustRules(rules)))
			})
		})
	}
}

// briefly acquires with little patience.
func briefly(l *worker.Limiter) (*worker.Handle, error) {
	ctx, cancel := soon(50 * time.Millisecond)
	defer cancel()
	return l.Acquire(ctx, 1)
}
