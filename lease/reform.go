package lease

import (
	"cmp"
	"slices"

	"ration/algo"
)

// PolicyRecord is a policy as a mirror keeps it.
type PolicyRecord struct {
	// Revision counts the policies that were in force, from 1; 0 is for none.
	Revision uint64
	// Text is what ParsePolicy reads.
	Text string
	// Available says that its mirror is: then a leader goes on without.
	Available bool
}

// Change puts another policy into force, in the next turn, and gives its revision, at
// least the one given. The same policy again changes nothing. Unloaded names what it
// needs, and all records that the mirror has are to be restored before.
//
// Where key, unit, kind and period are the same, so is the rule: its windows go on under
// the new limit. A rule that goes leaves its windows behind, which bind nobody, until they
// are drained; one that comes begins with what is held, and with what other windows of
// its unit on the same prefix remember as spent. Who waits is looked at anew.
func (l *Ledger) Change(p *Policy, least uint64) (revision uint64, changed bool) {
	if p.String() == l.policy.String() {
		return l.revision, false
	}
	l.policy, l.revision = p, max(l.revision+1, least)
	l.unwritten, l.reaching = true, true
	rules := l.contracts.rules
	l.contracts = noContracts()
	l.contracts.rules = rules
	l.dial.started, l.dial.clocks = false, nil
	for _, a := range l.order {
		l.rebind(a, p.boundOf(a.key))
	}
	l.contracts.forget()
	l.stats.PolicyChanges++
	return l.revision, true
}

// forget lets go of the rules that no contract has.
func (c *contracts) forget() {
	c.rules, c.heirs = map[ruleKey]*contractRule{}, map[legacy]heir{}
	for _, bound := range c.bound {
		for _, r := range bound.all {
			c.intern(r)
		}
	}
}

// Policy is the one in force, and its revision.
func (l *Ledger) Policy() (p *Policy, revision uint64) { return l.policy, l.revision }

// recordPolicy adds the policy to the turn, if the mirror is to have it.
func (l *Ledger) recordPolicy() {
	if l.unwritten && !l.config.Unmirrored {
		l.turn.Policy = &PolicyRecord{Revision: l.revision, Text: l.policy.String(), Available: l.policy.Mirror == AvailableMirror}
	}
	l.unwritten = false
}

// rebind brings an account under what binds it now.
func (l *Ledger) rebind(a *account, b Binding) {
	was, windows := a.contract, a.windows
	h := l.inherit(was, b)
	if h.contract == was {
		return
	}
	if a.contract = h.contract; !slices.Equal(h.contract.all, was.all) {
		l.succeed(a, was, windows, h)
	}
	if a.busy == &resting {
		return
	}
	if !slices.Equal(h.contract.rules, was.rules) {
		if a.line.keepers = nil; a.line.len() == 0 {
			a.line.units = nil // they are other units
		}
	}
	a.slots = nil
	for _, le := range a.leases {
		a.hold(le.id.Holder, le.slots.rest())
	}
}

// succeed makes the account's windows of those that it had.
func (l *Ledger) succeed(a *account, was *contract, windows []algo.Window, h heir) {
	a.contract, a.cast = was, nil
	for i := range windows {
		a.window(i, l.now) // up to now, under its own guard
	}
	a.contract, a.windows = h.contract, make([]algo.Window, len(h.from))
	moved, knows := make([]bool, len(windows)), false
	for i, r := range h.contract.all {
		switch from := h.from[i]; {
		case from < 0:
			a.windows[i] = l.added(a, r, was, windows)
			knows = knows || a.windows[i].Spent(a.windows[i].Seen()) > 0
		case moved[from]:
			a.windows[i] = r.current().Resume(windows[from].State(windows[from].Seen()))
		default:
			moved[from] = true
			w := &a.windows[i]
			*w = windows[from]
			w.Adopt(w.Seen(), r.current())
			knows = knows || w.Spent(w.Seen()) > 0 && r.spec.Rule().Kind == algo.Bucket
		}
	}
	if a.copied = nil; !a.kept {
		return
	}
	// Its record is written under its new names when it changes, but where a window has
	// come that knows of spends, a bucket refills at another rate, or one remembers for
	// longer than the record would be kept: then also if it does not, as soon as may be.
	a.renamed = true
	if knows || l.lasts(h.contract) > l.lasts(was) {
		l.rewriting, l.toRewrite = true, len(l.order)
	}
}

