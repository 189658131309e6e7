package system

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/integration/oracle"
)

// levelsPolicy limits calls, tokens and kilobytes of accounts, their stages, and the
// searches of these, and has two plans. Of what is scarce premium goes first, but for a tenth.
const levelsPolicy = `
limits:
  - key: "{account}"
    rules: [240/2s, 2000/2s unit=tokens]
    line: {premium: 500, standard: 500, lower: 10%}
  - key: "{account}/{stage}"
    rules: [130/1s, 3000/1s unit=kb]
  - key: "{account}/{stage}/search"
    rules: [120/2s, 12 concurrent]
plans:
  free:
    rules: [40/1s bucket burst=20, 1000000/1d fixed]
  gold:
    rules: [200/1s bucket burst=100, 1000000/1d fixed unit=tokens]
assign:
  "{account}": free
  acme: gold
`

// levels are the contracts that follow of it, each of which the upstream and the oracle
// judge by itself. What binds is the tokens of acme and the plan of beta.
var levels = []struct{ key, rules string }{
	{"acme", "240/2s, 2000/2s unit=tokens, 200/1s bucket burst=100, 1000000/1d fixed unit=tokens"},
	{"beta", "240/2s, 2000/2s unit=tokens, 40/1s bucket burst=20, 1000000/1d fixed"},
	{"acme/prod", "130/1s, 3000/1s unit=kb"},
	{"acme/test", "130/1s, 3000/1s unit=kb"},
	{"beta/prod", "130/1s, 3000/1s unit=kb"},
	{"acme/prod/search", "120/2s, 12 concurrent"},
	{"acme/test/search", "120/2s, 12 concurrent"},
	{"beta/prod/search", "120/2s, 12 concurrent"},
}

// parties are who wants what: sixteen workers, who all want more than they get. Premium
// alone wants more than acme has.
var parties = []struct {
	key     string
	workers int
	class   string
}{
	{"acme/prod/search", 5, "premium"},
	{"acme/prod/list", 4, "standard"},
	{"acme/test/search", 3, "premium"},
	{"beta/prod/search", 4, ""},
}

// lowest is the part of acme that standard gets at least, and highest at most: a tenth is
// kept for it, and it gets more where much comes back in one instant, when nobody waits for
// a moment. Without classes it would be a third.
const lowest, highest = 0.08, 0.29

// standards is the part of acme's calls that were standard, in single calls until then.
func standards(spends []oracle.Spend, from, to int64) float64 {
	all, standard := 0, 0
	for _, s := range oracle.Under(spends, "acme") {
		if s.At < from || s.At >= to || s.Cost != 1 {
			continue
		}
		if all++; s.Key == "acme/prod/list" {
			standard++
		}
	}
	return float64(standard) / float64(all)
}

// levelsCost is what each call costs.
var levelsCost = map[string]int64{"tokens": 10, "kb": 20}

// large is how many calls' worth the one large request asks for at a time.
const large = 50

// TestThreeLevelsTwoPlansAndThreeUnitsAreKeptAndUsed: sixteen worker processes under one
// policy break no rule of any level by the instants of their spends, and use what binds.
// Then one more asks for as much as fifty calls at a time: it is served in its turn, and
// what is there is used all the same. Safety is judged at every try, use by the best of
// three, as TestFleetUsesItsContract does.
func TestThreeLevelsTwoPlansAndThreeUnitsAreKeptAndUsed(t *testing.T) {
	least, often := scaled(0.6, 0.97), scaled(1, 5)
	for try := 1; ; try++ {
		l := playLevels(t, scaled(8*time.Second, time.Minute))
		t.Logf("try %d: single calls use %.4f of acme, of which standard has %.3f, and %.4f of beta; with one of %d at a time %.4f of acme, which was served %d times, each %v after the last at most; %d spends, 0 violations on sent at %d levels, %d at the upstream, which has no guard",
			try, l.single["acme"], l.standard, l.single["beta"], large, l.mixed, l.served, l.longest.Round(time.Millisecond), l.spends, len(levels), l.upstream)
		shared := l.standard >= lowest && l.standard <= scaled(1, highest) // a busy machine keeps premium from asking
		enough := l.single["acme"] >= least && l.single["beta"] >= least && l.served >= often && shared
		if enough {
			return
		}
		if try == 3 {
			t.Log(l.workers)
			require.GreaterOrEqual(t, l.single["acme"], least)
			require.GreaterOrEqual(t, l.single["beta"], least)
			require.GreaterOrEqual(t, l.served, often, "the large request is served in turn")
			require.True(t, shared, "standard has %.3f", l.standard)
		}
	}
}

