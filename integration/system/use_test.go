package system

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/integration/oracle"
)

// used is what a fleet made of a contract.
type used struct {
	use      float64
	binds    map[string]int
	spends   int
	upstream int // violations as the upstream counts them, at arrival
	workers  string
}

// TestFleetUsesItsContract: eight workers that want more than they may use at
// least 0.97 of a contract of three rules, and break none of them by the instants
// of their spends. Safety is judged at every try. Use is judged by the best of
// three, since a machine that is busy with other things does not show what the
// fleet leaves unused; the short form finds only what is grossly wrong.
func TestFleetUsesItsContract(t *testing.T) {
	least, often := scaled(0.75, 0.97), scaled(1, 20)
	for try := 1; ; try++ {
		u := runLoad(t, scaled(12*time.Second, 66*time.Second))
		t.Logf("try %d: use %.4f, binds %v, %d spends, 0 violations on sent, %d at the upstream, which has no guard",
			try, u.use, u.binds, u.spends, u.upstream)
		seldom := slices.Min(slices.Collect(maps.Values(u.binds)))
		if u.use >= least && seldom >= often {
			return
		}
		if try == 3 {
			t.Log(u.workers)
			require.GreaterOrEqual(t, u.use, least)
			require.GreaterOrEqual(t, seldom, often, "each rule has to bind, or use says nothing of it: %v", u.binds)
		}
	}
}

func runLoad(t *testing.T, lasting time.Duration) used {
	t.Helper()
	h := harness.New(t)
	text := "200/1s, 550/3s, 16 concurrent"
	rules := oracle.MustRules(text)
	const hold = 20 * time.Millisecond
	c := h.Coordinator(harness.CoordinatorConfig{Policy: h.Policy("limits:\n  - key: k\n    rules: [" + text + "]\n")})
	up := h.Upstream("--contract", text, "--delay", hold.String())
	var fleet []*harness.Process
	var logs []string
	for i := range 8 {
		logs = append(logs, filepath.Join(t.TempDir(), "log"))
		fleet = append(fleet, startWorker(h, c.NATS, fmt.Sprintf("w%d", i), "load", "",
			"--key", "k", "-j", "4", "--get", up.URL+"/", "--log", logs[i]))
	}
	var from int64 // where all of them are there
	for _, log := range logs {
		hasLines(h, log, 1)
		from = max(from, entries(t, log)[0].Sent)
	}
	to := from + int64(lasting)
	for at := time.Unix(0, from); time.Since(at) < lasting; { // in parts, each below the bound of a wait
		next := min(lasting, time.Since(at)+20*time.Second)
		h.Until("the end of the load", passed(at.Add(next)))
	}
	for _, p := range fleet {
		h.Stop(p)
	}
	u := used{binds: map[string]int{}}
	for _, p := range fleet {
		u.workers += p.Output()
	}
	spends := h.Logs(logs...)
	require.Empty(t, oracle.Violations(spends, rules), "on sent")
	var within []oracle.Spend
	for _, s := range spends {
		if s.At >= from && s.At < to {
			within = append(within, s)
		}
	}
	var err error
	u.use, err = oracle.Use(within, oracle.Schedule{Rules: rules, Hold: hold}, from, to, 3*time.Second)
	require.NoError(t, err)
	for _, r := range rules {
		u.binds[r.String()] = oracle.Binds(r, spends)
	}
	u.spends, u.upstream = len(within), h.Report(up).Violations()
	h.Stop(c.Process)
	h.Stop(up.Process)
	return u
}
