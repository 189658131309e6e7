package algo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

// periodOf gives when the period of a fixed rule began that t lies in.
func periodOf(spec *algo.Spec, t algo.Instant) algo.Instant {
	began, _, _ := spec.Period(t)
	return began
}

func TestZonedPeriodsStartOnTheWall(t *testing.T) {
	for name, c := range map[string]struct {
		// starts are those of some periods in a row.
		rule   string
		starts []string
	}{
		"a day of 23 hours": {"1/1d fixed tz=Europe/Berlin", []string{
			"2026-03-27 23:00:00", "2026-03-28 23:00:00", "2026-03-29 22:00:00", "2026-03-30 22:00:00"}},
		"a day of 25 hours": {"1/1d fixed tz=Europe/Berlin", []string{
			"2026-10-23 22:00:00", "2026-10-24 22:00:00", "2026-10-25 23:00:00", "2026-10-26 23:00:00"}},
		"a skipped hour": {"1/1h fixed tz=Europe/Berlin", []string{
			"2026-03-28 23:00:00", "2026-03-29 00:00:00", "2026-03-29 01:00:00", "2026-03-29 02:00:00"}},
		"a repeated hour is one window": {"1/1h fixed tz=Europe/Berlin", []string{
			"2026-10-24 23:00:00", "2026-10-25 00:00:00", "2026-10-25 02:00:00", "2026-10-25 03:00:00"}},
		"also of minutes": {"1/20m fixed tz=Europe/Berlin", []string{
			"2026-10-24 23:40:00", "2026-10-25 00:00:00", "2026-10-25 02:00:00", "2026-10-25 02:20:00"}},
		"a window that ends after the repeated hour takes all of it": {"1/90m fixed tz=Europe/Berlin", []string{
			"2026-10-24 22:00:00", "2026-10-24 23:30:00", "2026-10-25 02:00:00", "2026-10-25 03:30:00"}},
		"a week with a skipped hour": {"1/1w fixed tz=Europe/Berlin", []string{
			"2026-03-15 23:00:00", "2026-03-22 23:00:00", "2026-03-29 22:00:00"}},
		"a month with a skipped hour": {"1/1mo fixed tz=Europe/Berlin", []string{
			"2026-01-31 23:00:00", "2026-02-28 23:00:00", "2026-03-31 22:00:00", "2026-04-30 22:00:00"}},
		"a midnight that does not exist": {"1/1d fixed tz=America/Sao_Paulo", []string{
			"2018-11-03 03:00:00", "2018-11-04 03:00:00", "2018-11-05 02:00:00"}},
		"a midnight that is shown twice": {"1/1d fixed tz=America/Havana", []string{
			"2026-10-31 04:00:00", "2026-11-01 04:00:00", "2026-11-02 05:00:00"}},
		"a day that does not exist": {"1/1d fixed tz=Pacific/Apia", []string{
			"2011-12-29 10:00:00", "2011-12-30 10:00:00", "2011-12-31 10:00:00"}},
		"half an hour repeated": {"1/1h fixed tz=Australia/Lord_Howe", []string{
			"2026-04-04 13:00:00", "2026-04-04 14:00:00", "2026-04-04 15:30:00", "2026-04-04 16:30:00"}},
		"a quarter of an hour off": {"1/1h fixed tz=Asia/Kathmandu", []string{
			"2026-01-15 12:15:00", "2026-01-15 13:15:00"}},
		"set back from a minute past midnight": {"1/1d fixed tz=America/St_Johns", []string{
			"2010-11-05 02:30:00", "2010-11-06 02:30:00", "2010-11-08 03:30:00"}},
		"long before the first rule": {"1/1d fixed tz=Europe/Berlin", []string{
			"1800-01-14 23:06:32", "1800-01-15 23:06:32"}},
		"the last day of a leap year without a table": {"1/1d fixed tz=Pacific/Auckland", []string{
			"2040-12-29 11:00:00", "2040-12-30 11:00:00", "2040-12-31 11:00:00", "2041-01-01 11:00:00"}},
		"long after the last": {"1/1d fixed tz=Europe/Berlin", []string{
			"2200-07-14 22:00:00", "2200-07-15 22:00:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := exact(t, c.rule)
			for i, text := range c.starts[:len(c.starts)-1] {
				start, end := utc(text), utc(c.starts[i+1])
				w := spec.Window(start)
				require.Equal(t, start, periodOf(spec, start))
				require.Equal(t, 1, spendAll(&w, start, 2))
				wait, ok := w.Wait(start, 1, nil)
				require.True(t, ok)
				require.Equal(t, end.Sub(start), wait, text)
				require.Equal(t, 0, spendAll(&w, end-1, 1))
				require.Equal(t, 1, spendAll(&w, end, 2))
			}
		})
	}
}

// zones are those with odd transitions: at midnight, past midnight, of half an
// hour and of three, over a whole day, in winter.
var zones = []string{
	"Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/Havana", "Australia/Lord_Howe", "America/St_Johns",
	"Pacific/Apia", "Asia/Gaza", "Africa/Cairo", "Atlantic/Azores", "Asia/Kathmandu", "Antarctica/Casey", "America/Nuuk",
	"Asia/Beirut", "America/Scoresbysund", "Africa/Casablanca", "Europe/Dublin", "Antarctica/Troll",
}

