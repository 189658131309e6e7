package algo_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

func sortDue(due []algo.Due) {
	slices.SortFunc(due, func(a, b algo.Due) int { return cmp.Compare(a.At, b.At) })
}

// lawful are the rules that the laws are checked over.
var lawful = []struct {
	rule      string
	allowance algo.Allowance
}{
	{"10/1s", algo.Allowance{}},
	{"1/100ms", algo.Allowance{}},
	{"3/7ns", algo.Allowance{}},
	{"0/1s", algo.Allowance{}},
	{"1_000_000_000_000_000/1d", algo.Allowance{}},
	{"10/1s", algo.Allowance{Guard: 60 * time.Millisecond, PPM: 200}},
	{"7/3650d", algo.Allowance{Guard: algo.MaxPeriod, PPM: 1_000_000}},
	{"7/1s fixed", algo.Allowance{}},
	{"5/1d fixed", algo.Allowance{PPM: 200}},
	{"5/1w fixed", algo.Allowance{}},
	{"5/1mo fixed", algo.Allowance{PPM: 200}},
	{"7/1s fixed", algo.Allowance{Guard: 60 * time.Millisecond}},
	{"7/1s fixed", algo.Allowance{Guard: 500 * time.Millisecond, PPM: 200}},
	{"7/1s fixed", algo.Allowance{Guard: 3700 * time.Millisecond}},
	{"3/7ns fixed", algo.Allowance{Guard: 5000}},
	{"5/1d fixed", algo.Allowance{Guard: algo.MaxPeriod}},
	{"5/1d fixed tz=Europe/Berlin", algo.Allowance{}},
	{"5/1h fixed tz=Australia/Lord_Howe", algo.Allowance{}},
	{"5/1w fixed tz=America/Havana", algo.Allowance{Guard: 2 * time.Hour, PPM: 200}},
	{"5/1mo fixed tz=Asia/Kathmandu", algo.Allowance{Guard: time.Second}},
	{"10/1s counter", algo.Allowance{}},
	{"1/1s counter", algo.Allowance{PPM: 200}},
	{"3/7ns counter", algo.Allowance{}},
	{"1_000_000_000_000_000/3650d counter", algo.Allowance{}},
	{"10/1s counter", algo.Allowance{Guard: 60 * time.Millisecond}},
	{"10/1s counter", algo.Allowance{Guard: 2600 * time.Millisecond}},
	{"3/7ns counter", algo.Allowance{Guard: 5000}},
	{"0/1s counter", algo.Allowance{Guard: time.Second}},
	{"10/1s pace", algo.Allowance{}},
	{"1/100ms pace", algo.Allowance{}},
	{"3/7ns pace", algo.Allowance{}},
	{"0/1s pace", algo.Allowance{Guard: time.Second}},
	{"10/1s pace", algo.Allowance{Guard: 60 * time.Millisecond, PPM: 200}},
	{"7/3650d pace", algo.Allowance{PPM: 1_000_000}},
	{"1_000_000_000_000_000/1d pace", algo.Allowance{}},
	{"100/1m bucket burst=50", algo.Allowance{Guard: 3 * time.Second}},
	{"100/1m bucket burst=50", algo.Allowance{Guard: time.Minute}},
	{"10/13s bucket burst=1", algo.Allowance{}},
	{"100/1m bucket burst=50", algo.Allowance{PPM: 200}},
	{"1000000000/1s bucket", algo.Allowance{}},
	{"1/1h bucket burst=3", algo.Allowance{}},
	{"1000/1ns bucket burst=1000000", algo.Allowance{}},
	{"0/1s bucket burst=5", algo.Allowance{}},
	{"4 concurrent", algo.Allowance{}},
	{"4 concurrent", algo.Allowance{Guard: 50 * time.Millisecond}},
	{"0 concurrent", algo.Allowance{}},
	{"unlimited", algo.Allowance{}},
}

// The machine checks after each step that free, held and spent make the limit,
// that k free means k and not k+1, that a restored copy answers alike, and that
// waits are exact.
func TestLawHoldsAtEachStep(t *testing.T) {
	for _, c := range lawful {
		t.Run(fmt.Sprint(c.rule, " ", c.allowance), func(t *testing.T) {
			spec := algo.Compile(must(t, c.rule), c.allowance)
			for seed := range uint64(25) {
				m := newMachine(t, fmt.Sprint("seed ", seed), spec, seeded(seed))
				m.run(200)
				if spec.Max() > 0 {
					require.Positive(t, m.takes, "granting nothing is safe too: %s", m.where())
				}
			}
		})
	}
}

// With debts the law holds as ever, but that held and spent may come to twice the
// limit; and debts are repaid.
func TestLawHoldsWithDebts(t *testing.T) {
	for _, c := range lawful {
		rule := must(t, c.rule)
		if !rule.CountsTokens() {
			continue // a slot is no debt
		}
		t.Run(fmt.Sprint(c.rule, " ", c.allowance), func(t *testing.T) {
			spec := algo.Compile(rule, c.allowance)
			for seed := range uint64(25) {
				m := newMachine(t, fmt.Sprint("seed ", seed), spec, seeded(seed))
				m.debts = true
				m.run(200)
				m.drain()
				m.now = m.now.Add(4 * algo.MaxPeriod)
				if rule.Limit > 0 {
					require.True(t, m.window.Idle(m.now), m.where())
				}
			}
		})
	}
}

func TestAllComesBack(t *testing.T) {
	for _, c := range lawful {
		t.Run(fmt.Sprint(c.rule, " ", c.allowance), func(t *testing.T) {
			spec := algo.Compile(must(t, c.rule), c.allowance)
			for seed := range uint64(10) {
				m := newMachine(t, fmt.Sprint("seed ", seed), spec, seeded(seed))
				m.run(100)
				m.drain()
				m.now = m.now.Add(4 * algo.MaxPeriod)
				if c.rule == "0/1s bucket burst=5" {
					require.Equal(t, spec.Max(), m.window.Free(m.now)+m.window.Spent(m.now), m.where())
					continue
				}
				require.True(t, m.window.Idle(m.now), m.where())
				require.Equal(t, spec.Max(), m.window.Free(m.now), m.where())
				fresh := spec.Window(m.now)
				require.Equal(t, fresh.State(m.now), m.window.State(m.now), m.where())
			}
		})
	}
}

// With more spends than are remembered exactly, dates are on the grid; all laws
// hold as before, and the bound on marks does too.
func TestLawHoldsWithManyMarks(t *testing.T) {
	spec := exact(t, "5000/1s")
	for seed := range uint64(3) {
		m := newMachine(t, fmt.Sprint("seed ", seed), spec, seeded(seed))
		m.small = true
		m.stride = int64(time.Millisecond)
		for range 12 {
			m.run(1000)
			require.LessOrEqual(t, len(m.window.State(m.now).Marks), algo.MaxMarks, m.where())
		}
		require.Greater(t, len(m.window.State(m.now).Marks), 1024, "the grid was not reached: %s", m.where())
		m.drain()
		require.LessOrEqual(t, mostTrailing(m.spends, int64(time.Second)), int64(5000), m.where())
		require.True(t, m.window.Idle(m.now.Add(1002*time.Millisecond)), m.where())
	}
}
