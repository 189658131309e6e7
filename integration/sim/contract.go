package sim

import (
	"fmt"
	"strings"
	"time"

	"ration/integration/oracle"
)

// Contract is what a run's keys are limited by, each by itself.
type Contract struct {
	Rules string // as the oracle and the policy read them, separated by ", "
	Guard time.Duration
	// From is the Unix time in nanoseconds at which the world begins, 0 for any.
	From int64
	// Scarce says that a window longer than the run is used up before the calm, so
	// that nothing is left for use to be judged by.
	Scarce bool
	// Least is what use has to reach, if it is above what all contracts have to.
	Least float64
}

// contracts are those that runs draw from.
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
	// An hour that is shown again, in the middle of the faults.
	{Rules: "20/1s, 150/1h fixed tz=Europe/Berlin", From: before(12*time.Second, "2027-10-31T01:00:00Z"), Scarce: true},
	// A midnight that is skipped, where the fleet begins to want all it can get.
	{Rules: "20/1s, 400/1d fixed tz=America/Sao_Paulo", From: before(faultyFor+settleFor, "2018-11-04T03:00:00Z")},
}

// before gives an instant some time before the one that is written.
func before(d time.Duration, text string) int64 {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at.Add(-d).UnixNano()
}

func (c Contract) policy() string { return c.policyOf(c.Rules) }

// policyOf is the policy of the contract with other rules.
func (c Contract) policyOf(rules string) string {
	rules = "[" + rules + "]"
	guard := ""
	if c.Guard > 0 {
		guard = fmt.Sprintf(", guard: %v", c.Guard)
	}
	return fmt.Sprintf(`limits: [{key: "{name}", rules: %s%s}, {key: junk, rules: [unlimited]}, {key: "junk/{k}", rules: [5/2s]}]`, rules, guard)
}

// onTheClock says that windows begin and end by ledger time, so that the coordinator's
// clock must not run apart. Fixed ones go by the wall clock, however that runs.
func (c Contract) onTheClock() bool { return strings.Contains(c.Rules, "counter") }

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
