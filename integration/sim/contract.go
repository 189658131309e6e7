package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"ration/integration/oracle"
	"ration/lease"
)

// Contract is what a run's keys are limited by, each by itself.
type Contract struct {
	Rules string // as the oracle and the policy read them, separated by ", "
	// Above is what all keys have together, as a limit on their first segment, and
	// Beside what a further key has that calls name besides their own. With either, use
	// is that of what is above.
	Above  string
	Beside string
	// Across is what a further prefix has, of which some keys name one or two keys. What
	// calls name then crosses: no two keys of the fleet name the same, and each has some
	// with another in common.
	Across string
	Guard  time.Duration
	// Line is the line of each key as the policy has it. Where it has classes, some holders
	// are premium, some standard, and some name none.
	Line string
	// Most is how many may wait at a key in all classes together, if the line sheds by number.
	Most int
	// From is the Unix time in nanoseconds at which the world begins, 0 for any.
	From int64
	// Scarce says that a window longer than the run is used up before the calm, so
	// that nothing is left for use to be judged by.
	Scarce bool
	// Least is what use has to reach, if it is above what all contracts have to.
	Least float64
}

// contracts are those that most runs draw from.
var contracts = []Contract{
	{Rules: "5/1s, 12/3s"},
	{Rules: "20/1s, 60/12s"}, // longer than leases live, and than clocks agree
	{Rules: "100/1s, 250/3s, 8 concurrent", Guard: 20 * time.Millisecond},
	{Rules: "40/1s, 3 concurrent", Guard: 15 * time.Millisecond},
	{Rules: "60/2s bucket burst=20", Guard: 20 * time.Millisecond},
	{Rules: "30/1s, 200/10s fixed"},
	{Rules: "50/1s fixed, 6 concurrent", Guard: 10 * time.Millisecond},
	{Rules: "25/700ms fixed tz=Asia/Kathmandu", Guard: 20 * time.Millisecond},
	{Rules: "10/1s pace", Least: 0.98}, // a run of one, of 100 ms, costs one way: 2 ms at most
	{Rules: "20/1s pace, 100/6s, 3 concurrent", Guard: time.Millisecond},
	{Rules: "30/1s, 120/2s unit=w"},
	{Rules: "120/2s bucket burst=60 unit=w, 100/1s, 6 concurrent", Guard: 10 * time.Millisecond},
	{Rules: "40/2s counter"},
	{Rules: "20/1s, 50/3s counter", Guard: 30 * time.Millisecond},
	{Rules: "60/1s unit=w, 240/6s counter unit=w, 20/1s pace"},
	{Rules: "30/1s, 3 concurrent", Guard: 10 * time.Millisecond, Line: "{premium: 60, standard: 60, lower: 10%}"},
	{Rules: "20/1s, 60/2s unit=w", Line: "{premium: 3, standard: 2, lower: 0, shed: 60%}", Most: 3},
	// An hour that is shown again, in the middle of the faults.
	{Rules: "20/1s, 150/1h fixed tz=Europe/Berlin", From: before(12*time.Second, "2027-10-31T01:00:00Z"), Scarce: true},
	// A midnight that is skipped, where the fleet begins to want all it can get.
	{Rules: "20/1s, 400/1d fixed tz=America/Sao_Paulo", From: before(faultyFor+settleFor, "2018-11-04T03:00:00Z")},
}

// levelled are those that every fifth run draws from: calls name several keys, of
// which prefixes have limits too.
var levelled = []Contract{
	{Rules: "40/1s, 12/200ms", Above: "50/1s, 130/3s", Guard: 10 * time.Millisecond},
	{Rules: "60/1s, 4 concurrent", Above: "70/1s, 6 concurrent", Beside: "100/1s"},
	{Rules: "60/1s unit=w, 40/1s", Above: "150/2s unit=w, 100/1s fixed", Beside: "90/1s bucket burst=40 unit=w, 5 concurrent"},
	{Rules: "30/1s bucket burst=10, 90/1s unit=w", Above: "120/1s unit=w", Beside: "40/1s"},
}

// crossed are those that every twentieth run draws from.
var crossed = []Contract{
	{Rules: "40/1s, 150/6s", Above: "60/1s, 160/3s", Beside: "70/1s, 6 concurrent", Across: "50/1s bucket burst=25, 400/6s", Guard: 10 * time.Millisecond},
	{Rules: "60/1s unit=w, 5 concurrent", Above: "150/2s unit=w", Beside: "50/1s", Across: "200/1s unit=w, 40/1s", Guard: 20 * time.Millisecond},
	{Rules: "50/1s bucket burst=25", Above: "140/2s", Beside: "45/500ms, 480/2s unit=w", Across: "60/1s, 6 concurrent"},
}

