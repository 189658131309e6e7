package lease

import (
	"cmp"
	"slices"
	"strings"

	"ration/algo"
)

// Unloaded names the prefixes that the messages, and further keys, are about and the
// ledger does not have, since there may be records of them: of those that no limit names,
// too, for they may be paused. The leader loads their records and restores them before
// the turn. A ledger that has all there are needs none.
func (l *Ledger) Unloaded(in []Message, also ...Key) []Key {
	if l.complete {
		return nil
	}
	var missing []Key
	seen := map[Key]bool{} // those that end in a slash, as no key does, are prefixes
	look := func(keys []Key) {
		for _, k := range keys {
			if seen[k] {
				continue
			}
			seen[k] = true
			for _, m := range l.policy.Match(k) {
				if _, ok := l.accounts.Get(m.Prefix); !ok && !seen[m.Prefix+"/"] {
					seen[m.Prefix+"/"] = true
					missing = append(missing, m.Prefix)
				}
			}
			for p := range k.Prefixes() {
				if _, known := l.bare[p]; !known && !l.Has(p) && !seen[p+"/"] {
					seen[p+"/"] = true
					missing = append(missing, p)
				}
			}
		}
	}
	look(also)
	if l.reaching {
		for _, le := range l.allLeases() {
			look(le.keys)
		}
		for _, w := range l.allWaiters() {
			look(w.req.Keys)
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

// Has says whether the ledger has a limited prefix in memory.
func (l *Ledger) Has(prefix Key) bool {
	_, ok := l.accounts.Get(prefix)
	return ok
}

// Restore takes up the record of a prefix that the ledger does not have, as far as
// the mirror can be trusted; one that is damaged is written anew. Leases in it that have expired meanwhile are settled in
// the next turn. A record of a prefix that the policy no longer limits is kept until it is drained, and
// one of a prefix at rest is ignored: that is made when it is asked for.
func (l *Ledger) Restore(r Record) {
	if l.Has(r.Key) {
		return
	}
	bound := l.policy.boundOf(r.Key)
	limited := bound != Binding{}
	switch {
	case !limited && (r.Damaged != nil || r.Empty()):
		l.restoreBare(r.Key)
		return
	case r.Damaged != nil:
		l.restoreFull(Match{r.Key, bound}, l.now)
		return
	case limited && l.lost.covers(&r):
		a := l.restoreFull(Match{r.Key, bound}, l.lost.At)
		l.restoreActs(a, &r)
		l.block(a, l.lost.Epoch)
		return
	case r.Empty() && !l.lagged.covers(&r):
		return
	}
	a := l.open(r.Key, l.recorded(bound, &r))
	l.retain(a)
	l.use(a)
	a.written = l.generation
	for i, rule := range a.contract.all {
		st := r.Windows[r.window(rule.name())].State
		a.windows[i] = rule.restore(st)
		if len(st.Marks) > 0 {
			if a.copied == nil {
				a.copied = a.copies()
			}
			(*a.copied)[i] = slices.Clone(st.Marks)
		}
	}
	for i := range r.Batches {
		l.restoreBatch(a, &r.Batches[i], l.lagged.covers(&r))
	}
	l.restoreActs(a, &r)
	if recorded := a.contract; recorded != l.contract(bound) {
		l.rebind(a, bound)
		l.refillSlowly(a, recorded, &r)
	}
	if limited {
		l.block(a, r.Written)
		l.watchOver(a)
	}
}

// block lets an account grant nothing as long as the mirror may have lost its last turns, of
// which it knows all up to those of an epoch.
func (l *Ledger) block(a *account, since uint64) {
	if since < l.lagged.Epoch {
		a.blocked, a.trusted = max(1, l.lagged.At.Add(l.lagged.Lag)+1), since
	}
}

// restoreBare notes that there is nothing to know of a prefix that no limit names.
func (l *Ledger) restoreBare(key Key) {
	if l.complete {
		return
	}
	if l.bare == nil || len(l.bare) >= l.config.Keys {
		l.bare = map[Key]struct{}{}
	}
	l.bare[Key(strings.Clone(string(key)))] = struct{}{}
}

// restoreActs takes up what acts have left at a prefix. What a mirror may have lost of it is
// not known.
func (l *Ledger) restoreActs(a *account, r *Record) {
	if r.Pause != nil {
		l.setPause(a, r.Pause)
		a.acts.paused = false
	}
	if len(r.Charges) > 0 {
		t := l.acted(a)
		t.charges = slices.SortedFunc(slices.Values(r.Charges), func(x, y ChargeRecord) int {
			return cmp.Or(cmp.Compare(x.Until, y.Until), cmp.Compare(x.ID, y.ID))
		})
	}
}

// refillSlowly lets buckets of another limit than was recorded have what the slower of the
// two has refilled since: it is not known when the one took the place of the other.
func (l *Ledger) refillSlowly(a *account, recorded *contract, r *Record) {
	for i, rule := range a.contract.rules {
		from := slices.IndexFunc(recorded.all, rule.same)
		if from < 0 || rule.spec.Rule().Kind != algo.Bucket {
			continue
		}
		w := rule.spec.Restore(r.Windows[r.window(recorded.all[from].name())].State)
		if w.Spent(l.now) > a.windows[i].Spent(l.now) {
			a.windows[i] = w
		}
	}
}

// window is the place of the record of a rule, or -1.
func (r *Record) window(rule string) int {
	return slices.IndexFunc(r.Windows, func(w WindowRecord) bool { return w.Rule == rule })
}

// restoreBatch takes up leases that hold from the account. Those that hold from
// another prefix too are known already if that was loaded before.
func (l *Ledger) restoreBatch(a *account, r *Batch, stale bool) {
	o := owner{r.ID.Holder, r.Keys[0].Tenant()}
	h, known := l.holders.Get(o)
	if !known {
		h = l.meet(o) // whatever the bound: it has a lease
	}
	var b *batch
	for i := range r.Leases {
		lr := &r.Leases[i]
		le, known := l.leases.Get(name{h, lr.Seq})
		if !known {
			le = l.adopt(h, r, lr)
		}
		le.stale = le.stale || stale
		if le.batch != nil {
			b = le.batch
		}
		if known {
			l.level(le, a, lr)
		}
		le.add(a)
		a.hold(r.ID.Holder, le.slots.rest())
	}
	if b == nil {
		b = &batch{id: r.ID, began: r.Began, keys: r.Keys}
	}
	b.accounts = append(b.accounts, a)
	for i := range r.Leases {
		if le, _ := l.leases.Get(name{h, r.Leases[i].Seq}); le.batch == nil {
			le.batch = b
			b.leases = append(b.leases, le)
		}
	}
}

// adopt makes a lease of the ledger's of one that another ledger granted.
func (l *Ledger) adopt(h *holder, b *Batch, r *LeaseRecord) *lease {
	le := &lease{
		id: ID{b.ID.Holder, r.Seq}, keys: b.Keys, holder: h, began: b.Began, adopted: true,
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
	return le
}

// level brings a lease and a prefix of its that is loaded later than another to the same
// count. What expired while not all of its prefixes were in memory was settled in those
// that were, by this leader or by one before, and the record of the others knows nothing
// of it: it would be held there for ever, or settled where nothing is held.
func (l *Ledger) level(le *lease, a *account, r *LeaseRecord) {
	was := lease{tokens: r.Tokens, slots: r.Slots, units: r.Units}
	for _, of := range le.resources() {
		at := min(le.part(of).Expires, l.now)
		switch behind := was.rest(of) - le.rest(of); {
		case behind > 0:
			a.settle(l.now, of, behind, at)
			l.touch(a)
			l.alter(le)
		case behind < 0:
			l.settle(le, of, -behind, at)
			l.stats.expired(of, -behind)
		}
	}
}

// counted says that the lease holds from every prefix that counts its slots. One that was
// adopted may not: the record of a prefix is spoilt or lost, and that of another has the
// lease. The prefix is then full until all slots are over that were granted before, by a
// slot TTL, and knows nothing of those that live on: renewed, they would be held besides
// all that it grants afterwards. So the law: who is not counted everywhere is not renewed,
// and its slots end when the prefix is free again, or sooner.
//
// It is asked of leases that a message names, and all prefixes of these are in memory that
// have a record.
func (l *Ledger) counted(le *lease) bool {
	if !le.adopted {
		return true
	}
	for _, k := range le.keys {
		for _, m := range l.policy.Match(k) {
			counts := l.contract(m.Binding).slots
			if counts && !slices.ContainsFunc(le.accounts, func(a *account) bool { return a.key == m.Prefix }) {
				return false
			}
		}
	}
	le.adopted = false // no prefix leaves memory while the lease holds from it
	return true
}

// boundOf gives what binds exactly this prefix.
func (p *Policy) boundOf(prefix Key) Binding {
	for _, m := range p.Match(prefix) {
		if m.Prefix == prefix {
			return m.Binding
		}
	}
	return Binding{}
}
