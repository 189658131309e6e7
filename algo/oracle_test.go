package algo_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

// The oracle knows nothing of windows: it has a list of spends, and checks the
// slow way whether an upstream that counts them by a rule would ever have seen
// too many. It is the only definition of correct.

// spend is n calls released at one instant, in Unix nanoseconds.
type spend struct {
	at int64
	n  int64
}

// interval is n slots in use from one instant to before another.
type interval struct {
	from, to int64
	n        int64
}

// mostTrailing gives the most spent in any window (t-width, t].
func mostTrailing(spends []spend, width int64) int64 {
	var most int64
	for _, last := range spends {
		var sum int64
		for _, s := range spends {
			if s.at <= last.at && last.at-s.at < width {
				sum += s.n
			}
		}
		most = max(most, sum)
	}
	return most
}

// mostCounted gives the most spent in any period that a clock, in UTC, calls by
// one name.
func mostCounted(spends []spend, name func(time.Time) string) int64 {
	sums := map[string]int64{}
	var most int64
	for _, s := range spends {
		period := name(time.Unix(0, s.at).UTC())
		sums[period] += s.n
		most = max(most, sums[period])
	}
	return most
}

func byDay(t time.Time) string   { return t.Format("2006-01-02") }
func byMonth(t time.Time) string { return t.Format("2006-01") }
func byWeek(t time.Time) string {
	year, week := t.ISOWeek()
	return fmt.Sprint(year, "-", week)
}
func bySecond(t time.Time) string { return t.Format("2006-01-02T15:04:05") }

// inZone names by the clock of a zone.
func inZone(name string, period func(time.Time) string) func(time.Time) string {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return func(t time.Time) string { return period(t.In(zone)) }
}