// added gives the window of a rule that is new to an account: with what is held, and with
// what of the account's windows remembers most. Windows that remember for longer know all
// that was spent within its period; others know some.
func (l *Ledger) added(a *account, r *contractRule, was *contract, windows []algo.Window) (most algo.Window) {
	held := int64(0)
	for _, le := range a.leases {
		held += le.rest(r.of)
	}
	at, spec := l.now, r.current()
	if r.dial != nil {
		at = r.dial.calendar(at)
	}
	full := func(w *algo.Window) (int64, int64) {
		d, _ := w.Wait(at, max(0, w.Limit()), nil)
		return w.Spent(at), int64(d)
	}
	most = spec.Added(at, held, nil)
	for i, o := range was.all {
		if o.of != r.of {
			continue
		}
		spends := windows[i].Spends(windows[i].Seen())
		for j := range spends {
			if o.dial != nil { // of calendar time, and no spend has a date of its own
				spends[j].At = l.now
			}
			spends[j].At = r.dated(min(spends[j].At, l.now), l.now)
		}
		w := spec.Added(at, held, spends)
		spent, back := full(&w)
		if s, b := full(&most); cmp.Or(cmp.Compare(spent, s), cmp.Compare(back, b)) > 0 {
			most = w
		}
	}
	return most
}

// lapse lets an account go without the windows that it need not keep any longer.
func (l *Ledger) lapse(a *account) {
	if !a.contract.lapsed(l.now) {
		return
	}
	l.rebind(a, l.policy.boundOf(a.key))
	l.touch(a)
}

// reach brings leases under a policy that has changed, before anybody reports.
func (l *Ledger) reach() {
	if !l.reaching {
		return
	}
	for _, le := range l.allLeases() {
		for _, a := range l.match(nil, le.keys) {
			if a.contract.named && !slices.Contains(le.accounts, a) {
				l.holdFrom(le, a)
			}
		}
	}
	l.over = nil
	for _, a := range l.order {
		l.watchOver(a)
	}
}

// holdFrom lets a lease hold from an account that limits one of its keys since now.
func (l *Ledger) holdFrom(le *lease, a *account) {
	l.alter(le)
	le.add(a)
	if b := le.batch; b != nil && !slices.Contains(b.accounts, a) {
		b.accounts = append(slices.Clone(b.accounts), a)
	}
	for i, r := range a.contract.all {
		w, now := a.window(i, l.now)
		w.Hold(now, le.rest(r.of))
	}
	a.hold(le.id.Holder, le.slots.rest())
	for _, a := range le.accounts {
		l.touch(a)
	}
}

// reconsider brings waiters under a policy that has changed, once it is known who is gone:
// what is granted in a turn is there when it ends. It lets everybody who stands in a line
// leave it, and be admitted anew in the order of the new policy's classes: who can never be
// served any more, or not in time, or finds no place, is refused. Shares and what lines have
// kept for lower classes begin anew. Who waits for the end of a pause does so still.
func (l *Ledger) reconsider() {
	if !l.reaching {
		return
	}
	l.reaching = false
	var all []*waiter
	for _, w := range l.allWaiters() {
		if w.parked == nil {
			l.leave(w)
			all = append(all, w)
		}
	}
	for _, a := range l.order {
		if a.busy != &resting {
			a.line.classes, a.line.owes, a.line.units = nil, false, nil // nobody stands in it
		}
	}
	for _, w := range all {
		w.claim, w.lifted, w.paid, w.payer = claim{}, 0, 0, nil
		w.accounts = l.match(nil, w.req.Keys)
		l.classify(w) // a class that no line has any more is refused when it is admitted
	}
	slices.SortStableFunc(all, func(x, y *waiter) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.start, y.start))
	})
	for _, w := range all {
		if l.admit(w); !w.served && !w.stands && w.parked == nil {
			l.stats.WaitersRefused++
		}
	}
}

// allLeases and allWaiters are in an order, so that runs repeat.
func (l *Ledger) allLeases() []*lease {
	return slices.SortedFunc(l.leases.All(), func(x, y *lease) int {
		return cmp.Or(cmp.Compare(x.began, y.began), cmp.Compare(x.id.Seq, y.id.Seq), cmp.Compare(x.id.Holder.Name, y.id.Holder.Name),
			cmp.Compare(x.id.Holder.Incarnation, y.id.Holder.Incarnation), cmp.Compare(x.holder.tenant.name, y.holder.tenant.name))
	})
}

func (l *Ledger) allWaiters() []*waiter {
	return slices.SortedFunc(l.waiting.All(), func(x, y *waiter) int { return cmp.Compare(x.order, y.order) })
}
