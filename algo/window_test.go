package algo_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

func TestLimitZeroRefusesAlways(t *testing.T) {
	for _, text := range []string{"0/1s", "0/1s fixed", "0/1s bucket", "0/1s bucket burst=0", "0/1s counter", "0/1s pace", "0 concurrent"} {
		t.Run(text, func(t *testing.T) {
			spec := exact(t, text)
			w := spec.Window(at)
			require.Zero(t, spec.Max())
			require.Equal(t, 0, spendAll(&w, at, 1000))
			_, ok := w.Wait(at, 1, nil)
			require.False(t, ok)
			require.Zero(t, w.Free(math.MaxInt64))
		})
	}
	t.Run("0/1s bucket burst=1", func(t *testing.T) {
		w := exact(t, "0/1s bucket burst=1").Window(at)
		require.Equal(t, 1, spendAll(&w, at, 1000))
		_, ok := w.Wait(at, 1, nil)
		require.False(t, ok)
		require.Equal(t, 0, spendAll(&w, math.MaxInt64, 1000))
	})
}

// The burst that each kind of rule allows within one trailing window.
func TestWorstTrailingWindowIsWhatTheRuleSays(t *testing.T) {
	for text, worst := range map[string]int64{
		"2/10s":                2,
		"2/10s fixed":          4,
		"2/10s bucket burst=2": 4,
		"2/10s counter":        3,
		"2/10s pace":           2,
	} {
		t.Run(text, func(t *testing.T) {
			w := exact(t, text).Window(at)
			var spends []spend
			for now := at; now < at.Add(time.Minute); now = now.Add(10 * ms) {
				if n := spendAll(&w, now, 5); n > 0 {
					spends = append(spends, spend{int64(now), int64(n)})
				}
			}
			most := mostTrailing(spends, int64(10*time.Second))
			require.LessOrEqual(t, most, worst)
			require.GreaterOrEqual(t, most, int64(2))
		})
	}
}

func TestReturnedTokensComeBackOnce(t *testing.T) {
	for _, text := range []string{"10/1s", "10/1s fixed", "10/1s bucket", "10/1s counter", "10 concurrent"} {
		t.Run("together "+text, func(t *testing.T) {
			w := exact(t, text).Window(at)
			w.Take(at, 9)
			w.Return(at.Add(100*ms), 9)
			require.Equal(t, int64(10), w.Free(at.Add(200*ms)))
			require.Equal(t, int64(10), w.Free(at.Add(1001*ms)))
		})
		t.Run("one by one "+text, func(t *testing.T) {
			w := exact(t, text).Window(at)
			for i := range time.Duration(9) {
				now := at.Add(i * 100 * ms)
				w.Take(now, 1)
				w.Return(now, 1)
			}
			w.Take(at.Add(1001*ms), 1)
			require.Equal(t, int64(9), w.Free(at.Add(1001*ms)))
		})
		t.Run("some of them "+text, func(t *testing.T) {
			w := exact(t, text).Window(at)
			w.Take(at, 10)
			require.Zero(t, w.Free(at.Add(ms)))
			w.Return(at.Add(ms), 3)
			require.Equal(t, int64(3), w.Free(at.Add(ms)))
			w.Take(at.Add(ms), 3)
			require.Zero(t, w.Free(at.Add(ms)))
		})
	}
}

func TestMoreThanTheRuleCouldGrantIsNever(t *testing.T) {
	for _, text := range []string{"10/1s", "10/1s fixed", "10/1s bucket", "1/1s bucket burst=10", "10/1s counter", "10/1s pace", "10 concurrent"} {
		t.Run(text, func(t *testing.T) {
			spec := exact(t, text)
			require.Equal(t, int64(10), spec.Max())
			w := spec.Window(at)
			_, ok := w.Wait(at, 11, nil)
			require.False(t, ok)
			wait, ok := w.Wait(at, 10, nil)
			require.True(t, ok)
			require.Zero(t, wait)
		})
	}
}

