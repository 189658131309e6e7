package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"ration/integration/harness"
	"ration/integration/oracle"
	"ration/integration/upstream"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

func TestIdealIsSevenSeconds(t *testing.T) {
	require.Equal(t, 30, total())
	require.Equal(t, 7*time.Second, ideal(0))
	require.Equal(t, 7180*time.Millisecond, ideal(guard))
}

// greedy is a run as good as any can be.
func greedy() *seen {
	times := oracle.Schedule{Rules: oracle.MustRules(contract), From: 1700000000e9}.First(total())
	s := &seen{logs: make([][]oracle.Spend, len(shares))}
	for i, share := range shares {
		for range share {
			s.logs[i] = append(s.logs[i], oracle.Spend{Key: "demo", At: times[0], Cost: 1})
			times = times[1:]
		}
	}
	s.report = upstream.Report{Arrivals: int64(total()), First: 1700000000e9}
	return s
}

func TestTableOfAGoodRun(t *testing.T) {
	var out strings.Builder
	s := greedy()
	require.True(t, s.good())
	s.write(&out)
	require.Equal(t, `  worker 1 was granted        8
  worker 2 was granted        8
  worker 3 was granted        7
  worker 4 was granted        7
  together                   30   of which 30 arrived at the upstream
  they took              7.00 s   from the first call to the last
  ideal schedule         7.00 s   7.18 s with the guard of 60ms
  violations                  0   as the strict upstream counted them
`, out.String())
}

func TestBadRunsAreNotGood(t *testing.T) {
	for name, spoil := range map[string]func(*seen){
		"number 6 under 5/1s, 0.250 s": func(s *seen) {
			s.report.Contracts = []upstream.ContractReport{{Violations: []upstream.Violation{
				{Rule: "5/1s", At: 1700000000e9 + 250e6, Load: 6, Limit: 5},
			}}}
		},
		`logs rule "5/1s" bore 6`:       func(s *seen) { s.logs[0][5].At -= 1 },
		"29 were granted":               func(s *seen) { s.logs[3] = s.logs[3][1:] },
		"29 arrived":                    func(s *seen) { s.report.Arrivals-- },
		"0 were granted and 30 arrived": func(s *seen) { s.logs = nil },
	} {
		s := greedy()
		spoil(s)
		require.False(t, s.good(), name)
		var out strings.Builder
		s.write(&out)
		require.Contains(t, out.String(), name)
	}
}

// The real thing, with the real binaries. What is sent always keeps the contract
// and the guard. What arrives keeps it where the ways there differ by no more
// than the guard; where they do, on a machine with too much to do, it is tried
// again.
func TestFleetKeepsTheContract(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the contract's seven seconds")
	}
	bin := harness.New(t).Bin("coordinator", "worker", "strictupstream")
	var s *seen
	for range 3 {
		var err error
		s, err = run(context.Background(), bin)
		require.NoError(t, err)
		require.Empty(t, s.broken())
		require.GreaterOrEqual(t, s.took(), ideal(guard))
		require.Empty(t, oracle.Violations(s.all(), oracle.Wider(oracle.MustRules(contract), guard)))
		for i, log := range s.logs {
			require.Len(t, log, shares[i])
		}
		if s.spread() <= guard {
			require.Empty(t, s.late())
			return
		}
	}
	t.Logf("the machine is too busy to judge arrivals; what was sent is judged: one call was %v longer on its way than another", s.spread())
}

func TestSpreadIsWhatTheGuardCovers(t *testing.T) {
	s := greedy()
	for i, log := range s.logs {
		for _, spend := range log {
			s.arrivals = append(s.arrivals, oracle.Spend{Key: path(i), At: spend.At + 5e6})
		}
	}
	require.Zero(t, s.spread())
	s.arrivals[3].At += 61e6
	require.Equal(t, 61*time.Millisecond, s.spread())
	require.Empty(t, s.late(), "nobody complained")
	s.report.Contracts = []upstream.ContractReport{{Violations: []upstream.Violation{{Rule: "5/1s", At: s.report.First, Load: 6}}}}
	require.Len(t, s.late(), 2)
	require.Contains(t, s.late()[0], "61ms longer on its way")
}

func TestMissingBinaryIsNamed(t *testing.T) {
	_, err := run(context.Background(), harness.Bin(t.TempDir()))
	require.ErrorContains(t, err, "strictupstream")
}
