package algo_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

func TestBucketRefillsToTheNanosecond(t *testing.T) {
	t.Run("periods that do not divide", func(t *testing.T) {
		w := exact(t, "10/13s bucket burst=1").Window(at)
		for i := range time.Duration(1000) {
			now := at.Add(i * 1300 * ms)
			require.Equal(t, 1, spendAll(&w, now, 2), i)
			wait, ok := w.Wait(now.Add(1300*ms-1), 1, nil)
			require.True(t, ok)
			require.Equal(t, time.Duration(1), wait)
		}
	})
	t.Run("polled often", func(t *testing.T) {
		w := exact(t, "1/1h bucket burst=1").Window(at)
		require.Equal(t, 1, spendAll(&w, at, 2))
		for polled := 7 * time.Second; polled < time.Hour; polled += 7 * time.Second {
			require.Equal(t, 0, spendAll(&w, at.Add(polled), 1), polled)
		}
		require.Equal(t, 0, spendAll(&w, at.Add(time.Hour-1), 1))
		require.Equal(t, 1, spendAll(&w, at.Add(time.Hour), 2))
		require.Equal(t, 1, spendAll(&w, at.Add(10*day), 500))
	})
}

func TestBucketNeverOverflows(t *testing.T) {
	for _, text := range []string{
		"1000000/1s bucket burst=1000000000",
		"1000000000000000/1d bucket",
		"1000000000000000/1ns bucket",
	} {
		t.Run(text, func(t *testing.T) {
			spec := exact(t, text)
			for _, idle := range []time.Duration{12 * time.Hour, 30 * day, 3650 * day, math.MaxInt64} {
				w := spec.Window(at)
				w.Take(at, 1)
				w.Settle(at, 1, at)
				now := at.Add(idle)
				require.Equal(t, spec.Max(), w.Free(now))
				w.Take(now, spec.Max())
				require.Zero(t, w.Free(now))
			}
		})
	}
	t.Run("more than there ever is", func(t *testing.T) {
		w := exact(t, "1/1y bucket burst=1000").Window(at)
		_, ok := w.Wait(at, math.MaxInt64, nil)
		require.False(t, ok)
		before := w.State(at)
		require.Panics(t, func() { w.Take(at, math.MaxInt64) })
		require.Equal(t, before, w.State(at))
		w.Take(at, 1000)
		w.Settle(at, 1000, at)
		wait, ok := w.Wait(at, 1, nil)
		require.True(t, ok)
		require.Equal(t, 365*day, wait)
		_, ok = w.Wait(at, 1000, nil)
		require.False(t, ok, "a thousand years are more than an instant reaches")

		w = exact(t, "1000000000000000/1d").Window(at)
		w.Take(at, algo.MaxLimit)
		require.Zero(t, w.Free(at))
	})
}

func TestFastRatesAreLimitedWithoutDrift(t *testing.T) {
	t.Run("burst", func(t *testing.T) {
		w := exact(t, "6000/1s bucket burst=6000").Window(at)
		for left := int64(5999); left >= 0; left-- {
			require.Equal(t, 1, spendAll(&w, at, 1))
			require.Equal(t, left, w.Free(at))
		}
		require.Equal(t, 0, spendAll(&w, at, 6000))
	})
	for _, text := range []string{
		"2000/1s bucket burst=1",
		"1000000/1h bucket burst=1",
		"1000000000/1s bucket burst=100",
		"3/1s bucket burst=1",
		"7/1s bucket burst=3",
	} {
		t.Run(text, func(t *testing.T) {
			spec := exact(t, text)
			w := spec.Window(at)
			var granted int64
			now := at
			for range 3000 {
				n := w.Free(now)
				w.Take(now, n)
				w.Settle(now, n, now)
				granted += n
				wait, ok := w.Wait(now, min(spec.Max(), 7), nil)
				require.True(t, ok)
				now = now.Add(wait)
			}
			rule := spec.Rule()
			flowed := float64(rule.Limit) * (float64(now.Sub(at)) / float64(rule.Span()))
			require.InDelta(t, float64(spec.Max())+flowed, float64(granted+w.Free(now)), 1)
		})
	}
}