// draw gives the contract of a run.
func draw(rnd *rand.Rand, seed uint64) Contract {
	c := contracts[rnd.IntN(len(contracts))]
	switch {
	case seed%20 == 0:
		c = crossed[rnd.IntN(len(crossed))]
	case seed%5 == 0:
		c = levelled[rnd.IntN(len(levelled))]
	}
	return c
}

// before gives an instant some time before the one that is written.
func before(d time.Duration, text string) int64 {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at.Add(-d).UnixNano()
}

const (
	above  = "t"
	beside = "t/route/r"
	across = "t/site/s"
)

// levels says that keys are paths, and have limits in common.
func (c Contract) levels() bool { return c.Above != "" }

// String tells contracts apart.
func (c Contract) String() string {
	text := c.Rules
	if c.levels() {
		text += " under " + c.Above
	}
	if c.Beside != "" {
		text += " beside " + c.Beside
	}
	if c.Across != "" {
		text += " across " + c.Across
	}
	return text
}

// all is every rule that some call keeps.
func (c Contract) all() string {
	text := c.Rules
	for _, more := range []string{c.Above, c.Beside, c.Across} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}

// key is a key of the fleet's by its name.
func (c Contract) key(name string) lease.Key {
	if c.levels() {
		return lease.Key(above + "/key/" + name)
	}
	return lease.Key(name)
}

// keys are what calls on a key name. Those that are rare name only that, or what is
// across too. The others of the fleet's, where there is something across, are named
// between keys of which one is a prefix of another.
func (c Contract) keys(k lease.Key) []lease.Key {
	switch {
	case c.Across != "" && k == c.key("other"):
		return []lease.Key{beside, k, across + "/x", across}
	case c.Across != "" && k == c.key(rare):
		return []lease.Key{k, across + "/y"}
	case c.Beside == "" || k == c.key(rare):
		return []lease.Key{k}
	}
	return []lease.Key{k, beside}
}

// limit is rules of a prefix with the spends that they count.
type limit struct {
	prefix lease.Key
	rules  string
	counts func(lease.Key) bool
}

// limits are those that keys have, each with what it counts.
func (c Contract) limits(keys []lease.Key) (all []limit) {
	for _, k := range keys {
		all = append(all, limit{k, c.Rules, func(of lease.Key) bool { return of == k }})
	}
	if c.levels() {
		all = append(all, limit{above, c.Above, func(lease.Key) bool { return true }})
	}
	if c.Beside != "" {
		all = append(all, limit{beside, c.Beside, func(of lease.Key) bool { return slices.Contains(c.keys(of), beside) }})
	}
	if c.Across != "" {
		all = append(all, limit{across, c.Across, func(of lease.Key) bool { return of != c.key("k") }})
	}
	return all
}

func (c Contract) policy() string { return c.policyOf(c.Rules) }

// policyOf is the policy of the contract with other rules of its keys.
func (c Contract) policyOf(rules string) string {
	guard := ""
	if c.Guard > 0 {
		guard = fmt.Sprintf(", guard: %v", c.Guard)
	}
	if c.Line != "" {
		guard += ", line: " + c.Line
	}
	limits := ""
	for _, l := range []struct{ key, rules string }{{string(c.key("{name}")), rules}, {above, c.Above}, {beside, c.Beside}, {across, c.Across}} {
		if l.rules != "" {
			limits += fmt.Sprintf("{key: %q, rules: [%s]%s}, ", l.key, l.rules, guard)
		}
	}
	return "limits: [" + limits + `{key: junk, rules: [3/1s, 8/2s fixed], shadow: true}, {key: "junk/{k}", rules: [5/2s]}]`
}

// concurrent says that a call on a key needs a slot.
func (c Contract) concurrent(k lease.Key) bool {
	return slices.ContainsFunc(c.limits([]lease.Key{k}), func(l limit) bool {
		return strings.Contains(l.rules, "concurrent") && l.counts(k)
	})
}

// class is that of the i-th holder.
func (c Contract) class(i int) string {
	if !strings.Contains(c.Line, "premium") {
		return ""
	}
	return []string{"premium", "standard", "premium", ""}[i%4]
}

// onTheClock says that windows begin and end by ledger time, so that the coordinator's
// clock must not run apart. Fixed ones go by the wall clock, however that runs.
func (c Contract) onTheClock() bool { return strings.Contains(c.all(), "counter") }

// longest gives the longest window of the contract, or of those that fit in a run
// three times.
func longest(rules []oracle.Rule, fitting bool) time.Duration {
	period := time.Second
	for _, r := range rules {
		if !fitting || r.Window <= time.Minute {
			period = max(period, r.Window)
		}
	}
	return period
}