func TestRefusedLargeAskBurnsNothing(t *testing.T) {
	for _, text := range []string{"10/1h", "10/1h fixed", "10/1h bucket", "10/1h counter", "10 concurrent"} {
		t.Run(text, func(t *testing.T) {
			w := exact(t, text).Window(at)
			w.Take(at, 8)
			before := w.State(at)
			require.Less(t, w.Free(at), int64(5))
			w.Wait(at, 5, nil)
			require.Equal(t, before, w.State(at))
			require.Equal(t, int64(2), w.Free(at))
			w.Take(at, 1)
			w.Take(at, 1)
			require.Zero(t, w.Free(at))
		})
	}
}

func TestMovingWhatIsNotTherePanicsWithBothNumbers(t *testing.T) {
	held := func() *algo.Window {
		w := exact(t, "10/1s").Window(at)
		w.Take(at, 7)
		return &w
	}
	for want, move := range map[string]func(w *algo.Window){
		`algo: take of 4 with 3 free under "10/1s"`:                             func(w *algo.Window) { w.Take(at, 4) },
		`algo: take of -1 with 3 free under "10/1s"`:                            func(w *algo.Window) { w.Take(at, -1) },
		`algo: return of 8 with 7 held under "10/1s"`:                           func(w *algo.Window) { w.Return(at, 8) },
		`algo: return of -1 with 7 held under "10/1s"`:                          func(w *algo.Window) { w.Return(at, -1) },
		`algo: settle of 8 with 7 held under "10/1s"`:                           func(w *algo.Window) { w.Settle(at, 8, at) },
		`algo: settle of -1 with 7 held under "10/1s"`:                          func(w *algo.Window) { w.Settle(at, -1, at) },
		fmt.Sprintf("algo: settle at %d of a spend at %d, 1ns later", at, at+1): func(w *algo.Window) { w.Settle(at, 1, at+1) },
		`algo: wait with 8 due where 7 of 7 held are left`:                      func(w *algo.Window) { w.Wait(at, 5, []algo.Due{{At: at, N: 8}}) },
		`algo: wait with -1 due where 7 of 7 held are left`:                     func(w *algo.Window) { w.Wait(at, 5, []algo.Due{{At: at, N: -1}}) },
		`algo: wait with due at 1 after due at 2`:                               func(w *algo.Window) { w.Wait(at, 5, []algo.Due{{At: 2, N: 1}, {At: 1, N: 1}}) },
	} {
		t.Run(want, func(t *testing.T) {
			w := held()
			before := w.State(at)
			require.PanicsWithValue(t, want, func() { move(w) })
			require.Equal(t, before, w.State(at))
		})
	}
}

func TestCutSlotIsFreeAGuardLater(t *testing.T) {
	w := algo.Compile(must(t, "1 concurrent"), algo.Allowance{Guard: 50 * ms}).Window(at)
	w.Take(at, 1)
	w.Return(at.Add(time.Hour), 1)
	require.Equal(t, int64(1), w.Free(at.Add(time.Hour)), "the upstream has answered")
	w.Take(at.Add(time.Hour), 1)
	cut := at.Add(2 * time.Hour)
	w.Settle(cut, 1, cut)
	require.Zero(t, w.Free(cut.Add(50*ms-1)))
	require.Equal(t, int64(1), w.Free(cut.Add(50*ms)))
}

func TestUnlimitedIsNeverMet(t *testing.T) {
	w := exact(t, "unlimited").Window(at)
	for range 100 {
		w.Take(at, algo.MaxLimit)
	}
	require.GreaterOrEqual(t, w.Free(at), algo.MaxLimit)
	require.Equal(t, 100*algo.MaxLimit, w.Held())
	w.Settle(at, 100*algo.MaxLimit, at)
	require.True(t, w.Idle(at))
}

