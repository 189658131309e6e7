package algo_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

func TestCounterEstimates(t *testing.T) {
	minute := utc("2026-01-15 12:00:00")
	t.Run("80, 30 and 40 % give 78", func(t *testing.T) {
		w := exact(t, "100/1m counter").Window(minute)
		require.Equal(t, 80, spendAll(&w, minute.Add(10*time.Second), 80))
		now := minute.Add(time.Minute)
		require.Equal(t, int64(80), w.Spent(now))
		require.Equal(t, 20, spendAll(&w, now, 30))
		now = now.Add(24 * time.Second)
		require.Equal(t, 10, spendAll(&w, now, 10))
		require.Equal(t, int64(78), w.Spent(now))
		require.Equal(t, int64(22), w.Free(now))
	})
	t.Run("100 at :59, at 1:01 exactly one", func(t *testing.T) {
		w := exact(t, "100/1m counter").Window(minute)
		require.Equal(t, 100, spendAll(&w, minute.Add(59*time.Second), 200))
		require.Equal(t, 0, spendAll(&w, minute.Add(60*time.Second), 1))
		require.Equal(t, 1, spendAll(&w, minute.Add(61*time.Second), 100))
		require.Equal(t, 0, spendAll(&w, minute.Add(61*time.Second), 100))
	})
	t.Run("rounded up", func(t *testing.T) {
		w := exact(t, "10/3ns counter").Window(0)
		require.Equal(t, 10, spendAll(&w, 2, 20))
		require.Equal(t, int64(10), w.Spent(3))
		require.Equal(t, int64(7), w.Spent(4), "20/3 of the 10")
		require.Equal(t, int64(4), w.Spent(5), "10/3 of the 10")
		require.Zero(t, w.Spent(6))
	})
	t.Run("periods are half open", func(t *testing.T) {
		w := exact(t, "1/100ms counter").Window(minute)
		require.Equal(t, 1, spendAll(&w, minute, 5))
		require.Equal(t, 0, spendAll(&w, minute.Add(200*ms-1), 5))
		require.Equal(t, 1, spendAll(&w, minute.Add(200*ms), 5))
	})
	t.Run("wherever time begins", func(t *testing.T) {
		for _, origin := range []algo.Instant{-5e9, 0, 1<<63 - 1 - 3600e9} {
			w := exact(t, "4/100ms counter").Window(origin)
			start := origin.Add(-time.Duration(origin%1e8+1e8) % 1e8).Add(200 * ms)
			var granted []int
			for i := range time.Duration(12) {
				granted = append(granted, spendAll(&w, start.Add(i*25*ms), 4))
			}
			require.Equal(t, []int{4, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1}, granted, origin)
		}
	})
}

func TestCounterNeverLocksForGood(t *testing.T) {
	second := utc("2026-01-15 12:00:00")
	w := exact(t, "1/1s counter").Window(second)
	granted := map[time.Duration]int{}
	for i := range time.Duration(200) {
		if spendAll(&w, second.Add(i*100*ms), 1) == 1 {
			granted[i/10]++
		}
	}
	require.Len(t, granted, 10)
	for period, n := range granted {
		require.Equal(t, 1, n, period)
	}
}

func TestCounterRemembersThePeriodBefore(t *testing.T) {
	hour := utc("2026-01-15 00:00:00")
	spec := exact(t, "10/1h counter")
	w := spec.Window(hour)
	require.Equal(t, 1, spendAll(&w, hour, 1))
	require.Equal(t, 8, spendAll(&w, hour.Add(59*time.Minute), 8))
	w = spec.Restore(w.State(hour.Add(time.Hour)))
	require.Equal(t, 1, spendAll(&w, hour.Add(61*time.Minute), 10))
	require.False(t, w.Idle(hour.Add(2*time.Hour)))
	require.True(t, w.Idle(hour.Add(3*time.Hour)))
}

// A held token weighs in full, in whichever period; its age is not used.
func TestCounterCountsASpendWhenItIsSettled(t *testing.T) {
	minute := utc("2026-01-15 12:00:00")
	w := exact(t, "10/1m counter").Window(minute)
	w.Take(minute, 10)
	now := minute.Add(10*time.Minute + 30*time.Second)
	require.Zero(t, w.Free(now))
	w.Settle(now, 10, minute)
	require.Zero(t, w.Free(minute.Add(11*time.Minute)))
	require.Equal(t, int64(5), w.Free(minute.Add(11*time.Minute+30*time.Second)))
}

func TestCounterWaitsForWhatIsDue(t *testing.T) {
	minute := utc("2026-01-15 12:00:00")
	w := exact(t, "10/1m counter").Window(minute)
	w.Take(minute, 10)
	w.Settle(minute, 4, minute)
	due := []algo.Due{{At: minute.Add(-time.Hour), N: 1}, {At: minute.Add(5 * time.Minute), N: 5}}
	for n, want := range map[int64]time.Duration{
		1:  time.Minute + 12*time.Second,
		5:  2 * time.Minute,
		6:  6*time.Minute + 12*time.Second,
		10: 7 * time.Minute,
	} {
		wait, ok := w.Wait(minute, n, due)
		require.True(t, ok)
		require.Equal(t, want, wait, n)
	}
	_, ok := w.Wait(minute, 11, due)
	require.False(t, ok)
}

