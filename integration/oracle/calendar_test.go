package oracle_test

import (
	"fmt"
	"testing"
	"time"

	"ration/integration/oracle"

	"github.com/stretchr/testify/require"
)

// instant reads a time in UTC.
func instant(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05", text)
	require.NoError(t, err)
	return at.UnixNano()
}

// Windows are named as the wall names them: each begins where it is said, and the
// one before it ends a nanosecond earlier, by each of the ways to look at it.
func TestFixedWindowsAreThoseOnTheWall(t *testing.T) {
	for _, c := range []struct {
		rule   string
		starts []string
	}{
		{"1/1d fixed", []string{"2026-03-28 00:00:00", "2026-03-29 00:00:00"}},
		{"1/1w fixed", []string{"2026-01-12 00:00:00", "2026-01-19 00:00:00"}},
		{"1/1mo fixed", []string{"2026-02-01 00:00:00", "2026-03-01 00:00:00", "2026-04-01 00:00:00"}},
		{"1/1d fixed tz=Europe/Berlin", []string{"2026-03-28 23:00:00", "2026-03-29 22:00:00", "2026-03-30 22:00:00"}},
		{"1/1d fixed tz=Europe/Berlin", []string{"2026-10-24 22:00:00", "2026-10-25 23:00:00", "2026-10-26 23:00:00"}},
		{"1/1w fixed tz=Europe/Berlin", []string{"2026-03-22 23:00:00", "2026-03-29 22:00:00", "2026-04-05 22:00:00"}},
		{"1/1mo fixed tz=Europe/Berlin", []string{"2026-09-30 22:00:00", "2026-10-31 23:00:00", "2026-11-30 23:00:00"}},
		// An hour that is skipped, and one that is shown twice and is one window.
		{"1/1h fixed tz=Europe/Berlin", []string{"2026-03-29 00:00:00", "2026-03-29 01:00:00", "2026-03-29 02:00:00"}},
		{"1/1h fixed tz=Europe/Berlin", []string{"2026-10-24 23:00:00", "2026-10-25 00:00:00", "2026-10-25 02:00:00"}},
		{"1/1h fixed tz=Australia/Lord_Howe", []string{"2026-04-04 14:00:00", "2026-04-04 15:30:00", "2026-04-04 16:30:00"}},
		// A midnight that does not exist, one that is shown twice, and a day that is not.
		{"1/1d fixed tz=America/Sao_Paulo", []string{"2018-11-03 03:00:00", "2018-11-04 03:00:00", "2018-11-05 02:00:00"}},
		{"1/1d fixed tz=America/Havana", []string{"2026-11-01 04:00:00", "2026-11-02 05:00:00"}},
		{"1/1d fixed tz=Pacific/Apia", []string{"2011-12-29 10:00:00", "2011-12-30 10:00:00", "2011-12-31 10:00:00"}},
		{"1/1h fixed tz=Asia/Kathmandu", []string{"2026-01-15 12:15:00", "2026-01-15 13:15:00"}},
	} {
		rule := oracle.MustRules(c.rule)[0]
		for i := range c.starts[1:] {
			begins, ends := instant(t, c.starts[i]), instant(t, c.starts[i+1])
			what := fmt.Sprint(c.rule, " from ", c.starts[i])
			before, within := spendsAt(begins-1, begins), spendsAt(begins, ends-1)
			require.Equal(t, int64(1), oracle.LoadAt(rule, before, begins), what)
			require.Equal(t, int64(2), oracle.LoadAt(rule, within, ends-1), what)
			require.Empty(t, oracle.Violations(before, []oracle.Rule{rule}), what)
			require.Len(t, oracle.Violations(within, []oracle.Rule{rule}), 1, what)
			require.Equal(t, ends, oracle.Eases(rule, within, ends-1, 1), what)
			require.Equal(t, ends, oracle.Eases(rule, within[:1], begins, 0), what)
			require.Equal(t, begins, oracle.Eases(rule, within[:1], begins, 1), what)
			two := oracle.Schedule{Rules: []oracle.Rule{rule}, From: begins}.First(2)
			require.Equal(t, []int64{begins, ends}, two, what)
		}
	}
}

// The wall may go back over a boundary: what was counted under the name that it
// shows again still counts, and so does what was counted meanwhile.
func TestWallThatGoesBackOverMidnightKeepsBothDays(t *testing.T) {
	rule := oracle.MustRules("2/1d fixed tz=America/St_Johns")[0] // set back from 00:01 to 23:01
	sixth, seventh, again, after := instant(t, "2010-11-07 02:29:59"), instant(t, "2010-11-07 02:30:30"),
		instant(t, "2010-11-07 02:31:30"), instant(t, "2010-11-07 03:30:00")
	require.Equal(t, int64(2), oracle.LoadAt(rule, spendsAt(sixth, seventh, again), again))
	require.Equal(t, int64(2), oracle.LoadAt(rule, spendsAt(sixth, seventh, after), after))
	require.Len(t, oracle.Violations(spendsAt(sixth, sixth, seventh, seventh, again), []oracle.Rule{rule}), 1)
	require.Len(t, oracle.Violations(spendsAt(sixth, seventh, seventh, again, after), []oracle.Rule{rule}), 1)
}

func spendsAt(instants ...int64) []oracle.Spend {
	var spends []oracle.Spend
	for _, at := range instants {
		spends = append(spends, oracle.Spend{Key: "k", At: at, Cost: 1})
	}
	return spends
}

func TestOnlyWindowsAndEstimatesEaseAtAnInstantThatIsTold(t *testing.T) {
	for _, rule := range oracle.MustRules("1/1s, 1/1s bucket, 1 concurrent") {
		require.Panics(t, func() { oracle.Eases(rule, nil, 0, 0) }, rule.String())
	}
	counter := oracle.MustRules("100/1m counter")[0]
	eighty := []oracle.Spend{{At: 59 * second, Cost: 80}, {At: 61 * second, Cost: 30}}
	require.Equal(t, 84*second, oracle.Eases(counter, eighty, 61*second, 78))
	require.Equal(t, 61*second, oracle.Eases(counter, eighty, 61*second, 109))
	require.Equal(t, 120*second, oracle.Eases(counter, eighty, 61*second, 30))
	require.Equal(t, 180*second, oracle.Eases(counter, eighty, 61*second, 0))
}
