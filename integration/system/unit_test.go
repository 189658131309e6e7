package system

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/integration/oracle"
)

// TestFleetKeepsAContractOfUnits: worker processes whose calls cost units share a
// rule of calls and one of units. By the instants of their spends neither is ever
// exceeded, the units bind, and log and upstream agree on what each call cost.
func TestFleetKeepsAContractOfUnits(t *testing.T) {
	h := harness.New(t)
	const text = "100/1s, 60/1s unit=w"
	rules := oracle.MustRules(text)
	c := h.Coordinator(harness.CoordinatorConfig{Policy: h.Policy("limits:\n  - key: k\n    rules: [" + text + "]\n")})
	up := h.Upstream("--contract", text)
	var fleet []*harness.Process
	var logs []string
	const calls, each = 24, 3
	for i := range 3 {
		logs = append(logs, filepath.Join(t.TempDir(), "log"))
		fleet = append(fleet, startWorker(h, c.NATS, fmt.Sprintf("w%d", i), "load", "",
			"--key", "k", "-j", "4", "--count", fmt.Sprint(calls), "--unit", fmt.Sprintf("w=%d", each),
			"--get", fmt.Sprintf("%s/?unit=w=%d", up.URL, each), "--log", logs[i]))
	}
	for _, p := range fleet {
		require.Zero(t, h.Wait(p), p.Output())
	}
	spends := h.Logs(logs...)
	require.Len(t, spends, 3*calls)
	require.Empty(t, oracle.Violations(spends, rules), "on sent")
	for _, s := range append(spends, h.Arrivals(up)...) {
		require.Equal(t, map[string]int64{"w": each}, s.Units)
	}
	took := time.Duration(spends[len(spends)-1].At - spends[0].At)
	require.Greater(t, took, 3*time.Second, "72 calls of 3 units at 60 a second: the units bind, not the calls")
}
