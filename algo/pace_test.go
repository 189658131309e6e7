package algo_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

func TestNothingOfAPaceIsFreeUntilItsGapIsOver(t *testing.T) {
	w := exact(t, "10/1s pace").Window(at)
	require.Equal(t, int64(10), w.Free(at))
	w.Take(at, 4)
	require.Zero(t, w.Free(at), "a run holds the rule")
	require.Equal(t, int64(6), w.Spent(at))
	w.Settle(at, 1, at)
	require.Zero(t, w.Free(at.Add(time.Hour)), "three are held")
	now := at.Add(time.Hour)
	w.Settle(now, 3, now.Add(-200*ms))
	require.Zero(t, w.Free(now), "three were spent 200 ms ago")
	require.Equal(t, int64(10), w.Spent(now.Add(100*ms-1)))
	require.Equal(t, int64(10), w.Free(now.Add(100*ms)))
	require.True(t, w.Idle(now.Add(100*ms)))
}

func TestReturnedRunIsFreeWhenItsSpendsAllow(t *testing.T) {
	w := exact(t, "10/1s pace").Window(at)
	t.Run("nothing spent", func(t *testing.T) {
		w.Take(at, 9)
		w.Return(at.Add(100*ms), 9)
		require.Equal(t, int64(10), w.Free(at.Add(100*ms)), "nothing was spent")
	})
	t.Run("some spent", func(t *testing.T) {
		now := at.Add(200 * ms)
		w.Take(now, 9)
		w.Settle(now, 1, now)
		w.Return(now.Add(ms), 8)
		require.Zero(t, w.Free(now.Add(100*ms-1)))
		require.Equal(t, int64(10), w.Free(now.Add(100*ms)))
	})
	t.Run("some held", func(t *testing.T) {
		now := at.Add(time.Second)
		w.Take(now, 10)
		w.Return(now, 3)
		require.Zero(t, w.Free(now), "seven are held")
	})
}

func TestPaceScenarios(t *testing.T) {
	t.Run("a call each gap", func(t *testing.T) {
		w := exact(t, "1/100ms pace").Window(at)
		for i := range time.Duration(10) {
			now := at.Add(i * 100 * ms)
			require.Equal(t, 1, spendAll(&w, now, 5), i)
			require.Equal(t, 0, spendAll(&w, now.Add(100*ms-1), 1), i)
		}
	})
	t.Run("wherever time begins", func(t *testing.T) {
		for _, origin := range []algo.Instant{math.MinInt64, -5e9, 0, at, math.MaxInt64 - 3600e9} {
			w := exact(t, "3/1s pace").Window(origin)
			var granted []int
			for i := range time.Duration(9) {
				granted = append(granted, spendAll(&w, origin.Add(i*200*ms), 2))
			}
			require.Equal(t, []int{1, 0, 1, 0, 1, 0, 1, 0, 1}, granted, origin)
		}
	})
	t.Run("a wait as long as it is told", func(t *testing.T) {
		w := exact(t, "1/100ms pace").Window(at)
		admitted := 0
		for now := at; now < at.Add(2*time.Second); {
			admitted += spendAll(&w, now, 100)
			wait, ok := w.Wait(now, 1, nil)
			require.True(t, ok)
			now = now.Add(wait)
		}
		require.Equal(t, 20, admitted)
	})
	t.Run("instants that go back", func(t *testing.T) {
		w := exact(t, "10/1s pace").Window(at)
		granted := 0
		for range 1000 {
			granted += spendAll(&w, at.Add(10*time.Second), 1)
			granted += spendAll(&w, at.Add(9*time.Second), 1)
		}
		require.Equal(t, 1, granted)
	})
}

// One call at a time, or runs of any size: the rate is the rule's, whatever does
// not divide.
func TestFastPacesDoNotDrift(t *testing.T) {
	for _, text := range []string{"3/1s pace", "6000/1s pace", "1000000/1h pace", "1000000000/1s pace", "7/1s pace"} {
		t.Run(text, func(t *testing.T) {
			spec := exact(t, text)
			for _, run := range []int64{1, spec.Max()} {
				w := spec.Window(at)
				now, spent := at, int64(0)
				for range 3000 {
					require.Equal(t, spec.Max(), w.Free(now))
					w.Take(now, run)
					w.Settle(now, run, now)
					spent += run
					wait, ok := w.Wait(now, 1, nil)
					require.True(t, ok)
					now = now.Add(wait)
				}
				flowed := float64(spec.Max()) * (float64(now.Sub(at)) / float64(time.Second))
				if spec.Rule().Span() == time.Hour {
					flowed /= 3600
				}
				require.InDelta(t, flowed, float64(spent), 1, "runs of %d", run)
			}
		})
	}
}

func TestGapIsWhatOneTokenKeepsTheNextFrom(t *testing.T) {
	for _, c := range []struct {
		rule      string
		allowance algo.Allowance
		gap       time.Duration
	}{
		{"10/1s pace", algo.Allowance{}, 100 * ms},
		{"3/1s pace", algo.Allowance{}, 333_333_334},
		{"10/1s pace", algo.Allowance{PPM: 200}, 100*ms + 20*time.Microsecond},
		{"10/1s pace", algo.Allowance{Guard: 50 * ms}, 150 * ms},
		{"3/1s pace", algo.Allowance{Guard: 1, PPM: 1}, 333_333_668},
		{"1000000000000000/1d pace", algo.Allowance{}, 1},
		{"1/3650d pace", algo.Allowance{Guard: algo.MaxPeriod, PPM: 1_000_000}, 3 * algo.MaxPeriod},
		{"0/1s pace", algo.Allowance{Guard: time.Second}, 0},
		{"10/1s", algo.Allowance{}, 0},
		{"10/1s bucket burst=1", algo.Allowance{}, 0},
		{"4 concurrent", algo.Allowance{Guard: time.Second}, 0},
	} {
		t.Run(fmt.Sprint(c.rule, c.allowance), func(t *testing.T) {
			spec := algo.Compile(must(t, c.rule), c.allowance)
			require.Equal(t, c.gap, spec.Gap())
			if c.gap == 0 {
				return
			}
			w := spec.Window(at)
			w.Take(at, 1)
			w.Settle(at, 1, at)
			require.Zero(t, w.Free(at.Add(c.gap-1)))
			require.Equal(t, spec.Max(), w.Free(at.Add(c.gap)))
		})
	}
}

