package lease

import (
	"math"
	"slices"
	"strings"
	"time"

	"ration/algo"
)

// contracts is every contract that is in use, so that accounts which are bound alike share
// one. With another policy it begins anew.
type contracts struct {
	bound map[Binding]*contract
	// kept are those with rules that the policy has no more, and recorded those of records
	// that were written under others.
	kept     map[named]*contract
	recorded map[named]*contract
	heirs    map[legacy]heir
	rules    map[ruleKey]*contractRule
}

// named is what binds a prefix, and the names of rules, one on a line.
type named struct {
	Binding
	names string
}

// legacy is a contract, and what binds its accounts from now on.
type legacy struct {
	was *contract
	Binding
}

// heir is the contract that takes the place of another. For each of all its rules, from
// has the place among all of the other, or -1.
type heir struct {
	contract *contract
	from     []int
}

// ruleKey is all that makes two rules work out alike.
type ruleKey struct {
	rule   algo.Rule
	plan   string
	guard  time.Duration
	shadow bool
}

func noContracts() contracts {
	return contracts{
		bound: map[Binding]*contract{}, kept: map[named]*contract{}, recorded: map[named]*contract{},
		heirs: map[legacy]heir{}, rules: map[ruleKey]*contractRule{},
	}
}

// contract is that of prefixes which are bound so.
func (l *Ledger) contract(b Binding) *contract {
	c := l.contracts.bound[b]
	if c == nil {
		c = newContract(b, l.config.PPM, &l.dial)
		c.order(b, l.policy)
		for i, r := range c.all {
			c.all[i] = l.contracts.intern(r)
		}
		c.rules = c.all[:len(c.rules):len(c.rules)]
		l.contracts.bound[b] = c
	}
	return c
}

// intern gives the rule that works out as r does, so that windows need not be brought
// under another where nothing has changed.
func (c *contracts) intern(r *contractRule) *contractRule {
	key := ruleKey{r.spec.Rule(), r.plan, r.allowance.Guard, r.shadow != nil}
	if known := c.rules[key]; known != nil {
		return known
	}
	c.rules[key] = r
	return r
}

// beside gives a contract that is b's, and has rules besides that the policy has no more.
func (l *Ledger) beside(b Binding, removed []*contractRule) *contract {
	base := l.contract(b)
	if len(removed) == 0 {
		return base
	}
	key := named{b, names(removed)}
	c := l.contracts.kept[key]
	if c == nil {
		c = base.without()
		c.rules, c.slots, c.listed = base.rules, base.slots, base.listed
		c.all = append(slices.Clone(base.all), removed...)
		l.contracts.kept[key] = c
	}
	for i, r := range removed {
		kept := c.all[c.listed+i]
		kept.until = max(kept.until, r.until)
	}
	return c
}

// without is the contract but for its rules.
func (c *contract) without() *contract {
	w := *c
	w.rules, w.all, w.listed, w.slots, w.keep = nil, nil, 0, false, 0
	return &w
}

func names(rules []*contractRule) string {
	var b strings.Builder
	for _, r := range rules {
		b.WriteString(r.name())
		b.WriteByte('\n')
	}
	return b.String()
}

// recorded gives the contract whose rules are those of a record: that of b if they are
// the same. A name that stands for no rule is nobody's.
func (l *Ledger) recorded(b Binding, r *Record) *contract {
	base := l.contract(b)
	if len(r.Windows) == len(base.all) && !slices.ContainsFunc(base.all, func(rule *contractRule) bool { return r.window(rule.name()) < 0 }) {
		return base
	}
	var texts []string
	for _, w := range r.Windows {
		texts = append(texts, w.Rule)
	}
	slices.Sort(texts) // mirrors give them in any order
	key := named{b, strings.Join(texts, "\n")}
	c := l.contracts.recorded[key]
	if c != nil {
		return c
	}
	c = base.without()
	for _, text := range texts {
		plan, text := "", text
		if rest, of := strings.CutPrefix(text, planned); of {
			plan, text = planned, rest // which one is not known, and of no account
		}
		if rule, err := algo.ParseRule(text); err == nil {
			c.add([]algo.Rule{rule}, plan, l.config.PPM, &l.dial)
		}
	}
	c.all = slices.DeleteFunc(c.all, func(r *contractRule) bool { return !slices.Contains(texts, r.name()) })
	c.rules, c.listed = c.all, len(c.all)
	l.contracts.recorded[key] = c
	return c
}

// same says that the rules count the same, only to another limit.
func (r *contractRule) same(o *contractRule) bool {
	return counted(r.spec.Rule()) == counted(o.spec.Rule())
}

// inherit gives the contract of accounts that were under one and are bound so from now on.
// A rule of a plan goes on as one of the plan and of the limit as one of the limit, if
// both have it. One that comes is new unless there was one that counts the same; one that
// goes is kept until it is drained, unless another counts the same.
func (l *Ledger) inherit(was *contract, b Binding) heir {
	key := legacy{was, b}
	if h, known := l.contracts.heirs[key]; known {
		return h
	}
	base := l.contract(b)
	var from []int
	for _, r := range base.all {
		at := slices.IndexFunc(was.all, func(o *contractRule) bool { return r.same(o) && (r.plan == "") == (o.plan == "") })
		if at < 0 {
			at = slices.IndexFunc(was.all, r.same)
		}
		from = append(from, at)
	}
	var removed []*contractRule
	for i, r := range was.all {
		if slices.ContainsFunc(base.all, r.same) || slices.ContainsFunc(removed, r.same) {
			continue
		}
		switch {
		case r.until == 0:
			r = l.remove(r)
		case r.until <= l.now:
			continue
		}
		removed, from = append(removed, r), append(from, i)
	}
	h := heir{l.beside(b, removed), from}
	l.contracts.heirs[key] = h
	return h
}

// remove gives a rule as it is when the policy has it no more. It is kept for as long as
// anything can be left of what was granted before: what is granted meanwhile counts too.
func (l *Ledger) remove(r *contractRule) *contractRule {
	lasts := r.spec.Lasts()
	ttl := max(l.config.TokenTTL, l.config.SlotTTL)
	gone := &contractRule{text: r.text, plan: r.plan, of: r.of, allowance: r.allowance, dial: r.dial}
	gone.until = l.now.Add(min(lasts, math.MaxInt64-ttl) + ttl)
	gone.spec = gone.compile(r.spec.Rule(), r.allowance)
	return gone
}

// lapsed says that the contract has a rule that need not be kept any longer.
func (c *contract) lapsed(now algo.Instant) bool {
	return slices.ContainsFunc(c.all[c.listed:], func(r *contractRule) bool { return r.until <= now })
}