// onTheWall names the periods by what the wall shows, as upstreams do that know
// nothing of instants.
var onTheWall = map[string]func(time.Time) string{
	"1/1d fixed":  byDay,
	"1/1w fixed":  byWeek,
	"1/1mo fixed": byMonth,
	"1/1h fixed":  func(t time.Time) string { return t.Format("2006-01-02T15") },
	"1/20m fixed": func(t time.Time) string { return wallCell(t, 20*time.Minute) },
	"1/40m fixed": func(t time.Time) string { return wallCell(t, 40*time.Minute) },
	"1/7h fixed":  func(t time.Time) string { return wallCell(t, 7*time.Hour) },
}

func wallCell(t time.Time, period time.Duration) string {
	_, offset := t.Zone()
	return fmt.Sprint((t.Unix() + int64(offset)) / int64(period/time.Second))
}

// setTimes gives when a zone's clock is set in some years, and now and then when
// it is not: package time tells of a leap year's last day what is not so, where it
// has no table but a rule.
func setTimes(zone *time.Location) []time.Time {
	var all []time.Time
	for _, years := range [][2]int{{2005, 2029}, {2039, 2042}, {2088, 2090}} {
		for t := time.Date(years[0], 1, 1, 0, 0, 0, 0, zone); t.Year() < years[1]; {
			_, end := t.ZoneBounds()
			if end.IsZero() {
				break
			}
			if !end.After(t) {
				end = t.Add(day)
			}
			all = append(all, end)
			t = end
		}
	}
	return all
}

// around gives instants on both sides of one, so close that each name that the
// wall gives a period of that length is among those it gives them.
func around(set time.Time, period time.Duration) []algo.Instant {
	middle := algo.Instant(set.UnixNano())
	step := min(29*time.Minute, period/3) + time.Second
	var all []algo.Instant
	for i := range 2 * time.Duration(60) {
		if i == 60 {
			all = append(all, middle-1, middle)
		}
		all = append(all, middle.Add((i-60)*step+step/2))
	}
	return all
}

// Around each transition, instants that the wall names alike are in one window,
// and where the wall has done with all the names before, another one begins: no
// day is counted twice, and none lasts longer than it has to.
func TestWindowsAreThoseThatTheWallCanTell(t *testing.T) {
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		for text, label := range onTheWall {
			spec := exact(t, text+" tz="+name)
			for _, set := range setTimes(zone) {
				instants := around(set, spec.Rule().Span())
				starts := make([]algo.Instant, len(instants))
				last := map[string]int{}
				named := func(i int) string { return label(time.Unix(0, int64(instants[i])).In(zone)) }
				for i, now := range instants {
					starts[i] = periodOf(spec, now)
					last[named(i)] = i
					require.LessOrEqual(t, starts[i], now)
				}
				shown := 0
				for i := range len(instants) - 1 {
					if shown = max(shown, last[named(i)]); (shown <= i) != (starts[i] < starts[i+1]) || starts[i] > starts[i+1] {
						require.Failf(t, "wrong period", "%s in %s: %d and %d at %d and %d, the wall set at %s",
							text, name, starts[i], starts[i+1], instants[i], instants[i+1], set)
					}
				}
			}
		}
	}
}

// What Wait tells is where the next period begins, to the nanosecond.
func TestZonedBoundaryIsWhereThePeriodChanges(t *testing.T) {
	random := seeded(1)
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		for text := range onTheWall {
			spec := exact(t, text+" tz="+name)
			for _, set := range setTimes(zone) {
				now := algo.Instant(set.UnixNano()).Add(time.Duration(random.Int64N(int64(6*time.Hour))) - 3*time.Hour)
				w := spec.Window(now)
				w.Take(now, 1)
				w.Settle(now, 1, now)
				wait, ok := w.Wait(now, 1, nil)
				require.True(t, ok)
				where := fmt.Sprintf("%s in %s at %d", text, name, now)
				next := now.Add(wait)
				require.Equal(t, periodOf(spec, now), periodOf(spec, next-1), where)
				require.Equal(t, next, periodOf(spec, next), where)
			}
		}
	}
}

// Whatever the instant, it lies in its period, and where that ends the next begins.
func TestZonedPeriodsFollowEachOther(t *testing.T) {
	for seed := range uint64(20) {
		random := seeded(seed)
		for _, name := range zones {
			for text := range onTheWall {
				spec := exact(t, text+" tz="+name)
				now := algo.Instant(random.Int64() - random.Int64())
				where := fmt.Sprintf("seed %d: %s in %s at %d", seed, text, name, now)
				w := spec.Window(now)
				require.LessOrEqual(t, periodOf(spec, now), now, where)
				w.Take(now, 1)
				w.Settle(now, 1, now)
				wait, ok := w.Wait(now, 1, nil)
				require.True(t, ok, where)
				require.Positive(t, wait, where)
				require.Less(t, wait, 32*day, where)
				require.Equal(t, now.Add(wait), periodOf(spec, now.Add(wait)), where)
			}
		}
	}
}

// A rule in a zone without summer time is the rule in UTC, shifted.
func TestZoneThatIsUTCChangesNothing(t *testing.T) {
	random := seeded(1)
	for text := range onTheWall {
		plain, zoned := exact(t, text), exact(t, text+" tz=Etc/UTC")
		for range 200 {
			now := algo.Instant(random.Int64() - random.Int64())
			require.Equal(t, periodOf(plain, now), periodOf(zoned, now), "%s at %d", text, now)
		}
	}
}
