package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ration/integration/oracle"
	"ration/lease"
)

// reforms lets the policy of a site change, and knows which was in force when.
//
// Limits only fall below those of the contract, and rise again, and rules only come beside
// its own, and go: so what the contract says of a rule that never went holds all the time.
// And while a policy is in force, what it says holds of all that is taken under it: of
// spends from when leases are over that were granted before.
type reforms struct {
	site     *site
	contract Contract
	ever     bool
	rules    map[string]string        // by the text of the policy
	texts    map[*lease.Policy]string // rules, of those that were asked for
	periods  []period
}

// period is the time from which on, and until the next, a policy was in force.
type period struct {
	from  time.Duration
	rules string
}

// holdFor is longer than tokens are held.
const holdFor = 6 * time.Second

// begin lets the policy change now and then until the world is calm.
func (r *reforms) begin(s *site, c Contract) {
	r.site, r.contract = s, c
	r.rules = map[string]string{s.all[0].policy.String(): c.Rules}
	r.texts = map[*lease.Policy]string{}
	w := s.world
	var next func()
	next = func() {
		if w.calm {
			return
		}
		r.change()
		w.after(w.between(500*time.Millisecond, 12*time.Second), next)
	}
	w.after(w.between(0, 6*time.Second), next)
}

// change gives the leader another policy.
func (r *reforms) change() {
	w := r.site.world
	rules := strings.Split(r.contract.Rules, ", ")
	switch n := w.rand.IntN(6); n {
	case 0:
		r.give(r.contract.Rules, "policy changed back")
		return
	case 1:
		if len(r.periods) > 0 {
			r.give(r.periods[len(r.periods)-1].rules, "same policy again")
		}
		return
	case 2:
		if i := w.rand.IntN(len(rules)); len(rules) > 1 && !fixedPart(rules[i]) {
			r.give(strings.Join(slices.Delete(rules, i, i+1), ", "), "rule removed")
		}
		return
	case 3:
		r.give(strings.Join(append(rules, fmt.Sprintf("%d/5s", 5+w.rand.IntN(60))), ", "), "rule added")
		return
	}
	for i := range rules {
		var limit int
		if _, err := fmt.Sscanf(rules[i], "%d concurrent", &limit); err == nil && w.rand.IntN(3) > 0 {
			rules[i] = fmt.Sprintf("%d concurrent", max(1, limit/2))
			continue
		}
		if _, err := fmt.Sscanf(rules[i], "%d/", &limit); err == nil && w.rand.IntN(3) > 0 {
			lower := max(1, limit/(2+w.rand.IntN(9)))
			if strings.Contains(rules[i], "burst") {
				lower = max(10, limit/2)
			}
			rules[i] = fmt.Sprintf("%d%s", lower, strings.TrimPrefix(rules[i], fmt.Sprint(limit)))
		}
	}
	r.give(strings.Join(rules, ", "), "limit lowered")
}

// fixedPart says that calls are made otherwise without such a rule.
func fixedPart(rule string) bool {
	return strings.Contains(rule, "concurrent") || strings.Contains(rule, "pace")
}

func (r *reforms) give(rules, fault string) {
	l := r.site.leader()
	if l == nil {
		return
	}
	p, err := lease.ParsePolicy("sim", []byte(r.contract.policyOf(rules)))
	if err != nil {
		panic(err)
	}
	r.site.world.count(fault)
	r.rules[p.String()] = rules
	l.reforms = append(l.reforms, p)
	l.turn()
}

// back puts the contract into force again, and looks for a while whether it is: a change may
// have been lost with its leader.
func (r *reforms) back() {
	w := r.site.world
	if l := r.site.leader(); l != nil && len(l.reforms) == 0 {
		if p, _ := l.ledger.Policy(); r.rules[p.String()] != r.contract.Rules {
			r.give(r.contract.Rules, "policy changed back")
		}
	}
	if w.now < faultyFor+settleFor/3 {
		w.after(100*time.Millisecond, r.back)
	}
}

// reform puts what was given into force in the turn that begins, as the coordinator does.
func (l *lessor) reform() {
	if len(l.reforms) == 0 || !l.course.Loaded() {
		return
	}
	for _, p := range l.reforms {
		if _, changed := l.ledger.Change(p, 0); changed {
			l.world.count("policy changed")
			l.site.reforms.ever = true
		}
	}
	l.reforms = nil
}

// delivered notes the policy under which answers leave.
func (r *reforms) delivered(l *lessor) {
	p, revision := l.ledger.Policy()
	if revision > 1 {
		l.known.Policy, l.known.Revision = p, revision
	}
	if r.rules == nil {
		return
	}
	rules := r.rulesOf(p)
	if n := len(r.periods); n > 0 && r.periods[n-1].rules == rules {
		return
	}
	if rules != r.contract.Rules && l.ledger.Stats().PolicyChanges == 0 {
		l.world.count("takeover under a changed policy")
	}
	r.periods = append(r.periods, period{l.world.now, rules})
}

// always gives the contract with those of its rules that never went.
func (r *reforms) always() Contract {
	c := r.contract
	c.Rules = strings.Join(slices.DeleteFunc(strings.Split(c.Rules, ", "), func(text string) bool {
		_, form, rate := strings.Cut(text, "/")
		return rate && slices.ContainsFunc(r.periods, func(p period) bool { return !strings.Contains(p.rules, "/"+form) })
	}), ", ")
	return c
}

// told says that what the leader goes by is the policy under which answers left last.
func (r *reforms) told(l *lessor) bool {
	p, _ := l.ledger.Policy()
	n := len(r.periods)
	return r.rules == nil || n > 0 && r.periods[n-1].rules == r.rulesOf(p)
}

// rulesOf gives the rules of a policy.
func (r *reforms) rulesOf(p *lease.Policy) string {
	rules, known := r.texts[p]
	if !known {
		rules = r.rules[p.String()]
		r.texts[p] = rules
	}
	return rules
}

// judge gives what broke a policy while it was in force.
func (r *reforms) judge(keys []lease.Key) (found []oracle.Violation) {
	w := r.site.world
	for i, p := range r.periods {
		until := w.now
		if i+1 < len(r.periods) {
			until = r.periods[i+1].from
		}
		from := p.from + holdFor
		if p.rules == r.contract.Rules || from >= until {
			continue
		}
		w.count("judged by another policy")
		for _, k := range keys {
			var spends []oracle.Spend
			for _, s := range append(oracle.Under(w.spends, string(k)), oracle.Under(w.charges, string(k))...) {
				if s.At >= w.origin+int64(from) && s.At < w.origin+int64(until) && (s.Cost > 0 || s.Units != nil) {
					spends = append(spends, s)
				}
			}
			found = append(found, oracle.Violations(spends, oracle.Rates(oracle.MustRules(p.rules)))...)
		}
	}
	return found
}