// A cost keeps the rule for as many gaps as it has tokens, rounded up once.
func TestCostOfAPaceIsSoManyGaps(t *testing.T) {
	for _, c := range []struct {
		allowance algo.Allowance
		n         int64
		gaps      time.Duration
	}{
		{algo.Allowance{}, 1, 333_333_334},
		{algo.Allowance{}, 2, 666_666_667},
		{algo.Allowance{}, 3, time.Second},
		{algo.Allowance{Guard: 10 * ms}, 3, 1030 * ms},
		{algo.Allowance{PPM: 200}, 3, 1000_200 * time.Microsecond},
	} {
		w := algo.Compile(must(t, "3/1s pace"), c.allowance).Window(at)
		w.Take(at, c.n)
		w.Settle(at, c.n, at)
		wait, ok := w.Wait(at, 1, nil)
		require.True(t, ok)
		require.Equal(t, c.gaps, wait)
		require.Zero(t, w.Free(at.Add(c.gaps-1)))
		require.Equal(t, int64(3), w.Free(at.Add(c.gaps)))
	}
}

func TestPaceWaitsForItsRun(t *testing.T) {
	w := exact(t, "10/1s pace").Window(at)
	w.Take(at, 5)
	wait, ok := w.Wait(at, 10, nil)
	require.True(t, ok)
	require.Zero(t, wait, "all of it could be returned now")
	for _, c := range []struct {
		due  []algo.Due
		want time.Duration
	}{
		{[]algo.Due{{At: at.Add(500 * ms), N: 5}}, time.Second},
		{[]algo.Due{{At: at.Add(500 * ms), N: 1}}, 600 * ms},
		{[]algo.Due{{At: at.Add(-time.Second), N: 5}}, 0},
		{[]algo.Due{{At: at.Add(100 * ms), N: 4}, {At: at.Add(200 * ms), N: 1}}, 500 * ms},
		{[]algo.Due{{At: at.Add(500 * ms), N: 0}}, 0},
	} {
		wait, ok := w.Wait(at, 1, c.due)
		require.True(t, ok)
		require.Equal(t, c.want, wait, c.due)
	}
}

// What was spent under one limit keeps the next spend from as long under another.
func TestPaceOutlivesAChangeOfItsLimit(t *testing.T) {
	w := exact(t, "10/1s pace").Window(at)
	w.Take(at, 6)
	w.Settle(at, 2, at)
	for _, text := range []string{"4/1s pace", "20/1s pace"} {
		spec := exact(t, text)
		again := spec.Restore(w.State(at))
		require.Equal(t, int64(4), again.Held())
		require.Zero(t, again.Free(at))
		require.Equal(t, spec.Max()-4, again.Spent(at))
		again.Return(at, 4)
		require.Equal(t, spec.Max(), again.Spent(at))
		wait, ok := again.Wait(at, 4, nil)
		require.True(t, ok)
		require.Equal(t, 200*ms, wait)
		require.Equal(t, spec.Max(), again.Free(at.Add(200*ms)))
	}
	low := exact(t, "2/1s pace").Restore(w.State(at))
	require.Zero(t, low.Free(at))
	require.Zero(t, low.Spent(at), "four are held of two")
	low.Return(at, 4)
	require.True(t, low.Idle(at.Add(200*ms)))
}

// Nothing is free any more where the gaps reach the end of time.
func TestPaceStopsAtTheEndOfTime(t *testing.T) {
	for _, now := range []algo.Instant{math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64} {
		w := algo.Compile(must(t, "5/1h pace"), algo.Allowance{Guard: time.Minute}).Window(now)
		require.Equal(t, 1, spendAll(&w, now, 99), now)
		wait, ok := w.Wait(now, 5, nil)
		require.Equal(t, now < 0, ok, now)
		if ok {
			require.Equal(t, int64(5), w.Free(now.Add(wait)), now)
		}
	}
	w := algo.Compile(must(t, "1000000000000000/3650d pace"), algo.Allowance{Guard: algo.MaxPeriod}).Window(at)
	w.Take(at, algo.MaxLimit)
	w.Settle(at, algo.MaxLimit, at)
	_, ok := w.Wait(at, 1, nil)
	require.False(t, ok)
	require.Zero(t, w.Free(math.MaxInt64))
}

// What is charged keeps a pace busy for as many gaps more, up to a limit of them.
func TestChargeOfAPaceIsSoManyGaps(t *testing.T) {
	w := exact(t, "10/1s pace").Window(at)
	require.Equal(t, int64(3), w.Charge(at, 3, at))
	require.Equal(t, int64(2), w.Charge(at, 2, at))
	wait, ok := w.Wait(at, 1, nil)
	require.True(t, ok)
	require.Equal(t, 500*ms, wait)
	require.Equal(t, int64(5), w.Charge(at, 100, at), "a limit in all")
	wait, _ = w.Wait(at, 1, nil)
	require.Equal(t, time.Second, wait)
	require.Zero(t, w.Free(at.Add(time.Second-1)))
	require.Equal(t, int64(10), w.Free(at.Add(time.Second)))
}