// leveled is what came of it.
type leveled struct {
	single   map[string]float64 // the use of an account
	standard float64            // its part of acme
	mixed    float64            // of acme, with the large request
	served   int                // the large one
	longest  time.Duration
	spends   int
	upstream int
	workers  string
}

func playLevels(t *testing.T, lasting time.Duration) leveled {
	t.Helper()
	h := harness.New(t)
	c := h.Coordinator(harness.CoordinatorConfig{Policy: h.Policy(levelsPolicy)})
	args := []string{"--delay", "10ms"}
	for _, l := range levels {
		args = append(args, "--contract", "/"+l.key+"="+l.rules)
	}
	up := h.Upstream(args...)
	f := &levelFleet{t: t, h: h, nats: c.NATS, upstream: up.URL}
	for _, p := range parties {
		for range p.workers {
			f.start(p.key, p.class, 4, 1)
		}
	}
	from := f.begun(f.logs)
	f.until(from, lasting)
	f.start("acme/prod/list", "premium", 1, large)
	again := f.begun(f.logs[len(f.logs)-1:])
	f.until(again, lasting)
	out := ""
	for _, p := range f.fleet {
		h.Stop(p)
		out += p.Output()
	}
	spends := h.Logs(f.logs...)
	var judged []oracle.Limit
	for _, l := range levels {
		judged = append(judged, oracle.Limit{Key: l.key, Rules: oracle.MustRules(l.rules)})
	}
	require.Empty(t, oracle.Judge(spends, judged), "on sent")
	l := leveled{single: map[string]float64{}, spends: len(spends), upstream: h.Report(up).Violations(), workers: out}
	for _, account := range []string{"acme", "beta"} {
		l.single[account] = useOf(t, spends, account, from, from+int64(lasting))
	}
	l.standard = standards(spends, from, from+int64(lasting))
	l.mixed = useOf(t, spends, "acme", again, again+int64(lasting))
	last := again
	for _, s := range h.Logs(f.logs[len(f.logs)-1]) {
		require.EqualValues(t, large, s.Cost)
		l.served++
		l.longest = max(l.longest, time.Duration(s.At-last))
		last = s.At
	}
	h.Stop(c.Process)
	h.Stop(up.Process)
	return l
}

// useOf is the use of what binds an account of all its rules, in calls.
func useOf(t *testing.T, spends []oracle.Spend, account string, from, to int64) float64 {
	t.Helper()
	var within []oracle.Spend
	for _, s := range oracle.Under(spends, account) {
		if s.At >= from && s.At < to {
			within = append(within, s)
		}
	}
	var rules []oracle.Rule
	for _, l := range levels {
		if l.key == account {
			rules = oracle.MustRules(l.rules)
		}
	}
	use, err := oracle.Use(within, oracle.Schedule{Rules: rules, Units: levelsCost}, from, to, 2*time.Second)
	require.NoError(t, err)
	return use
}

// levelFleet is the workers, each with its log.
type levelFleet struct {
	t        *testing.T
	h        *harness.Test
	nats     string
	upstream string
	fleet    []*harness.Process
	logs     []string
}

// start adds a worker whose calls cost n times what one costs.
func (f *levelFleet) start(key, class string, callers, n int64) {
	log := filepath.Join(f.t.TempDir(), "log")
	args := []string{"--key", key, "-j", fmt.Sprint(callers), "--cost", fmt.Sprint(n), "--log", log}
	if class != "" {
		args = append(args, "--class", class)
	}
	var query []string
	for _, unit := range []string{"tokens", "kb"} {
		cost := fmt.Sprintf("%s=%d", unit, n*levelsCost[unit])
		args = append(args, "--unit", cost)
		query = append(query, "unit="+cost)
	}
	args = append(args, "--get", f.upstream+"/"+key+"?"+strings.Join(query, "&"))
	name := fmt.Sprintf("w%d", len(f.fleet))
	f.fleet = append(f.fleet, startWorker(f.h, f.nats, name, "load", "", args...))
	f.logs = append(f.logs, log)
}

// begun waits until each of these logs has a line, and gives the latest of their instants.
func (f *levelFleet) begun(logs []string) (from int64) {
	for _, log := range logs {
		hasLines(f.h, log, 1)
		from = max(from, entries(f.t, log)[0].Sent)
	}
	return from
}

// until waits until so much time has passed since an instant, in parts, each below the
// bound of a wait.
func (f *levelFleet) until(from int64, lasting time.Duration) {
	for at := time.Unix(0, from); time.Since(at) < lasting; {
		next := min(lasting, time.Since(at)+20*time.Second)
		f.h.Until("the end of the load", passed(at.Add(next)))
	}
}
