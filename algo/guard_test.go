package algo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

func guarded(t testing.TB, text string, guard time.Duration) *algo.Spec {
	t.Helper()
	return algo.Compile(must(t, text), algo.Allowance{Guard: guard})
}

func TestSpendNearABoundaryCountsOnBothSides(t *testing.T) {
	const guard = 2 * time.Second
	boundary := utc("2026-01-15 12:01:00")
	spec := guarded(t, "10/1m fixed", guard)
	for _, c := range []struct {
		spent time.Duration // after the boundary
		// counts is how long after the boundary it counts.
		counts time.Duration
	}{
		{-30 * time.Second, guard},
		{-guard - 1, guard},
		{-guard, guard + time.Minute},
		{-1, guard + time.Minute},
		{0, guard + time.Minute},
		{guard, guard + time.Minute},
		{time.Minute - guard - 1, guard + time.Minute},
		{time.Minute - guard, guard + 2*time.Minute},
	} {
		t.Run(c.spent.String(), func(t *testing.T) {
			now, back := boundary.Add(c.spent), boundary.Add(c.counts)
			w := spec.Window(now)
			require.Equal(t, 10, spendAll(&w, now, 12))
			wait, ok := w.Wait(now, 1, nil)
			require.True(t, ok)
			require.Equal(t, back.Sub(now), wait)
			require.Zero(t, w.Free(back-1))
			require.Equal(t, int64(10), w.Free(back))
			require.True(t, w.Idle(back))
		})
	}
}

// After a boundary what is asked for may be counted in the period before, so it
// has to fit that as well; once it cannot, only what reached over is left.
func TestTakeAfterABoundaryFitsThePeriodBefore(t *testing.T) {
	const guard = 2 * time.Second
	boundary := utc("2026-01-15 12:01:00")
	w := guarded(t, "10/1m fixed", guard).Window(boundary.Add(-30 * time.Second))
	require.Equal(t, 5, spendAll(&w, boundary.Add(-30*time.Second), 5))
	require.Equal(t, 3, spendAll(&w, boundary.Add(-time.Second), 3))
	require.Equal(t, int64(2), w.Free(boundary))
	require.Equal(t, 2, spendAll(&w, boundary.Add(time.Second), 9))
	require.Zero(t, w.Free(boundary.Add(guard-1)))
	require.Equal(t, int64(5), w.Free(boundary.Add(guard)))
	require.Equal(t, algo.State{
		Seen: boundary.Add(guard), Spent: 5, Own: int64(guard), Marks: []algo.Mark{{At: boundary, N: 5}},
	}, w.State(boundary.Add(guard)))
}

func TestHeldTokensCountInEachPeriodInReach(t *testing.T) {
	const guard = 90 * time.Second
	boundary := utc("2026-01-15 12:01:00")
	w := guarded(t, "10/1m fixed", guard).Window(boundary)
	w.Take(boundary, 4)
	for range 10 {
		boundary = boundary.Add(time.Minute)
		require.Equal(t, int64(6), w.Free(boundary))
	}
	w.Settle(boundary, 4, boundary.Add(-time.Second))
	// As late as at +89 s, so up to the period that ends at +120 s, and that is in reach for a
	// guard longer.
	require.Equal(t, int64(6), w.Free(boundary.Add(210*time.Second-1)))
	require.Equal(t, int64(10), w.Free(boundary.Add(210*time.Second)))
}

func TestGuardOfManyPeriodsKeepsFewMarks(t *testing.T) {
	for _, text := range []string{"1000000/1s fixed", "1000000/1s counter"} {
		t.Run(text, func(t *testing.T) {
			w := guarded(t, text, 24*time.Hour).Window(at)
			most := 0
			for second := range time.Duration(300_000) {
				now := at.Add(second * time.Second)
				if w.Free(now) > 0 {
					w.Take(now, 1)
					w.Settle(now, 1, now)
				}
				if second%1000 == 0 {
					most = max(most, len(w.State(now).Marks))
				}
			}
			require.LessOrEqual(t, most, 600)
			require.GreaterOrEqual(t, most, 400)
		})
	}
}

