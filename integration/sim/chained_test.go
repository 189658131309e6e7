package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/oracle"
	"ration/integration/sim"
)

// TestChainedLimitersViolateWhereLeasesDoNot: thirty callers at once under two
// rules. One limiter a rule, each passed after the other, breaks the contract in
// most worlds; asking all and then taking all never does, and takes no longer
// than the contract does.
func TestChainedLimitersViolateWhereLeasesDoNot(t *testing.T) {
	const worlds, callers = 500, 30
	rules := oracle.MustRules("5/1s, 12/3s")
	chained, longest := 0, time.Duration(0)
	for seed := range uint64(worlds) {
		theirs := sim.Chained(seed, rules, callers)
		require.Len(t, theirs, callers)
		if len(oracle.Violations(theirs, rules)) > 0 {
			chained++
		}
		ours := sim.Leased(seed, rules, callers)
		require.Len(t, ours, callers, "seed %d", seed)
		require.Empty(t, oracle.Violations(ours, rules), "seed %d", seed)
		oracle.Sort(ours)
		longest = max(longest, time.Duration(ours[callers-1].At-ours[0].At))
	}
	t.Logf("chained limiters broke the contract in %d of %d worlds, leases in none; %d calls took at most %v", chained, worlds, callers, longest)
	require.Greater(t, chained, worlds/2)
}
