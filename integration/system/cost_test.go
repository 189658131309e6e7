package system

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
	"ration/worker"
)

// TestImpossibleCostFailsAtOnce: a cost above what some rule could ever
// grant is refused for ever, whatever the caller's patience and the other rules.
func TestImpossibleCostFailsAtOnce(t *testing.T) {
	for _, rules := range []string{"10/1s", "10/1s fixed", "100/1s bucket burst=10", "1000/1s, 10/1h", "0/1s", "0 concurrent"} {
		t.Run(rules, func(t *testing.T) {
			within(t, "  - {key: k, rules: ["+rules+"]}\n  - {key: k/deep, rules: [unlimited]}\n", func(w *world) {
				one := w.join("one")
				began := time.Now()
				for _, key := range []lease.Key{"k", "k/deep"} {
					for _, patience := range []time.Duration{time.Millisecond, time.Hour} {
						ctx, cancel := soon(patience)
						_, err := one.Limiter(key).Acquire(ctx, 11)
						cancel()
						var refused *worker.RefusedError
						require.ErrorAs(t, err, &refused)
						require.True(t, refused.Never(), "%v", err)
						require.Zero(t, max(0, refused.Wait))
					}
				}
				require.Less(t, time.Since(began), 50*time.Millisecond)
				require.Zero(t, w.status().Stats.Granted)
			})
		})
	}
}

// TestSenselessCostChangesNothing: it is an error that names the number.
func TestSenselessCostChangesNothing(t *testing.T) {
	within(t, "  - {key: k, rules: [10/1h]}\n", func(w *world) {
		one := w.join("one")
		l := one.Limiter("k")
		acquired(t, l, 3).Finish()
		before := one.Stats()
		for _, n := range []int64{0, -1, math.MinInt64} {
			require.False(t, l.AllowN(n))
			require.ErrorContains(t, l.WaitN(context.Background(), n), fmt.Sprint(n))
			_, err := l.Acquire(context.Background(), n)
			require.ErrorContains(t, err, fmt.Sprint(n))
		}
		h := acquired(t, l, 4)
		err := h.Settle(-1)
		require.ErrorContains(t, err, "-1")
		require.ErrorContains(t, err, "4")
		require.Equal(t, before.Spent+4, one.Stats().Spent)
		h = acquired(t, l, 1)
		require.ErrorContains(t, h.Settle(math.MaxInt64), fmt.Sprint(math.MaxInt64))
		require.EqualValues(t, 8, one.Stats().Spent)
	})
}

// TestRefusedLargeCallLeavesWhatIsThere: of 10, 8 are used; 5 are refused,
// and then exactly two more are granted one by one, for every rule, asked of the
// coordinator and asked locally.
func TestRefusedLargeCallLeavesWhatIsThere(t *testing.T) {
	for _, rules := range []string{"10/1h", "10/1h fixed", "10/1h bucket", "10/1h, 20/2h"} {
		for _, local := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, local %t", rules, local), func(t *testing.T) {
				within(t, "  - {key: k, rules: ["+rules+"]}\n", func(w *world) {
					l := w.join("one").Limiter("k")
					ask := func(n int64) bool {
						if local {
							return l.AllowN(n) || allowsSoon(l, n)
						}
						ctx, cancel := soon(50 * time.Millisecond)
						defer cancel()
						h, err := l.Acquire(ctx, n)
						if err != nil {
							return false
						}
						h.Finish()
						return true
					}
					require.True(t, ask(8))
					require.False(t, ask(5))
					require.True(t, ask(1))
					require.True(t, ask(1))
					require.False(t, ask(1))
				})
			})
		}
	}
}

// allowsSoon tries again while a refill may be on its way.
func allowsSoon(l *worker.Limiter, n int64) bool {
	for range 100 {
		<-time.After(20 * time.Millisecond)
		if l.AllowN(n) {
			return true
		}
	}
	return false
}

// TestAllowLetsThroughWhatTheBucketHas: a hundred callers that ask without
// waiting, ten seconds long, get what the bucket gives, no more and hardly less.
func TestAllowLetsThroughWhatTheBucketHas(t *testing.T) {
	for _, workers := range []int{1, 4} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			within(t, "  - {key: k, rules: [10/1s bucket]}\n", func(w *world) {
				var limiters []*worker.Limiter
				for i := range workers {
					limiters = append(limiters, w.join(fmt.Sprint("w", i)).Limiter("k"))
				}
				served := 0
				for range 10_000 { // a caller of a hundred each millisecond
					for _, l := range limiters {
						if l.Allow() {
							served++
						}
					}
					<-time.After(time.Millisecond)
				}
				require.LessOrEqual(t, served, 110)
				require.GreaterOrEqual(t, served, 95)
			})
		})
	}
}
