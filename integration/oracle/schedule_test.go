package oracle_test

import (
	"fmt"
	"testing"
	"time"

	"ration/integration/oracle"

	"github.com/stretchr/testify/require"
)

func TestGreedyScheduleOfKnownContracts(t *testing.T) {
	for _, c := range []struct {
		rules string
		hold  time.Duration
		calls int
		takes time.Duration
	}{
		{"5/1s, 12/3s", 0, 30, 7 * time.Second},
		{"5/1060ms, 12/3060ms", 0, 30, 7180 * time.Millisecond},
		{"5/1s", 0, 5, 0},
		{"5/1s", 0, 6, time.Second},
		{"10/1s bucket burst=3", 0, 5, 200 * time.Millisecond},
		{"3/1s bucket burst=1", 0, 2, 333333334},
		{"3/1s pace", 0, 2, 333333334},
		{"10/1s pace, 5/1s", 0, 6, time.Second},
		{"4/1s fixed", 0, 9, 2 * time.Second},
		{"4/7s fixed tz=Asia/Kathmandu", 0, 9, 10 * time.Second}, // at the epoch, 4 s of a window have passed
		{"10/1s counter", 0, 11, 1100 * time.Millisecond},
		{"10/1s counter", 0, 20, 2 * time.Second},
		{"1/1s counter", 0, 3, 4 * time.Second},
		{"16 concurrent", 20 * time.Millisecond, 33, 40 * time.Millisecond},
	} {
		s := oracle.Schedule{Rules: oracle.MustRules(c.rules), Hold: c.hold}
		require.Equal(t, c.takes, s.Length(c.calls), c.rules)
	}
	require.Empty(t, oracle.Schedule{Rules: oracle.MustRules("5/1s, 0/3s")}.First(3))
	require.Empty(t, oracle.Schedule{Rules: oracle.MustRules("0/1s pace")}.First(3))
	require.Zero(t, oracle.Schedule{Rules: oracle.MustRules("0/1s bucket burst=5")}.Length(3))
	require.Panics(t, func() { oracle.Schedule{}.Until(second) })
}

// A greedy schedule breaks no rule, and no call of it could have been made a
// nanosecond earlier.
func TestGreedyScheduleIsTight(t *testing.T) {
	for _, text := range []string{
		"5/1s, 12/3s", "200/1s, 550/3s, 16 concurrent", "7/1s fixed, 3/700ms", "10/3s bucket burst=4, 11/5s",
		"3/1s bucket burst=2", "7/1s pace, 12/2s", "7/1s fixed, 20/3s, 5/1s bucket burst=5, 2 concurrent",
		"9/2s counter, 6/700ms", "6/7s fixed tz=Asia/Kathmandu, 4/3s", "3/1s counter, 40/1m fixed tz=Asia/Kolkata",
	} {
		for _, from := range []int64{0, 1700000000123456789} {
			s := oracle.Schedule{Rules: oracle.MustRules(text), Hold: 20 * time.Millisecond, From: from}
			times := s.First(700)
			require.Len(t, times, 700)
			spends := make([]oracle.Spend, len(times))
			for i, at := range times {
				spends[i] = oracle.Spend{At: at, Cost: 1, Done: at + int64(s.Hold)}
			}
			require.Empty(t, oracle.Violations(spends, s.Rules), text)
			for i := 1; i < len(spends); i += 1 + i/40 {
				if spends[i].At == spends[i-1].At {
					continue
				}
				early := spends[i]
				early.At--
				early.Done--
				moved := append(spends[:i:i], early)
				require.NotEmpty(t, oracle.Violations(moved, s.Rules), "%s: call %d could have been made earlier", text, i)
			}
		}
	}
}

func TestUntilEndsBeforeItsInstant(t *testing.T) {
	s := oracle.Schedule{Rules: oracle.MustRules("5/1s"), From: 7}
	require.Len(t, s.Until(7+2*second), 10)
	require.Len(t, s.Until(8+2*second), 15)
}

func TestUseIsWhatGreedyGets(t *testing.T) {
	s := oracle.Schedule{Rules: oracle.MustRules("200/1s, 550/3s, 16 concurrent"), Hold: 20 * time.Millisecond}
	from := int64(1700000000) * second
	s.From = from
	var full, half []oracle.Spend
	for i, at := range s.Until(from + 60*second) {
		call := oracle.Spend{At: at, Cost: 1, Done: at + int64(s.Hold)}
		full = append(full, call)
		if i%2 == 0 {
			half = append(half, call)
		}
	}
	use, err := oracle.Use(full, s, from, from+60*second, 3*time.Second)
	require.NoError(t, err)
	require.Equal(t, 1.0, use)
	require.Len(t, full, 20*550)
	for _, r := range s.Rules {
		require.GreaterOrEqual(t, oracle.Binds(r, full), 20, r.String())
	}
	use, err = oracle.Use(half, s, from, from+60*second, 3*time.Second)
	require.NoError(t, err)
	require.InDelta(t, 0.5, use, 0.001)
	use, err = oracle.Use(nil, s, from, from+60*second, 3*time.Second)
	require.NoError(t, err)
	require.Zero(t, use)
}

func TestUseLeavesOutTheFirstWindowAndParts(t *testing.T) {
	s := oracle.Schedule{Rules: oracle.MustRules("1/1s")}
	spends := at(0, 10, 20, 1000, 2000, 3000, 3500)
	for end, want := range map[int64]string{2000: "1.00", 3000: "1.00", 3900: "1.00", 4000: "1.33"} {
		use, err := oracle.Use(spends, s, 0, end*ms, time.Second)
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprintf("%.2f", use), "until %d ms", end)
	}
	_, err := oracle.Use(spends, s, 0, 1999*ms, time.Second)
	require.Error(t, err)
	_, err = oracle.Use(spends, s, 0, second, 0)
	require.Error(t, err)
	_, err = oracle.Use(spends, oracle.Schedule{Rules: oracle.MustRules("0/1s")}, 0, 9*second, time.Second)
	require.Error(t, err)
}

// Calls that cost three of a unit make a rule of that unit one of a third as many
// calls; a unit that they do not cost binds nothing.
func TestScheduleOfCallsThatCostUnits(t *testing.T) {
	units := map[string]int64{"w": 3}
	for text, plain := range map[string]string{
		"6/1s unit=w":                      "2/1s",
		"9/1s fixed unit=w":                "3/1s fixed",
		"6/1s bucket burst=3 unit=w, 5/1s": "2/1s bucket burst=1, 5/1s",
		"4/1s, 1/1h unit=v":                "4/1s",
	} {
		got := oracle.Schedule{Rules: oracle.MustRules(text), Units: units}.First(20)
		require.Equal(t, oracle.Schedule{Rules: oracle.MustRules(plain)}.First(20), got, text)
	}
	require.Panics(t, func() { oracle.Schedule{Rules: oracle.MustRules("7/1s unit=w"), Units: units}.First(1) })
}