// Under a lower limit what is held and spent stays; nothing is free until enough
// of it is back, and never a negative number.
func TestLowerLimitShowsNoNegativeFree(t *testing.T) {
	for rule, lower := range map[string]string{
		"10/1s":         "4/1s",
		"10/1s fixed":   "4/1s fixed",
		"10/1s bucket":  "4/1s bucket",
		"10/1s counter": "4/1s counter",
		"10 concurrent": "4 concurrent",
	} {
		t.Run(rule, func(t *testing.T) {
			w := exact(t, rule).Window(at)
			w.Take(at, 9)
			w.Settle(at, 3, at)
			spec := exact(t, lower)
			low := spec.Restore(w.State(at))
			require.Zero(t, low.Free(at))
			require.Equal(t, w.Held(), low.Held())
			require.Equal(t, w.Spent(at), low.Spent(at))
			low.Return(at, 6)
			wait, ok := low.Wait(at, 4, nil)
			require.True(t, ok)
			require.Equal(t, int64(4), low.Free(at.Add(wait)))
			require.True(t, low.Idle(at.Add(2*time.Second)))
		})
	}
}

func TestHigherLimitIsFreeAtOnce(t *testing.T) {
	for rule, higher := range map[string]string{
		"10/1h":         "20/1h",
		"10/1h fixed":   "20/1h fixed",
		"10/1h bucket":  "20/1h bucket",
		"10/1h counter": "20/1h counter",
	} {
		t.Run(rule, func(t *testing.T) {
			w := exact(t, rule).Window(at)
			require.Equal(t, 10, spendAll(&w, at, 50))
			w = exact(t, higher).Restore(w.State(at))
			require.Equal(t, 10, spendAll(&w, at, 15))
		})
	}
}

func TestRestoreMendsWhatStateNeverGives(t *testing.T) {
	for _, c := range lawful {
		spec := algo.Compile(must(t, c.rule), c.allowance)
		for _, state := range []algo.State{
			{},
			{Seen: at, Held: -1, Spent: -1, Own: -1, Marks: []algo.Mark{{At: at, N: -1}}},
			{Seen: at, Held: math.MaxInt64, Spent: math.MaxInt64, Own: math.MaxInt64, Marks: []algo.Mark{
				{At: at, N: math.MaxInt64}, {At: at.Add(-1), N: math.MaxInt64},
			}},
			{Seen: at, Held: math.MinInt64, Spent: math.MinInt64, Own: math.MinInt64},
		} {
			w := spec.Restore(state)
			require.GreaterOrEqual(t, w.Held(), int64(0))
			require.GreaterOrEqual(t, w.Spent(at), int64(0))
			require.GreaterOrEqual(t, w.Free(at), int64(0))
			require.LessOrEqual(t, w.Free(at), spec.Max())
			held := w.Held()
			w.Settle(at, held, at)
			w.Wait(at, 1, nil)
			require.GreaterOrEqual(t, w.Spent(at.Add(time.Hour)), int64(0), "%s: %+v", c.rule, state)
		}
	}
}

func TestRestoreSortsMarks(t *testing.T) {
	w := exact(t, "10/1s").Restore(algo.State{Seen: at.Add(600 * ms), Spent: 9, Marks: []algo.Mark{
		{At: at.Add(500 * ms), N: 2}, {At: at, N: 1},
	}})
	require.Equal(t, int64(7), w.Free(at.Add(600*ms)), "marks are trusted over their sum")
	require.Equal(t, int64(7), w.Free(at.Add(time.Second-1)))
	require.Equal(t, int64(8), w.Free(at.Add(time.Second)))
	require.Equal(t, int64(10), w.Free(at.Add(1500*ms)))
}

func TestInstantsStopAtTheirEnds(t *testing.T) {
	const first, last algo.Instant = math.MinInt64, math.MaxInt64
	require.Equal(t, last, last.Add(1))
	require.Equal(t, first, first.Add(-1))
	require.Equal(t, algo.Instant(7), algo.Instant(5).Add(2))
	require.Equal(t, time.Duration(math.MaxInt64), last.Sub(-1))
	require.Equal(t, time.Duration(math.MinInt64), first.Sub(1))
	require.Equal(t, time.Duration(math.MaxInt64), last.Sub(first))
	require.Equal(t, time.Duration(-2), algo.Instant(5).Sub(7))
	require.True(t, first.Before(last) && last.After(first) && !first.After(first) && !first.Before(first))
}