// mostInReach gives the most spent that could be counted in one period of that
// length since the epoch, if each spend may be counted up to a guard earlier or
// later.
func mostInReach(spends []spend, period, guard int64) int64 {
	sums := map[int64]int64{}
	var most int64
	for _, s := range spends {
		for k := floorDiv(s.at-guard, period); k <= floorDiv(s.at+guard, period); k++ {
			sums[k] += s.n
			most = max(most, sums[k])
		}
	}
	return most
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// overEstimated says whether an upstream that estimates the trailing window from
// the counts of its period and the one before would have seen more than the limit.
func overEstimated(spends []spend, limit, period int64) bool {
	sorted := slices.Clone(spends)
	slices.SortFunc(sorted, func(a, b spend) int { return int(min(1, max(-1, a.at-b.at))) })
	sums := map[int64]int64{}
	for _, s := range sorted {
		k := floorDiv(s.at, period)
		sums[k] += s.n
		left := big.NewRat((k+1)*period-s.at, period)
		estimate := left.Mul(left, big.NewRat(sums[k-1], 1))
		if estimate.Add(estimate, big.NewRat(sums[k], 1)).Cmp(big.NewRat(limit, 1)) > 0 {
			return true
		}
	}
	return false
}

// overfillsBucket says whether some run of spends is more than burst and what
// flows in between its first and its last.
func overfillsBucket(spends []spend, limit, burst, period int64) bool {
	sorted := slices.Clone(spends)
	slices.SortFunc(sorted, func(a, b spend) int { return int(min(1, max(-1, a.at-b.at))) })
	for i := range sorted {
		var sum int64
		for _, s := range sorted[i:] {
			sum += s.n
			over := new(big.Int).Mul(big.NewInt(sum-burst), big.NewInt(period))
			if over.Cmp(new(big.Int).Mul(big.NewInt(s.at-sorted[i].at), big.NewInt(limit))) > 0 {
				return true
			}
		}
	}
	return false
}

// mostAtOnce gives the most slots in use at any instant, where each is in use
// for guard longer.
func mostAtOnce(slots []interval, guard int64) int64 {
	var most int64
	for _, at := range slots {
		var sum int64
		for _, s := range slots {
			if s.from <= at.from && at.from < s.to+guard {
				sum += s.n
			}
		}
		most = max(most, sum)
	}
	return most
}

func TestNoUpstreamSeesMoreThanTheRule(t *testing.T) {
	const ppm200 = 200
	second := int64(time.Second)
	for _, c := range []struct {
		rule      string
		allowance algo.Allowance
		check     func(t require.TestingT, spends []spend, where string)
	}{
		{"10/1s", algo.Allowance{}, func(t require.TestingT, spends []spend, where string) {
			require.LessOrEqual(t, mostTrailing(spends, second), int64(10), where)
		}},
		{"3/7ns", algo.Allowance{}, func(t require.TestingT, spends []spend, where string) {
			require.LessOrEqual(t, mostTrailing(spends, 7), int64(3), where)
		}},
		{"10/1s", algo.Allowance{Guard: 60 * time.Millisecond}, func(t require.TestingT, spends []spend, where string) {
			late := late(spends, int64(60*time.Millisecond))
			require.LessOrEqual(t, mostTrailing(late, second), int64(10), where)
		}},
		{"10/1s", algo.Allowance{PPM: ppm200}, func(t require.TestingT, spends []spend, where string) {
			require.LessOrEqual(t, mostTrailing(slow(spends, ppm200), second), int64(10), where)
		}},
		{"7/1s fixed", algo.Allowance{}, func(t require.TestingT, spends []spend, where string) {
			require.LessOrEqual(t, mostCounted(spends, bySecond), int64(7), where)
		}},
		{"7/1d fixed", algo.Allowance{}, func(t require.TestingT, spends []spend, where string) {
			require.LessOrEqual(t, mostCounted(spends, byDay), int64(7), where)
		}},
		{"7/1w fixed", algo.Allowance{PPM: ppm200}, func(t require.TestingT, spends []spend, where string) {
			require.LessOrEqual(t, mostCounted(spends, byWeek), int64(7), where)
		}},
		{"7/1mo fixed", algo.Allowance{}, func(t require.TestingT, spends []spend, where string) {
			require.LessOrEqual(t, mostCounted(spends, byMonth), int64(7), where)
		}},
		{"7/1d fixed tz=Europe/Berlin", algo.Allowance{}, func(t require.TestingT, spends []spend, where string) {
			require.LessOrEqual(t, mostCounted(spends, inZone("Europe/Berlin", byDay)), int64(7), where)
		}},
		{"7/1w fixed tz=America/Havana", algo.Allowance{PPM: ppm200}, func(t require.TestingT, spends []spend, where string) {
			require.LessOrEqual(t, mostCounted(spends, inZone("America/Havana", byWeek)), int64(7), where)
		}},
		{"7/1s fixed", algo.Allowance{Guard: 60 * time.Millisecond}, func(t require.TestingT, spends []spend, where string) {
			require.LessOrEqual(t, mostInReach(spends, second, second*60/1000), int64(7), where)
			for seed := range uint64(5) {
				late := shaken(spends, -second*60/1000, second*60/1000, seed)
				require.LessOrEqual(t, mostCounted(late, bySecond), int64(7), where)
			}
		}},
		{"7/1s fixed", algo.Allowance{Guard: 2700 * time.Millisecond, PPM: ppm200}, func(t require.TestingT, spends []spend, where string) {
			require.LessOrEqual(t, mostInReach(spends, second, second*27/10), int64(7), where)
		}},
		{"7/1d fixed tz=Europe/Berlin", algo.Allowance{Guard: 2 * time.Hour}, func(t require.TestingT, spends []spend, where string) {
			for seed := range uint64(5) {
				late := shaken(spends, -7200*second, 7200*second, seed)
				require.LessOrEqual(t, mostCounted(late, inZone("Europe/Berlin", byDay)), int64(7), where)
			}
		}},
		{"10/1s counter", algo.Allowance{}, func(t require.TestingT, spends []spend, where string) {
			require.False(t, overEstimated(spends, 10, second), where)
		}},
		{"10/1s counter", algo.Allowance{Guard: 60 * time.Millisecond, PPM: ppm200}, func(t require.TestingT, spends []spend, where string) {
			for seed := range uint64(5) {
				late := shaken(spends, -second*60/1000, second*60/1000, seed)
				require.False(t, overEstimated(late, 10, second), where)
			}
		}},
		{"10/1s counter", algo.Allowance{Guard: 1700 * time.Millisecond}, func(t require.TestingT, spends []spend, where string) {
			for seed := range uint64(5) {
				late := shaken(spends, -second*17/10, second*17/10, seed)
				require.False(t, overEstimated(late, 10, second), where)
			}
		}},
		{"100/1m bucket burst=50", algo.Allowance{Guard: 7 * time.Second}, func(t require.TestingT, spends []spend, where string) {
			require.False(t, overfillsBucket(late(spends, 7*second), 100, 50, 60*second), where)
			for seed := range uint64(5) {
				require.False(t, overfillsBucket(shaken(spends, 0, 7*second, seed), 100, 50, 60*second), where)
			}
		}},
		{"10/13s bucket burst=1", algo.Allowance{}, func(t require.TestingT, spends []spend, where string) {
			require.False(t, overfillsBucket(spends, 10, 1, 13*second), where)
		}},
		{"100/1m bucket burst=50", algo.Allowance{}, func(t require.TestingT, spends []spend, where string) {
			require.False(t, overfillsBucket(spends, 100, 50, 60*second), where)
		}},
		{"10/1s bucket", algo.Allowance{PPM: ppm200}, func(t require.TestingT, spends []spend, where string) {
			require.False(t, overfillsBucket(slow(spends, ppm200), 10, 10, second), where)
		}},
	} {
		t.Run(fmt.Sprint(c.rule, " ", c.allowance), func(t *testing.T) {
			spec := algo.Compile(must(t, c.rule), c.allowance)
			for seed := range uint64(12) {
				m := newMachine(t, fmt.Sprint("seed ", seed), spec, seeded(seed))
				m.run(300)
				m.drain()
				require.NotEmpty(t, m.spends)
				c.check(t, m.spends, m.where())
			}
		})
	}
}

// tooSoon says whether one spend comes before those before it allow: each of
// their tokens keeps the next spend from a period divided by the limit.
func tooSoon(spends []spend, limit, period int64) bool {
	for i, s := range spends {
		for _, next := range spends[i+1:] {
			gap := new(big.Int).Mul(big.NewInt(next.at-s.at), big.NewInt(limit))
			if gap.Cmp(new(big.Int).Mul(big.NewInt(s.n), big.NewInt(period))) < 0 {
				return true
			}
		}
	}
	return false
}

func TestNoMoreSlotsInUseThanTheRule(t *testing.T) {
	spec := exact(t, "4 concurrent")
	for seed := range uint64(20) {
		m := newMachine(t, fmt.Sprint("seed ", seed), spec, seeded(seed))
		m.run(300)
		m.drain()
		require.LessOrEqual(t, mostAtOnce(m.slots, 0), int64(4), m.where())
	}
}

func TestCutSlotsAreInUseForAGuard(t *testing.T) {
	const guard = 50 * time.Millisecond
	spec := algo.Compile(must(t, "4 concurrent"), algo.Allowance{Guard: guard})
	for seed := range uint64(20) {
		m := newMachine(t, fmt.Sprint("seed ", seed), spec, seeded(seed))
		m.stride = int64(guard)
		m.run(300)
		var cut []interval
		for _, s := range m.spends {
			cut = append(cut, interval{s.at, s.at + int64(guard), s.n})
		}
		require.LessOrEqual(t, mostAtOnce(cut, 0), int64(4), m.where())
		require.LessOrEqual(t, mostAtOnce(m.slots, 0), int64(4), m.where())
	}
}

// The oracle has to see what it is there for.
func TestTheOracleFindsWhatBreaksARule(t *testing.T) {
	second := int64(time.Second)
	spends := []spend{{0, 5}, {second - 1, 6}}
	require.Equal(t, int64(11), mostTrailing(spends, second))
	require.Equal(t, int64(6), mostTrailing([]spend{{0, 5}, {second, 6}}, second))
	require.Equal(t, int64(11), mostCounted(spends, bySecond))
	require.Equal(t, int64(6), mostCounted([]spend{{0, 5}, {second, 6}}, bySecond))
	require.Equal(t, int64(11), mostInReach([]spend{{-1, 5}, {1, 6}}, second, 2))
	require.Equal(t, int64(6), mostInReach([]spend{{-1, 5}, {1, 6}}, second, 0))
	require.Equal(t, int64(11), mostCounted([]spend{{-1, 5}, {1, 6}}, inZone("Europe/Berlin", byDay)))
	require.True(t, overEstimated([]spend{{0, 8}, {second + second*4/10 - 1, 3}, {second + second*4/10, 1}}, 8, second))
	require.False(t, overEstimated([]spend{{0, 5}, {second + second*4/10, 5}}, 8, second))
	require.True(t, overfillsBucket([]spend{{0, 2}, {second - 1, 1}}, 1, 2, second))
	require.False(t, overfillsBucket([]spend{{0, 2}, {second, 1}}, 1, 2, second))
	require.True(t, tooSoon([]spend{{0, 1}, {333_333_333, 1}}, 3, second))
	require.False(t, tooSoon([]spend{{0, 1}, {333_333_334, 1}}, 3, second))
	require.True(t, tooSoon([]spend{{0, 3}, {second - 1, 1}}, 3, second))
	require.False(t, tooSoon([]spend{{0, 3}, {second, 1}}, 3, second))
	require.Equal(t, int64(2), mostAtOnce([]interval{{0, 10, 1}, {9, 20, 1}}, 0))
	require.Equal(t, int64(1), mostAtOnce([]interval{{0, 10, 1}, {10, 20, 1}}, 0))
}

// late lets some arrivals be as much later than their spend as they may, so
// that they come close to others.
func late(spends []spend, guard int64) []spend {
	moved := slices.Clone(spends)
	for i := range moved {
		if i%3 == 0 {
			moved[i].at += guard
		}
	}
	return moved
}

// shaken lets each arrival be counted at some instant from low to high after its
// spend, often at either.
func shaken(spends []spend, low, high int64, seed uint64) []spend {
	random := seeded(seed)
	moved := slices.Clone(spends)
	for i := range moved {
		switch random.Int64N(3) {
		case 0:
			moved[i].at += low
		case 1:
			moved[i].at += high
		default:
			moved[i].at += low + random.Int64N(high-low+1)
		}
	}
	return moved
}

// slow tells the spends by an upstream's clock that runs slower by so many
// millionths.
func slow(spends []spend, ppm int64) []spend {
	moved := slices.Clone(spends)
	for i := range moved {
		since := moved[i].at - int64(at)
		moved[i].at = int64(at) + since - since/1_000_000*ppm - since%1_000_000*ppm/1_000_000
	}
	return moved
}
