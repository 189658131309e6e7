package system

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/integration/oracle"
)

// TestFourShellsShareAContract runs four workers on four parts of one list: no
// window of either rule is over by the instants in their logs, and each line is
// run exactly once.
func TestFourShellsShareAContract(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	contract := "20/1s, 50/3s"
	c := h.Coordinator(harness.CoordinatorConfig{Policy: h.Policy("limits:\n  - key: k\n    rules: [" + contract + "]\n")})
	var list []string
	for i := range scaled(120, 400) {
		list = append(list, fmt.Sprintf("item-%03d", i))
	}
	var shells []*harness.Process
	var logs []string
	for shell := range 4 {
		var part []string
		for i := shell; i < len(list); i += 4 { // as split -n r/4 does
			part = append(part, list[i])
		}
		logs = append(logs, filepath.Join(t.TempDir(), "log"))
		shells = append(shells, startWorker(h, c.NATS, fmt.Sprintf("shell-%d", shell+1), "exec", strings.Join(part, "\n")+"\n",
			"--key", "k", "-j", "4", "--log", logs[shell], "--", "echo", "{}"))
	}
	var ran, logged []string
	for i, p := range shells {
		require.Zero(t, h.Wait(p), p.Output())
		ran = append(ran, strings.Fields(p.Stdout())...)
		for _, e := range entries(t, logs[i]) {
			require.Zero(t, *e.Exit)
			logged = append(logged, *e.Item)
		}
	}
	slices.Sort(ran)
	slices.Sort(logged)
	require.Equal(t, list, ran, "nothing is run twice, and nothing is lost")
	require.Equal(t, list, logged)

	spends := h.Logs(logs...)
	rules := oracle.MustRules(contract)
	require.Empty(t, oracle.Violations(spends, rules))
	took := spends[len(spends)-1].At - spends[0].At
	ideal := oracle.Schedule{Rules: rules}.Length(len(list))
	t.Logf("%d commands of 4 shells under %s in %.2f s, ideal %.2f s, 0 violations", len(list), contract, float64(took)/1e9, ideal.Seconds())
}

// TestOneOfTenGetsTheLastOne: 99 of 100 are used and ten processes ask at once.
// One is granted, and nine are told that it takes too long.
func TestOneOfTenGetsTheLastOne(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Coordinator(harness.CoordinatorConfig{Policy: h.Policy("limits:\n  - key: k\n    rules: [100/1h]\n")})
	logs := []string{filepath.Join(t.TempDir(), "log")}
	first := startWorker(h, c.NATS, "first", "load", "", "--key", "k", "--count", "99", "-j", "8", "--log", logs[0])
	require.Zero(t, h.Wait(first), first.Output())
	var ten []*harness.Process
	for i := range 10 {
		logs = append(logs, filepath.Join(t.TempDir(), "log"))
		ten = append(ten, startWorker(h, c.NATS, fmt.Sprintf("asker-%d", i+1), "load", "",
			"--key", "k", "--count", "1", "--wait", "10s", "--log", logs[i+1]))
	}
	codes := map[int]int{}
	for _, p := range ten {
		codes[h.Wait(p)]++
	}
	require.Equal(t, map[int]int{0: 1, 4: 9}, codes)
	spends := h.Logs(logs...)
	require.Len(t, spends, 100)
	require.Empty(t, oracle.Violations(spends, oracle.MustRules("100/1h")))
	t.Logf("99 of 100 used, ten processes ask: %d granted, %d told too late", codes[0], codes[4])
}

// TestTotalIsTheSameForEveryNumberOfWorkers is B143: the limit is the fleet's, not each
// worker's, however many there are.
func TestTotalIsTheSameForEveryNumberOfWorkers(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	for _, n := range scaled([]int{1, 4, 10}, []int{1, 2, 4, 16}) {
		c := h.Coordinator(harness.CoordinatorConfig{Policy: h.Policy("limits:\n  - key: k\n    rules: [100/1h]\n")})
		var fleet []*harness.Process
		var logs []string
		for i := range n {
			logs = append(logs, filepath.Join(t.TempDir(), "log"))
			fleet = append(fleet, startWorker(h, c.NATS, fmt.Sprintf("w%d", i), "load", "",
				"--key", "k", "--count", "100", "-j", "4", "--wait", "5s", "--log", logs[i]))
		}
		for _, p := range fleet {
			require.Contains(t, []int{0, 4}, h.Wait(p), p.Output())
		}
		require.Len(t, h.Logs(logs...), 100, "%d workers", n)
		h.Stop(c.Process)
	}
}