// No hard bound: who spends late in one period and patiently in the next gets one
// less than twice the limit into a trailing window; nobody gets more.
func TestCountersWorstTrailingWindow(t *testing.T) {
	minute := utc("2026-01-15 12:00:00")
	width := int64(time.Minute)
	for _, limit := range []int64{1, 2, 10, 100} {
		w := exact(t, fmt.Sprintf("%d/1m counter", limit)).Window(minute)
		now := minute.Add(time.Minute - 1)
		require.Equal(t, int(limit), spendAll(&w, now, 1000))
		spends := []spend{{int64(now), limit}}
		for {
			wait, ok := w.Wait(now, 1, nil)
			require.True(t, ok)
			if now = now.Add(wait); now > minute.Add(3*time.Minute) {
				break
			}
			spends = append(spends, spend{int64(now), int64(spendAll(&w, now, 1000))})
		}
		worst := mostTrailing(spends, width)
		t.Logf("limit %d: %d in a trailing window", limit, worst)
		require.Equal(t, 2*limit-1, worst)
	}
	spec := exact(t, "10/1m counter")
	for seed := range uint64(40) {
		m := newMachine(t, fmt.Sprint("seed ", seed), spec, seeded(seed))
		m.run(300)
		m.drain()
		require.LessOrEqual(t, mostTrailing(m.spends, width), int64(19), m.where())
	}
}

// exactLog is a list of instants within one window, oldest first.
type exactLog struct {
	width time.Duration
	at    []algo.Instant
}

func (l *exactLog) in(now algo.Instant) int64 {
	for len(l.at) > 0 && now.Sub(l.at[0]) >= l.width {
		l.at = l.at[1:]
	}
	return int64(len(l.at))
}

// A million arrivals at random, some at a steady rate and some in bursts: each is
// decided by the counter, and by an exact log of what the counter let through.
// At the limit one token more or less turns a decision, so decisions differ often
// and the counts little.
func TestCounterAgreesWithAnExactLog(t *testing.T) {
	const limit, arrivals = 100, 250_000
	for _, c := range []struct {
		name   string
		demand float64 // in limits
		bursts bool
		// agree is how many decisions are alike, apart how far the estimate is
		// from what the log counts, in the mean and in limits.
		agree, apart float64
	}{
		{"half the limit", 0.5, false, 0.9999, 0.05},
		{"the limit", 1, false, 0.85, 0.05},
		{"twice the limit", 2, false, 0.6, 0.05},
		{"the limit, in bursts", 1, true, 0.74, 0.15},
	} {
		t.Run(c.name, func(t *testing.T) {
			random := seeded(1)
			w := exact(t, fmt.Sprintf("%d/1m counter", limit)).Window(at)
			log := exactLog{width: time.Minute}
			gap := float64(time.Minute) / limit / c.demand
			var alike, beyond, within, granted int
			var apart, most int64
			for now, i := at, 0; i < arrivals; i++ {
				now = now.Add(time.Duration(random.ExpFloat64() * gap * burstiness(c.bursts, random)))
				allowed, counted := w.Free(now) > 0, log.in(now)
				apart += max(counted-w.Spent(now), w.Spent(now)-counted)
				switch fits := counted < limit; {
				case allowed == fits:
					alike++
				case allowed:
					beyond++
				default:
					within++
				}
				if allowed {
					granted++
					w.Take(now, 1)
					w.Settle(now, 1, now)
					log.at = append(log.at, now)
					most = max(most, counted+1)
				}
			}
			agreement, mean := float64(alike)/arrivals, float64(apart)/arrivals/limit
			t.Logf("%d arrivals, %d granted: %.2f %% decided as by an exact log, %.2f %% granted beyond it, %.2f %% refused within it; "+
				"the counts are %.2f %% of the limit apart, at most %d were in a trailing window",
				arrivals, granted, 100*agreement, 100*float64(beyond)/arrivals, 100*float64(within)/arrivals, 100*mean, most)
			require.GreaterOrEqual(t, agreement, c.agree)
			require.LessOrEqual(t, mean, c.apart)
			require.Less(t, most, int64(2*limit))
		})
	}
}

// burstiness makes most gaps short and a few long, of the same mean.
func burstiness(bursts bool, random *rand.Rand) float64 {
	switch {
	case !bursts:
		return 1
	case random.IntN(20) == 0:
		return 15.25
	}
	return 0.25
}

// In two seconds across a boundary a fixed window lets through twice its limit, a
// counter little more than the limit, and a sliding window the limit.
func TestFixedLetsTwiceItsLimitThroughAcrossABoundary(t *testing.T) {
	boundary := utc("2026-01-15 12:01:00")
	for text, want := range map[string]int{
		"100/1m fixed":   200,
		"100/1m":         100,
		"100/1m counter": 101,
	} {
		t.Run(text, func(t *testing.T) {
			w := exact(t, text).Window(boundary.Add(-time.Minute))
			got := spendAll(&w, boundary.Add(-time.Second), 1000)
			got += spendAll(&w, boundary.Add(time.Second-1), 1000)
			require.Equal(t, want, got)
		})
	}
}
