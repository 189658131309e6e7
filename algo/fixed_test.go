package algo_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

func utc(text string) algo.Instant {
	parsed, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return algo.Instant(parsed.UnixNano())
}

func TestFixedPeriodsStartOnTheCalendar(t *testing.T) {
	for _, c := range []struct {
		rule, first, boundary string
	}{
		{"1/1s fixed", "2026-01-15 15:11:39", "2026-01-15 15:11:40"},
		{"1/7s fixed", "1970-01-01 00:00:05", "1970-01-01 00:00:07"},
		{"1/7s fixed", "1969-12-31 23:59:54", "1970-01-01 00:00:00"},
		{"1/90m fixed", "2026-01-15 00:10:00", "2026-01-15 01:30:00"},
		{"1/1d fixed", "2026-02-28 23:59:59", "2026-03-01 00:00:00"},
		{"1/1d fixed", "1969-12-30 12:00:00", "1969-12-31 00:00:00"},
		{"1/1w fixed", "2026-01-18 23:59:59", "2026-01-19 00:00:00"},
		{"1/1w fixed", "2026-01-12 00:00:00", "2026-01-19 00:00:00"},
		{"1/1w fixed", "1970-01-01 00:00:00", "1970-01-05 00:00:00"},
		{"1/1w fixed", "1969-12-28 23:00:00", "1969-12-29 00:00:00"},
		{"1/1mo fixed", "2028-02-29 12:00:00", "2028-03-01 00:00:00"},
		{"1/1mo fixed", "2026-12-31 23:59:59", "2027-01-01 00:00:00"},
		{"1/1mo fixed", "1969-11-01 00:00:00", "1969-12-01 00:00:00"},
	} {
		t.Run(c.rule+" "+c.first, func(t *testing.T) {
			now, boundary := utc(c.first), utc(c.boundary)
			w := exact(t, c.rule).Window(now)
			require.Equal(t, 1, spendAll(&w, now, 2))
			wait, ok := w.Wait(now, 1, nil)
			require.True(t, ok)
			require.Equal(t, boundary.Sub(now), wait)
			require.Equal(t, 0, spendAll(&w, boundary-1, 1))
			require.Equal(t, 1, spendAll(&w, boundary, 2))
		})
	}
}

func TestDayResetsOnceAtMidnight(t *testing.T) {
	w := exact(t, "100/day fixed tz=UTC").Window(utc("2026-01-15 23:50:00"))
	require.Equal(t, 100, spendAll(&w, utc("2026-01-15 23:50:00"), 200))
	require.Equal(t, 100, spendAll(&w, utc("2026-01-16 00:05:00"), 200))
	require.Equal(t, 0, spendAll(&w, utc("2026-01-16 00:06:00"), 1))
	require.Equal(t, 0, spendAll(&w, utc("2026-01-16 12:00:00"), 1))
	require.Equal(t, 100, spendAll(&w, utc("2026-01-17 00:00:00"), 200))
}

func TestFixedPeriodIsHalfOpen(t *testing.T) {
	noon := utc("2026-01-15 12:00:00")
	w := exact(t, "1/100ms fixed").Window(noon)
	require.Equal(t, 1, spendAll(&w, noon, 3))
	require.Equal(t, 0, spendAll(&w, noon.Add(100*ms-1), 1))
	for i := time.Duration(1); i < 10; i++ {
		require.Equal(t, 1, spendAll(&w, noon.Add(i*100*ms), 3), i)
	}
}

func TestFixedPeriodNeverGoesBack(t *testing.T) {
	noon := utc("2026-01-15 12:00:00")
	w := exact(t, "5/60s fixed").Window(noon)
	require.Equal(t, 5, spendAll(&w, noon.Add(30*time.Second), 9))
	require.Equal(t, 0, spendAll(&w, noon.Add(20*time.Second), 1))
	require.Equal(t, 3, spendAll(&w, noon.Add(62*time.Second), 3))
	require.Equal(t, 2, spendAll(&w, noon.Add(58*time.Second), 9))
	require.Equal(t, 5, spendAll(&w, noon.Add(time.Hour), 10))
}