func TestWaitCountsWhatIsThereAlready(t *testing.T) {
	t.Run("one of two is there", func(t *testing.T) {
		w := exact(t, "1/1s bucket burst=3").Window(at)
		require.Equal(t, 2, spendAll(&w, at, 2))
		wait, ok := w.Wait(at, 2, nil)
		require.True(t, ok)
		require.Equal(t, time.Second, wait)
	})
	t.Run("a refusal between", func(t *testing.T) {
		w := exact(t, "1/1s bucket burst=1").Window(at)
		require.Equal(t, 1, spendAll(&w, at, 1))
		require.Equal(t, 0, spendAll(&w, at.Add(200*ms), 1))
		wait, ok := w.Wait(at.Add(200*ms), 1, nil)
		require.True(t, ok)
		require.Equal(t, 800*ms, wait)
		require.Equal(t, 1, spendAll(&w, at.Add(time.Second), 1))
	})
}

func TestIdleBucketHoldsNoMoreThanItsBurst(t *testing.T) {
	w := exact(t, "10/30s bucket").Window(at)
	w.Take(at, 5)
	w.Settle(at, 3, at)
	w.Return(at, 2)
	require.Equal(t, int64(10), w.Free(at.Add(10*time.Minute)))
}

func TestOlderInstantsMintNothing(t *testing.T) {
	for _, text := range []string{"10/1s bucket", "10/1s", "10/1s fixed", "10/1s counter"} {
		t.Run(text, func(t *testing.T) {
			w := exact(t, text).Window(at)
			granted := 0
			for range 1000 {
				granted += spendAll(&w, at.Add(10*time.Second), 1)
				granted += spendAll(&w, at.Add(9*time.Second), 1)
			}
			require.Equal(t, 10, granted)
			require.Equal(t, at.Add(10*time.Second), w.State(at).Seen)
		})
	}
}

// A held token keeps the bucket from filling to the brim, and refilling starts
// when it is settled: its age would refill twice.
func TestBucketFillsUpToBurstLessHeld(t *testing.T) {
	w := exact(t, "10/1s bucket").Window(at)
	w.Take(at, 10)
	w.Settle(at, 4, at)
	now := at.Add(time.Hour)
	require.Equal(t, int64(4), w.Free(now))
	w.Settle(now, 6, at)
	require.Equal(t, int64(4), w.Free(now))
	require.Equal(t, int64(4), w.Free(now.Add(100*ms-1)))
	require.Equal(t, int64(5), w.Free(now.Add(100*ms)))
}

func TestBucketWaitsForWhatIsDue(t *testing.T) {
	w := exact(t, "10/1s bucket").Window(at)
	w.Take(at, 10)
	due := []algo.Due{{At: at.Add(5 * time.Second), N: 4}, {At: at.Add(6 * time.Second), N: 6}}
	for n, want := range map[int64]time.Duration{
		1:  5100 * ms,
		4:  5400 * ms,
		5:  6100 * ms,
		10: 6600 * ms,
	} {
		wait, ok := w.Wait(at, n, due)
		require.True(t, ok)
		require.Equal(t, want, wait, n)
	}
	wait, ok := w.Wait(at, 10, nil)
	require.True(t, ok)
	require.Zero(t, wait, "everything held could be returned now")
}

// What is settled in the very instant of a refill changes nothing about it.
func TestBucketWaitEndsInTheInstantOfADue(t *testing.T) {
	w := exact(t, "3/1s bucket").Window(at)
	w.Take(at, 3)
	w.Settle(at, 2, at)
	third := time.Second/3 + 1
	for _, shift := range []time.Duration{-1, 0, 1} {
		wait, ok := w.Wait(at, 1, []algo.Due{{At: at.Add(third + shift), N: 1}})
		require.True(t, ok)
		require.Equal(t, third, wait, shift)
	}
}

func TestBucketRefillsWhileItIsInUse(t *testing.T) {
	t.Run("a call each second", func(t *testing.T) {
		w := exact(t, "10/30s bucket").Window(at)
		var left []int64
		for second := range time.Duration(10) {
			now := at.Add(second * time.Second)
			require.Equal(t, 1, spendAll(&w, now, 1))
			left = append(left, w.Free(now))
		}
		require.Equal(t, []int64{9, 8, 7, 7, 6, 5, 5, 4, 3, 3}, left)
	})
	t.Run("after a rest", func(t *testing.T) {
		for _, idle := range []time.Duration{4 * time.Second, 30 * time.Second, time.Hour} {
			w := exact(t, "1/1s bucket burst=3").Window(at)
			require.Equal(t, 1, spendAll(&w, at, 1))
			now := at.Add(idle)
			require.Equal(t, 3, spendAll(&w, now, 100))
			for second := range time.Duration(20) {
				require.Equal(t, 0, spendAll(&w, now.Add((second+1)*time.Second-1), 100))
				require.Equal(t, 1, spendAll(&w, now.Add((second+1)*time.Second), 100))
			}
		}
	})
}
