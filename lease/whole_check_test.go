package lease

import (
	"fmt"

	"ration/algo"
)

// whole checks everything that the ledger knows twice, with the tickets that were
// neither answered nor dropped.
func (l *Ledger) whole(open map[Ticket]bool) error {
	for _, check := range []func() error{
		func() error { return l.awake(l.now) },
		func() error { return l.ticketed(open) },
		l.leasesTimed,
		l.leasesHold,
		l.accountsAddUp,
		l.linesAddUp,
		l.tenantsAddUp,
		l.pausesAddUp,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// awake says that nobody in line could be granted at an instant up to the next
// timer.
func (l *Ledger) awake(at algo.Instant) error {
	was := l.now
	l.now = at
	defer func() { l.now = was }()
	for w := range l.waiting.All() {
		if need, ok := l.needs(w); w.parked == nil && ok && len(l.lacks(w, need)) == 0 {
			return fmt.Errorf("%v needs %+v of %v and lacks nothing in %v, which is before the next timer", w.req.ID, need, w.req.Keys, at.Sub(was))
		}
	}
	return nil
}

func (l *Ledger) ticketed(open map[Ticket]bool) error {
	waits := map[Ticket]bool{}
	for w := range l.waiting.All() {
		if waits[w.ticket] = true; !open[w.ticket] || w.alarm == 0 {
			return fmt.Errorf("%v waits with ticket %d, open: %v, and alarm %d", w.req.ID, w.ticket, open[w.ticket], w.alarm)
		}
	}
	for t := range open {
		if !waits[t] {
			return fmt.Errorf("ticket %d is open and nobody waits with it", t)
		}
	}
	return nil
}

func (l *Ledger) leasesTimed() error {
	for le := range l.leases.All() {
		if at, ok := le.expires(); ok && (le.alarm == 0 || l.timers.heap[le.alarm-1].at > at) {
			return fmt.Errorf("lease %v has no timer by its expiry", le.id)
		}
		if le.over() {
			return fmt.Errorf("lease %v holds nothing and is there", le.id)
		}
	}
	return nil
}

// leasesHold: from every prefix of their keys that the policy names.
func (l *Ledger) leasesHold() error {
	for le := range l.leases.All() {
		for _, k := range le.keys {
			for _, m := range l.policy.Match(k) {
				a, ok := l.accounts.Get(m.Prefix)
				if !ok || indexOf(le.accounts, a) < 0 {
					return fmt.Errorf("lease %v on %v does not hold from %s", le.id, le.keys, m.Prefix)
				}
				if a.contract.guard != m.Guard() || len(a.contract.rules) != len(l.contract(m.Binding).rules) {
					return fmt.Errorf("%s is not bound as the policy says", a.key)
				}
			}
		}
	}
	return nil
}

// accountsAddUp: windows hold what leases hold, and nothing is lost in them.
func (l *Ledger) accountsAddUp() error {
	var all Amount
	for le := range l.leases.All() {
		all.Tokens += le.tokens.rest()
		all.Slots += le.slots.rest()
		all.Units = sumUnits(all.Units, le.units, (*Part).rest)
	}
	if !all.Equal(l.held) {
		return fmt.Errorf("leases hold %+v, and the sum is %+v", all, l.held)
	}
	for a := range l.accounts.All() {
		held, mine := map[resource]int64{}, map[Holder]int64{}
		for i, le := range a.leases {
			if at := indexOf(le.accounts, a); at < 0 || le.places[at] != i {
				return fmt.Errorf("lease %v is not at its place at %s", le.id, a.key)
			}
			mine[le.id.Holder] += le.slots.rest()
			held[tokens] += le.tokens.rest()
			held[slots] += le.slots.rest()
			for i := range le.units {
				held[resource(le.units[i].Unit)] += le.units[i].rest()
			}
		}
		for h, n := range mine {
			if a.contract.slots && n != a.slots[h] {
				return fmt.Errorf("%v has %d slots of %s, and leases of %d", h, a.slots[h], a.key, n)
			}
		}
		for i, r := range a.contract.all {
			w := &a.windows[i]
			free, spent := w.Free(l.now), w.Spent(l.now)
			lowered := l.stats.PolicyChanges > 0 && free == 0
			if w.Held() != held[r.of] || !lowered && !lawfulSum(w.Limit(), free, w.Held(), spent) {
				return fmt.Errorf("%s %s: %d free, %d held of which leases hold %d, %d spent", a.key, r.text, free, w.Held(), held[r.of], spent)
			}
		}
		if a.quiet() && a.busy != &resting {
			return fmt.Errorf("%s is at rest, and has room to be in use", a.key)
		}
	}
	return nil
}

// lawfulSum says that free, held and spent are the limit, or that nothing is free and
// the rest has come to as much again at most, by overspend.
func lawfulSum(limit, free, held, spent int64) bool {
	return free+held+spent == limit || free == 0 && held+spent > limit && held+spent <= 2*limit
}

func indexOf(accounts []*account, a *account) int {
	for i, x := range accounts {
		if x == a {
			return i
		}
	}
	return -1
}

// linesAddUp: a line knows what its waiters need, and keeps for nobody else.
func (l *Ledger) linesAddUp() error {
	for a := range l.accounts.All() {
		in := map[*waiter]bool{}
		units := map[resource]int64{}
		need, slotsOnly := int64(0), 0
		for w := range a.line.all() {
			if x, ok := l.waiting.Get(w.name()); !ok || x != w {
				return fmt.Errorf("%v is in the line of %s and does not wait", w.req.ID, a.key)
			}
			in[w] = true
			if need += w.req.Need.Tokens; w.req.Need.Tokens == 0 {
				slotsOnly++
			}
			for _, u := range w.req.Need.Units {
				units[resource(u.Unit)] += u.N
			}
		}
		if need != a.line.tokens || slotsOnly != a.line.slotsOnly {
			return fmt.Errorf("the line of %s knows of %d tokens and %d who need none; they are %d and %d", a.key, a.line.tokens, a.line.slotsOnly, need, slotsOnly)
		}
		for _, u := range a.line.units {
			if u.needed != units[u.unit] {
				return fmt.Errorf("the line of %s knows of %d %s; they are %d", a.key, u.needed, u.unit, units[u.unit])
			}
		}
		if err := l.classesAddUp(a); err != nil {
			return err
		}
		for _, k := range a.line.keepers {
			if k != nil && !in[k] {
				return fmt.Errorf("%s is kept for %v, who does not wait", a.key, k.req.ID)
			}
		}
	}
	return nil
}

// classesAddUp: a class knows who stands in it, all waiters stand in their order, and there
// are no more than may be.
func (l *Ledger) classesAddUp(a *account) error {
	standing, counts, flows := map[*class]int{}, map[*class]int{}, map[*class]map[Holder]int{}
	all, last := 0, (*waiter)(nil)
	for w := range a.line.all() {
		if last != nil && !last.before(w) {
			return fmt.Errorf("%v stands behind %v at %s", w.req.ID, last.req.ID, a.key)
		}
		if last, all = w, all+1; !w.stands {
			return fmt.Errorf("%v stands at %s, and does not", w.req.ID, a.key)
		}
		p := w.places[indexOf(w.accounts, a)]
		if p.class != a.classAt(w) || w.class != "" && l.policy.Classes[w.rank] != w.class {
			return fmt.Errorf("%v of class %s stands as %s at %s", w.req.ID, w.class, p.class.name, a.key)
		}
		if standing[p.class]++; p.counts {
			counts[p.class]++
		}
		if flows[p.class] == nil {
			flows[p.class] = map[Holder]int{}
		}
		flows[p.class][w.req.ID.Holder]++
	}
	if all != a.line.len() {
		return fmt.Errorf("%d of %d waiters stand at %s", all, a.line.len(), a.key)
	}
	if most := a.contract.shed; most > 0 && a.counted() > most {
		return fmt.Errorf("%d wait at %s, which sheds beyond %d", a.counted(), a.key, most)
	}
	for _, c := range a.line.classes {
		if c.standing != standing[c] || c.counts != counts[c] || c.active != len(flows[c]) || c.standing == 0 && (c.flows != nil || c.credit != 0) {
			return fmt.Errorf("class %s of %s has %d standing, %d counted, %d active; they are %d, %d and %d",
				c.name, a.key, c.standing, c.counts, c.active, standing[c], counts[c], len(flows[c]))
		}
		for h, n := range flows[c] {
			if c.flows[h] == nil || c.flows[h].waiting != n {
				return fmt.Errorf("%v has %d requests in class %s of %s", h, n, c.name, a.key)
			}
		}
		if bound, _ := l.full(a, c); c.counts > bound {
			return fmt.Errorf("%d wait in class %s of %s, where %d may", c.counts, c.name, a.key, bound)
		}
	}
	return nil
}

// tenantsAddUp: what counts against a bound is what there is.
func (l *Ledger) tenantsAddUp() error {
	keys, kept := map[string]int{}, 0
	for a := range l.accounts.All() {
		if a.kept {
			kept++
			keys[a.key.Tenant()]++
		}
	}
	for name, n := range keys {
		if most := l.tenantKeys.most(name); most < n || most > kept {
			return fmt.Errorf("tenant %s has %d keys of %d, and %d at the most", name, n, kept, most)
		}
	}
	have, all := map[*tenant]tenant{}, tenant{}
	for h := range l.holders.All() {
		t := have[h.tenant]
		have[h.tenant] = tenant{holders: t.holders + 1, leases: t.leases + h.leases, waiters: t.waiters + len(h.waiting), ids: t.ids + h.over.n}
	}
	for t := range l.tenants.All() {
		n := have[t]
		if t.holders != n.holders || t.leases != n.leases || t.waiters != n.waiters || t.ids != n.ids {
			return fmt.Errorf("of tenant %+v there are %+v", *t, n)
		}
		all.leases, all.waiters, all.ids = all.leases+n.leases, all.waiters+n.waiters, all.ids+n.ids
	}
	if kept != l.kept || all.leases != l.leases.Len() || all.waiters != l.waiting.Len() || all.ids != l.ended.Len() {
		return fmt.Errorf("there are %d keys, %d leases, %d waiters and %d ids; tenants have %+v, and accounts %d",
			l.kept, l.leases.Len(), l.waiting.Len(), l.ended.Len(), all, kept)
	}
	return nil
}