// Held tokens may be spent on either side of a boundary, so they count on both.
func TestHeldTokensCountInTheNextPeriodToo(t *testing.T) {
	now := utc("2026-01-15 12:00:59")
	next := utc("2026-01-15 12:01:00")
	spec := exact(t, "5/1m fixed")
	w := spec.Window(now)
	w.Take(now, 3)
	require.Equal(t, int64(2), w.Free(next))
	t.Run("spent before the boundary", func(t *testing.T) {
		w := spec.Restore(w.State(next))
		w.Settle(next, 3, next-1)
		require.Equal(t, int64(5), w.Free(next))
	})
	t.Run("spent at the boundary", func(t *testing.T) {
		w := spec.Restore(w.State(next))
		w.Settle(next, 3, next)
		require.Equal(t, int64(2), w.Free(next.Add(time.Minute-1)))
		require.Equal(t, int64(5), w.Free(next.Add(time.Minute)))
	})
	t.Run("due after two boundaries", func(t *testing.T) {
		due := []algo.Due{{At: next.Add(time.Minute), N: 3}}
		wait, ok := w.Wait(next, 5, due)
		require.True(t, ok)
		require.Equal(t, 2*time.Minute, wait)
	})
}

// The age of a spend comes from a clock that may run fast: near a boundary the
// spend counts on the side that is against the caller.
func TestFixedDatesSpendsLaterByTheClockAllowance(t *testing.T) {
	boundary := utc("2026-01-15 12:00:00")
	spec := algo.Compile(must(t, "5/1h fixed"), algo.Allowance{PPM: 200})
	now := boundary.Add(10 * time.Second)
	// A fast clock may make 2 ms too much of 10 s.
	for before, free := range map[time.Duration]int64{
		2 * ms:           4,
		2*ms + 401:       4,
		2*ms + 402:       5,
		2*ms + 500*ms/10: 5,
	} {
		w := spec.Window(boundary.Add(-time.Minute))
		w.Take(boundary.Add(-time.Minute), 1)
		w.Settle(now, 1, boundary.Add(-before))
		require.Equal(t, free, w.Free(now), before)
	}
}

// What is due later has no age yet, however far clocks may be apart.
func TestClockAllowanceLeavesLaterDuesAlone(t *testing.T) {
	noon := utc("2026-01-15 12:00:00")
	for _, ppm := range []int64{0, 200, 600_000, 1_000_000} {
		w := algo.Compile(must(t, "5/1h fixed"), algo.Allowance{PPM: ppm}).Window(noon)
		w.Take(noon, 5)
		wait, ok := w.Wait(noon, 1, []algo.Due{{At: noon.Add(90 * time.Minute), N: 5}})
		require.True(t, ok)
		require.Equal(t, 2*time.Hour, wait, ppm)
	}
}

func TestCalendarReachesItsEnds(t *testing.T) {
	for _, text := range []string{
		"5/1h fixed", "5/1d fixed", "5/1w fixed", "5/1mo fixed", "5/1h fixed tz=Europe/Berlin", "5/1d fixed tz=Pacific/Auckland",
		"5/1w fixed tz=America/Havana", "5/1mo fixed tz=America/New_York", "5/7h counter", "5/1ns counter",
	} {
		for _, now := range []algo.Instant{math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64} {
			w := exact(t, text).Window(now)
			require.Equal(t, 5, spendAll(&w, now, 9), "%s at %d", text, now)
			wait, ok := w.Wait(now, 5, nil)
			if now < 0 {
				require.True(t, ok, "%s at %d", text, now)
				require.Equal(t, int64(5), w.Free(now.Add(wait)), "%s at %d", text, now)
			} else {
				require.False(t, ok, "%s at %d", text, now)
			}
		}
	}
}
