package lease

import (
	"slices"

	"ration/algo"
)

// Record is everything the ledger knows of one limited prefix, complete by
// itself: a child that was never loaded is neither forgotten nor held for ever.
// A record without windows and leases says that the prefix is at rest.
type Record struct {
	Key     Key
	Windows []WindowRecord
	Leases  []LeaseRecord
}

// WindowRecord is the state of a window and the rule it counts.
type WindowRecord struct {
	Rule  string
	State algo.State
}

// LeaseRecord is a lease as one of its prefixes sees it.
type LeaseRecord struct {
	ID     ID
	Keys   []Key
	Began  algo.Instant
	Tokens Part
	Slots  Part
	Units  []UnitPart // by name; nil in a lease of calls alone
}

// Part is the tokens of a lease, or its slots, or what it has of another unit. Of slots, the spent ones are those
// cut.
type Part struct {
	Granted  int64
	Spent    int64
	Returned int64
	Expires  algo.Instant
}

// Empty says that the prefix is at rest: equal to one never touched.
func (r Record) Empty() bool { return len(r.Windows) == 0 && len(r.Leases) == 0 }

// record adds to the turn the record of each account that changed.
func (l *Ledger) record() {
	for _, a := range l.touched {
		a.touched = false
		l.turn.Records = append(l.turn.Records, a.record(l.now))
	}
	l.touched = l.touched[:0]
}

func (a *account) record(now algo.Instant) Record {
	r := Record{Key: a.key}
	for i, rule := range a.contract.rules {
		r.Windows = append(r.Windows, WindowRecord{Rule: rule.text, State: a.windows[i].State(now)})
	}
	for _, le := range a.leases {
		r.Leases = append(r.Leases, LeaseRecord{
			ID:     le.id,
			Keys:   le.keys,
			Began:  le.began,
			Tokens: le.tokens,
			Slots:  le.slots,
			Units:  slices.Clone(le.units),
		})
	}
	return r
}

// Unloaded names the limited prefixes that the messages are about and the
// ledger does not have: the leader loads their records and restores them before
// the turn. An unmirrored ledger has all there are.
func (l *Ledger) Unloaded(in []Message) []Key {
	if l.config.Unmirrored {
		return nil
	}
	var missing []Key
	seen := map[Key]bool{}
	look := func(keys []Key) {
		for _, k := range keys {
			if seen[k] {
				continue
			}
			seen[k] = true
			for _, m := range l.policy.Match(k) {
				if _, ok := l.accounts.Get(m.Prefix); !ok && !seen[m.Prefix+"/"] {
					seen[m.Prefix+"/"] = true // no key ends in a slash
					missing = append(missing, m.Prefix)
				}
			}
		}
	}
	for _, m := range in {
		if m.Request != nil {
			look(m.Request.Keys)
			continue
		}
		for _, c := range m.Report.Counts {
			look(c.Keys)
		}
		for _, g := range m.Report.GivenUp {
			look(g.Keys)
		}
	}
	return missing
}

// Restore takes up the record of a prefix that the ledger does not have. Leases
// in it that have expired meanwhile are settled in the next turn. A record of a
// prefix that the policy no longer limits is ignored, and so is one of a prefix at
// rest: that is made when it is asked for.
func (l *Ledger) Restore(r Record) {
	if _, ok := l.accounts.Get(r.Key); ok || r.Empty() {
		return
	}
	limit := l.policy.limitOf(r.Key)
	if limit == nil {
		return
	}
	a := l.open(Match{r.Key, limit})
	l.retain(a)
	l.use(a)
	for i, rule := range a.contract.rules {
		a.windows[i] = rule.spec.Restore(r.state(rule, l.now))
	}
	for _, lr := range r.Leases {
		l.restoreLease(a, lr)
	}
}

// state is what the record knows of a rule. Of a rule that is new to it, it
// knows what is held.
func (r *Record) state(rule *contractRule, now algo.Instant) algo.State {
	for _, w := range r.Windows {
		if w.Rule == rule.text {
			return w.State
		}
	}
	window := rule.spec.Window(now)
	fresh := window.State(now)
	for _, le := range r.Leases {
		fresh.Held += (&lease{tokens: le.Tokens, slots: le.Slots, units: le.Units}).rest(rule.of)
	}
	return fresh
}

func (l *Ledger) restoreLease(a *account, r LeaseRecord) {
	o := owner{r.ID.Holder, r.Keys[0].Tenant()}
	h, known := l.holders.Get(o)
	if !known {
		h = l.meet(o) // whatever the bound: it has a lease
	}
	le, known := l.leases.Get(name{h, r.ID.Seq})
	if !known {
		le = &lease{
			id: r.ID, keys: r.Keys, holder: h, began: r.Began,
			tokens: r.Tokens, slots: r.Slots, units: slices.Clone(r.Units),
		}
		l.begin(le)
		l.carry(tokens, le.tokens.rest())
		l.carry(slots, le.slots.rest())
		l.stats.Adopted += le.tokens.rest()
		l.stats.SlotsAdopted += le.slots.rest()
		for i := range le.units {
			l.carry(resource(le.units[i].Unit), le.units[i].rest())
			l.stats.UnitsAdopted += le.units[i].rest()
		}
		if at, ok := le.expires(); ok {
			l.timers.set(timer{at: at, lease: le})
		}
	}
	le.add(a)
	a.hold(r.ID.Holder, le.slots.rest())
}

// limitOf gives the limit of exactly this prefix, or nil.
func (p *Policy) limitOf(prefix Key) *Limit {
	for _, m := range p.Match(prefix) {
		if m.Prefix == prefix {
			return m.Limit
		}
	}
	return nil
}
