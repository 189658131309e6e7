package upstream

import (
	"encoding/json"
	"net/http"
	"slices"

	"ration/integration/oracle"
)

// Report is what the upstream saw, as /report gives it. Instants are Unix
// nanoseconds, as strings in JSON, and 0 if nothing arrived.
type Report struct {
	Arrivals    int64            `json:"arrivals"` // refused ones too
	Refused     int64            `json:"refused"`
	MaxInFlight int64            `json:"max_in_flight"`
	InFlight    int64            `json:"in_flight"`
	First       int64            `json:"first,string"`
	Last        int64            `json:"last,string"`
	Contracts   []ContractReport `json:"contracts"`
}

// ContractReport is what arrived under one contract.
type ContractReport struct {
	Prefix     string       `json:"prefix"`
	Arrivals   int64        `json:"arrivals"`
	Rules      []RuleReport `json:"rules"`
	Violations []Violation  `json:"violations"`
}

// RuleReport is how one rule fared: the heaviest load it saw, the arrivals that
// broke it, and how often it bound, as oracle.Binds defines that.
type RuleReport struct {
	Rule       string `json:"rule"`
	Worst      int64  `json:"worst"`
	Violations int64  `json:"violations"`
	Binds      int    `json:"binds"`
}

// Violation is one arrival that broke one rule.
type Violation struct {
	Path  string `json:"path"`
	Rule  string `json:"rule"`
	At    int64  `json:"at,string"`
	Load  int64  `json:"load"` // this arrival counted
	Limit int64  `json:"limit"`
}

// Violations is how many times an arrival broke a rule, over all contracts.
func (r Report) Violations() int {
	n := 0
	for _, c := range r.Contracts {
		n += len(c.Violations)
	}
	return n
}

// Report tells what has been seen so far. It is safe for concurrent use.
func (s *Server) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{
		Arrivals: int64(len(s.arrivals)), Refused: s.refused,
		MaxInFlight: s.most, InFlight: s.inFlight,
	}
	if len(s.arrivals) > 0 {
		r.First, r.Last = s.arrivals[0].At, s.arrivals[len(s.arrivals)-1].At
	}
	for _, t := range s.contracts {
		r.Contracts = append(r.Contracts, t.report())
	}
	return r
}

func (t *tally) report() ContractReport {
	c := ContractReport{
		Prefix: t.Prefix, Arrivals: int64(len(t.arrivals)),
		Violations: append([]Violation{}, t.violations...),
	}
	for _, rule := range t.Rules {
		worst, _ := oracle.Worst(rule, t.arrivals)
		r := RuleReport{Rule: rule.String(), Worst: worst, Binds: oracle.Binds(rule, t.arrivals)}
		for _, v := range t.violations {
			if v.Rule == r.Rule {
				r.Violations++
			}
		}
		c.Rules = append(c.Rules, r)
	}
	return c
}

// find tells where an arrival of the server stands in the contract's own list.
func (t *tally) find(index int) (int, bool) { return slices.BinarySearch(t.at, index) }

func (s *Server) writeReport(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.Encode(s.Report())
}
