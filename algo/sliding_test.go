package algo_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

const ms = time.Millisecond

// spendAll takes and spends up to n at once, one by one, and gives how many.
func spendAll(w *algo.Window, now algo.Instant, n int) int {
	done := 0
	for range n {
		if w.Free(now) >= 1 {
			w.Take(now, 1)
			w.Settle(now, 1, now)
			done++
		}
	}
	return done
}

func TestSlidingWindowIsHalfOpen(t *testing.T) {
	for name, origin := range map[string]algo.Instant{
		"today":                 at,
		"before the epoch":      -algo.Instant(5 * time.Second),
		"epoch":                 0,
		"last hour":             math.MaxInt64 - algo.Instant(time.Hour),
		"first instant":         math.MinInt64,
		"just before the epoch": -1,
	} {
		t.Run(name, func(t *testing.T) {
			w := exact(t, "1/100ms").Window(origin)
			require.Equal(t, 1, spendAll(&w, origin, 3))
			require.Equal(t, 0, spendAll(&w, origin.Add(100*ms-1), 1))
			for i := time.Duration(1); i < 10; i++ {
				require.Equal(t, 1, spendAll(&w, origin.Add(i*100*ms), 3), i)
			}
		})
	}
}

func TestEqualInstantsAreCountedEach(t *testing.T) {
	spec := exact(t, "10/1s")
	w := spec.Window(at)
	require.Equal(t, 10, spendAll(&w, at, 100))
	state := w.State(at)
	require.Equal(t, []algo.Mark{{At: at, N: 10}}, state.Marks)
	w = spec.Restore(state)
	require.Equal(t, 0, spendAll(&w, at.Add(time.Second-1), 100))
	require.Equal(t, 10, spendAll(&w, at.Add(time.Second), 100))
}

func TestRefusalLeavesNoTrace(t *testing.T) {
	w := exact(t, "2/4s").Window(at)
	var granted []int
	for second := range 60 {
		if spendAll(&w, at.Add(time.Duration(second)*time.Second), 1) == 1 {
			granted = append(granted, second)
		}
	}
	require.Len(t, granted, 30)
	require.Equal(t, []int{0, 1, 4, 5, 8, 9}, granted[:6])
}

func TestSlidingForgetsNothingInsideItsWindow(t *testing.T) {
	spec := exact(t, "10/1h")
	w := spec.Window(at)
	require.Equal(t, 1, spendAll(&w, at, 1))
	require.Equal(t, 8, spendAll(&w, at.Add(59*time.Minute), 8))
	w = spec.Restore(w.State(at.Add(time.Hour)))
	require.Equal(t, 2, spendAll(&w, at.Add(61*time.Minute), 10))
}

// A held token counts in full until it is settled, and from then for a whole
// window; so a token held long is out for the hold and the window.
func TestAgeStartsAtTheSpend(t *testing.T) {
	w := exact(t, "1/1s").Window(at)
	w.Take(at, 1)
	later := at.Add(10 * time.Second)
	require.Zero(t, w.Free(later))
	w.Settle(later, 1, later.Add(-300*ms))
	require.Zero(t, w.Free(later.Add(700*ms-1)))
	require.Equal(t, int64(1), w.Free(later.Add(700*ms)))
}

func TestSpendOlderThanTheWindowIsFreeAtOnce(t *testing.T) {
	w := exact(t, "1/1s").Window(at)
	w.Take(at, 1)
	w.Settle(at.Add(time.Second), 1, at)
	require.Equal(t, int64(1), w.Free(at.Add(time.Second)))
	require.True(t, w.Idle(at))
}

func TestAllowanceLengthensTheWindow(t *testing.T) {
	for _, c := range []struct {
		rule      string
		allowance algo.Allowance
		span      time.Duration
	}{
		{"1/1s", algo.Allowance{}, time.Second},
		{"1/1s", algo.Allowance{Guard: 60 * ms}, 1060 * ms},
		{"1/1s", algo.Allowance{PPM: 200}, time.Second + time.Second/5000},
		{"1/1s", algo.Allowance{Guard: 1, PPM: 200}, time.Second + time.Second/5000 + 1},
		{"1/7ns", algo.Allowance{PPM: 1}, 8},
		{"1/3650d", algo.Allowance{PPM: 1_000_000, Guard: algo.MaxPeriod}, 3 * algo.MaxPeriod},
		{"1/1s bucket", algo.Allowance{PPM: 200}, time.Second + time.Second/5000},
		{"3/1s bucket burst=1", algo.Allowance{PPM: 1}, (time.Second + 1000 + 2) / 3},
		{"1/1s bucket burst=3", algo.Allowance{Guard: 1500 * ms}, time.Second},
		{"1/1s counter", algo.Allowance{PPM: 200}, 2 * time.Second},
		{"1/1s counter", algo.Allowance{Guard: 60 * ms}, 2060 * ms},
		{"1/1s fixed", algo.Allowance{Guard: 60 * ms, PPM: 200}, 1060 * ms},
		{"1 concurrent", algo.Allowance{}, 0},
		{"1 concurrent", algo.Allowance{Guard: 50 * ms, PPM: 200}, 50 * ms},
		{"unlimited", algo.Allowance{Guard: 50 * ms, PPM: 200}, 0},
	} {
		t.Run(fmt.Sprint(c.rule, c.allowance), func(t *testing.T) {
			w := algo.Compile(must(t, c.rule), c.allowance).Window(at)
			w.Take(at, 1)
			w.Settle(at, 1, at)
			wait, ok := w.Wait(at, w.Limit(), nil)
			require.True(t, ok)
			require.Equal(t, c.span, wait)
			if c.span > 0 {
				require.Less(t, w.Free(at.Add(c.span-1)), w.Limit())
			}
			require.Equal(t, w.Limit(), w.Free(at.Add(c.span)))
		})
	}
}

// The wait for the whole limit is when status says that it is reset.
func TestWindowReopensAtTheInstantTold(t *testing.T) {
	for name, c := range map[string]struct {
		rule string
		wait time.Duration
	}{
		"sliding": {"5/60s", time.Minute},
		"fixed":   {"5/60s fixed", 21 * time.Second},
		"bucket":  {"5/60s bucket", time.Minute},
		"counter": {"5/60s counter", 81 * time.Second},
		"Berlin":  {"5/1d fixed tz=Europe/Berlin", 7*time.Hour + 48*time.Minute + 21*time.Second},
		"day":     {"5/1d fixed", 8*time.Hour + 48*time.Minute + 21*time.Second},
		"week":    {"5/1w fixed", 3*day + 8*time.Hour + 48*time.Minute + 21*time.Second},
		"month":   {"5/1mo fixed", 16*day + 8*time.Hour + 48*time.Minute + 21*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := exact(t, c.rule).Window(at)
			require.Equal(t, 5, spendAll(&w, at, 9))
			wait, ok := w.Wait(at, 5, nil)
			require.True(t, ok)
			require.Equal(t, c.wait, wait)
			require.Less(t, w.Free(at.Add(wait-1)), int64(5))
			require.Equal(t, int64(5), w.Free(at.Add(wait)))
		})
	}
}
