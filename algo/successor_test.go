package algo_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

var successorRules = []string{"10/1s", "10/1s fixed", "10/1s bucket", "10/1s bucket burst=4", "10/1s counter", "10/1s pace", "4 concurrent"}

// TestUnboundCountsAsBound: a window under a spec without its limit, to which the same
// happens, is bit for bit what the bound one is when it comes under the limit again.
func TestUnboundCountsAsBound(t *testing.T) {
	for _, text := range successorRules {
		for _, guard := range []time.Duration{0, 30 * time.Millisecond} {
			random := rand.New(rand.NewPCG(1, 2))
			rule, err := algo.ParseRule(text)
			require.NoError(t, err)
			spec := algo.Compile(rule, algo.Allowance{Guard: guard})
			now := algo.Instant(1_800_000_000_000_000_000)
			bound, unbound := spec.Window(now), spec.Unbound().Window(now)
			for range 2000 {
				now = now.Add(time.Duration(random.Int64N(int64(120 * time.Millisecond))))
				switch n := 1 + random.Int64N(3); random.IntN(3) {
				case 0:
					if n = min(n, bound.Free(now)); n > 0 {
						bound.Take(now, n)
						unbound.Take(now, n)
					}
				case 1:
					n = min(n, bound.Held())
					bound.Return(now, n)
					unbound.Return(now, n)
				default:
					n = min(n, bound.Held())
					at := now.Add(-time.Duration(random.Int64N(int64(time.Millisecond))))
					bound.Settle(now, n, at)
					unbound.Settle(now, n, at)
				}
				n := random.Int64N(12)
				require.Equal(t, bound.Free(now) < n, unbound.Short(now, n, spec), "%s under %v: %d of %d free", text, guard, n, bound.Free(now))
				require.Greater(t, unbound.Free(now), int64(1<<60), text)
				if random.IntN(10) == 0 {
					again := spec.Unbound().Restore(unbound.State(now))
					again.Adopt(now, spec)
					require.Equal(t, bound.State(now), again.State(now), "%s under %v", text, guard)
				}
			}
		}
	}
}

// TestAddedKnowsOfBefore: a window that is added has what was held, beyond its limit too,
// and what another remembers as spent.
func TestAddedKnowsOfBefore(t *testing.T) {
	now := algo.Instant(1_800_000_000_000_000_000)
	from := algo.Compile(mustRule(t, "100/1m"), algo.Allowance{}).Window(now)
	from.Take(now, 30)
	from.Settle(now, 10, now)
	now = now.Add(30 * time.Second)
	from.Settle(now, 5, now)
	for text, want := range map[string]struct{ free, held, spent int64 }{
		"50/1m":           {20, 15, 15},
		"10/1m":           {0, 15, 15},
		"50/10s":          {30, 15, 5},
		"50/1m bucket":    {20, 15, 15},
		"20/1m bucket":    {0, 15, 5}, // no debt
		"50/1m counter":   {20, 15, 15},
		"50/1m pace":      {0, 15, 35},
		"40/1h fixed":     {10, 15, 15},
		"40/1d fixed":     {10, 15, 15},
		"50/1s counter":   {20, 15, 15},
		"1000000/10s":     {999_980, 15, 5},
		"50/10s unit=img": {30, 15, 5},
	} {
		w := algo.Compile(mustRule(t, text), algo.Allowance{}).Added(now, from.Held(), from.Spends(now))
		require.Equal(t, want.held, w.Held(), text)
		require.Equal(t, want.spent, w.Spent(now), text)
		require.Equal(t, want.free, w.Free(now), text)
	}
}

// TestSpendsAreNeverDatedEarly: what a window gives to another is dated no earlier than it
// happened, and is no less than what it counts.
func TestSpendsAreNeverDatedEarly(t *testing.T) {
	now := algo.Instant(1_800_000_000_000_000_000)
	for _, text := range successorRules {
		for _, guard := range []time.Duration{0, 30 * time.Millisecond} {
			w := algo.Compile(mustRule(t, text), algo.Allowance{Guard: guard}).Window(now)
			w.Take(now, 3)
			w.Settle(now, 3, now)
			later := now.Add(20 * time.Millisecond)
			n := int64(0)
			for _, m := range w.Spends(later) {
				require.GreaterOrEqual(t, m.At, now, text)
				require.LessOrEqual(t, m.At, later.Add(guard), text)
				n += m.N
			}
			switch w.Spent(later) {
			case 0: // a slot
				require.Zero(t, n, text)
			default:
				require.GreaterOrEqual(t, n, min(w.Spent(later), 1), text)
			}
		}
	}
}

// TestSlowerPaceCountsFromTheLastSpend: also where that was settled before.
func TestSlowerPaceCountsFromTheLastSpend(t *testing.T) {
	now := algo.Instant(1_800_000_000_000_000_000)
	w := algo.Compile(mustRule(t, "10/1s pace"), algo.Allowance{}).Window(now)
	w.Take(now, 1)
	w.Settle(now, 1, now)
	w.Adopt(now, algo.Compile(mustRule(t, "1/1s pace"), algo.Allowance{}))
	require.Zero(t, w.Free(now.Add(time.Second-1)))
	require.Equal(t, int64(1), w.Free(now.Add(time.Second)))
	w.Take(now.Add(time.Second), 1)
	w.Settle(now.Add(time.Second), 1, now.Add(time.Second))
	w.Adopt(now.Add(time.Second), algo.Compile(mustRule(t, "10/1s pace"), algo.Allowance{}))
	require.Zero(t, w.Free(now.Add(2*time.Second-1)), "a faster one waits for the gap that was told")
	require.Equal(t, int64(10), w.Free(now.Add(2*time.Second)))
}

func mustRule(t *testing.T, text string) algo.Rule {
	t.Helper()
	r, err := algo.ParseRule(text)
	require.NoError(t, err)
	return r
}