func TestGuardShrinksABucketsBurst(t *testing.T) {
	for _, c := range []struct {
		rule  string
		guard time.Duration
		burst int64
		says  string
	}{
		{"100/1m bucket burst=50", 0, 50, ""},
		{"100/1m bucket burst=50", 1, 49, ""},
		{"100/1m bucket burst=50", 600 * ms, 49, ""},
		{"100/1m bucket burst=50", 600*ms + 1, 48, ""},
		{"100/1m bucket burst=50", 29400 * ms, 1, ""},
		{"100/1m bucket burst=50", 29400*ms + 1, 0, "a guard of 29400000001ns takes 50 of a burst of 50, and nothing is ever granted; write burst=51 or more, or a shorter guard"},
		{"100/1m bucket burst=50", algo.MaxPeriod, 0, "write burst=525600001 or more, or a shorter guard"},
		{"10/1s bucket burst=1", 50 * ms, 0, "write burst=2 or more"},
		{"1000000000000000/1ns bucket", algo.MaxPeriod, 0, "nothing is ever granted; write a shorter guard"},
		{"0/1s bucket burst=5", time.Hour, 5, ""},
		{"0/1s bucket", time.Hour, 0, ""},
		{"10/1s", time.Hour, 10, ""},
		{"10/1s fixed", time.Hour, 10, ""},
		{"10/1s counter", time.Hour, 10, ""},
		{"10/1s pace", time.Hour, 10, ""},
		{"10 concurrent", time.Hour, 10, ""},
	} {
		t.Run(fmt.Sprint(c.rule, c.guard), func(t *testing.T) {
			spec := guarded(t, c.rule, c.guard)
			require.Equal(t, c.burst, spec.Max())
			w := spec.Window(at)
			require.Equal(t, c.burst, w.Limit())
			require.Equal(t, c.burst, w.Free(at))
			_, ok := w.Wait(at, c.burst+1, nil)
			require.False(t, ok)
			problem, remedy := spec.Rule().Starved(c.guard)
			if c.says == "" {
				require.Empty(t, problem+remedy)
				return
			}
			require.Contains(t, problem+"; "+remedy, c.says)
			require.Zero(t, w.Free(at.Add(365*day)))
		})
	}
}

// The remedy is the smallest burst that will do.
func TestStarvedBucketIsToldWhatSuffices(t *testing.T) {
	rule := must(t, "7/3s bucket burst=2")
	problem, _ := rule.Starved(time.Second)
	require.Contains(t, problem, "takes 3 of a burst of 2")
	rule.Burst = 3
	problem, _ = rule.Starved(time.Second)
	require.NotEmpty(t, problem)
	rule.Burst = 4
	problem, _ = rule.Starved(time.Second)
	require.Empty(t, problem)
	require.Equal(t, int64(1), algo.Compile(rule, algo.Allowance{Guard: time.Second}).Max())
}

// A policy may change the guard. What was spent under another one is forgotten
// neither at once nor ever after.
func TestSpendsOutliveAChangeOfGuard(t *testing.T) {
	guards := []time.Duration{0, 50 * ms, 700 * ms, 5 * time.Second}
	for _, text := range []string{"10/1s fixed", "10/1s counter", "10/1s"} {
		for _, before := range guards {
			for _, after := range guards {
				t.Run(fmt.Sprint(text, before, after), func(t *testing.T) {
					now := at.Add(400 * ms)
					w := guarded(t, text, before).Window(now)
					require.Equal(t, 6, spendAll(&w, now, 6))
					w.Take(now, 1)
					spec := guarded(t, text, after)
					again := spec.Restore(w.State(now))
					require.Equal(t, int64(1), again.Held())
					require.Equal(t, int64(6), again.Spent(now))
					require.Equal(t, int64(3), again.Free(now))
					state := again.State(now)
					twin := spec.Restore(state)
					require.Equal(t, state, twin.State(now))
					plain := exact(t, text).Restore(w.State(now))
					wait, ok := again.Wait(now, 10, nil)
					require.True(t, ok)
					soonest, ok := plain.Wait(now, 10, nil)
					require.True(t, ok)
					require.GreaterOrEqual(t, wait, soonest)
					again.Return(now, 1)
					require.True(t, again.Idle(now.Add(2*time.Second+2*(before+after))))
				})
			}
		}
	}
}

func TestGuardedWindowsReachTheEndsOfTime(t *testing.T) {
	for _, text := range []string{"5/1h fixed", "5/1mo fixed tz=Europe/Berlin", "5/1h counter", "5/1h", "5/1h bucket"} {
		for _, guard := range []time.Duration{time.Minute, 3 * time.Hour} {
			for _, now := range []algo.Instant{-1 << 63, -1<<63 + 1, 1<<63 - 2, 1<<63 - 1} {
				where := fmt.Sprintf("%s under %v at %d", text, guard, now)
				w := guarded(t, text, guard).Window(now)
				most := int(w.Limit())
				require.Equal(t, most, spendAll(&w, now, 99), where)
				if most == 0 {
					continue
				}
				wait, ok := w.Wait(now, int64(most), nil)
				require.Equal(t, now < 0, ok, where)
				if ok {
					require.Equal(t, int64(most), w.Free(now.Add(wait)), where)
				}
			}
		}
	}
}
