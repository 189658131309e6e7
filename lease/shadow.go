package lease

import "ration/algo"

// A limit in shadow is tried out: its rules count all that is spent, as those that bind do,
// so that they know it when they bind one day, and refuse nothing. Beside each of their
// windows stands another one, which is what the rule would have if it bound: that takes what
// it would have let pass of each spend, and the rest counts as refused. It is an estimate,
// and no mirror has it: it begins with nothing under the next leader.

// cast is what a rule in shadow would have done.
type cast struct {
	window  algo.Window
	refused int64
}

// list gives the rules that the policy has, those that bind and those in shadow.
func (c *contract) list() []*contractRule { return c.all[:c.listed] }

// addShadow adds rules in shadow, behind all that bind.
func (c *contract) addShadow(rules []algo.Rule, ppm int64, d *dial) {
	bind, concurrent := c.rules, c.slots
	c.rules = nil
	c.add(rules, "", ppm, d)
	for _, r := range c.rules {
		r.shadow = r.spec
		r.spec = r.compile(r.shadow.Rule(), r.allowance)
	}
	c.all = append(bind[:len(bind):len(bind)], c.rules...)
	c.rules, c.slots, c.listed = bind, concurrent, len(c.all)
}

// eachShadow calls do for each rule in shadow that counts the resource, with what it has
// cast, the instant as the rule takes it, and how far its window has come by then.
func (a *account) eachShadow(of resource, at, now algo.Instant, do func(s *cast, now, at algo.Instant)) {
	c := a.contract
	for i, r := range c.all[len(c.rules):c.listed] {
		if r.of != of {
			continue
		}
		at := r.dated(at, now)
		if a.cast == nil {
			a.cast = make([]cast, c.listed-len(c.rules))
		}
		s := &a.cast[i]
		if seen := s.window.Seen(); s.window == (algo.Window{}) || r.dial != nil && seen.Sub(at) > max(rewound, 2*r.dial.full) {
			s.window = r.shadow.Window(at)
		}
		do(s, max(at, s.window.Seen()), at)
	}
}

// castSpend notes what rules in shadow would have refused of n that were spent at that
// instant. Windows come to the dates of spends, and no further: what is told late is judged
// by what was spent until then.
func (l *Ledger) castSpend(a *account, of resource, n int64, at algo.Instant) {
	a.eachShadow(of, at, l.now, func(s *cast, now, at algo.Instant) {
		pass := min(n, s.window.Free(now))
		s.window.Take(now, pass)
		s.window.Settle(now, pass, at)
		s.refused += n - pass
		l.stats.WouldRefuse += n - pass
	})
}

// castCharge counts what was used elsewhere, which nobody could have refused.
func (a *account) castCharge(now algo.Instant, of resource, n int64, at algo.Instant) {
	a.eachShadow(of, at, now, func(s *cast, now, at algo.Instant) { s.window.Charge(now, n, at) })
}

// castForget forgets what was spent.
func (a *account) castForget() {
	for i := range a.cast {
		if w := &a.cast[i].window; *w != (algo.Window{}) {
			w.Forget(w.Seen())
		}
	}
}

// shadowStatus is that of the window of a rule in shadow: of all that was held and spent,
// under the limit that it would have.
func (a *account) shadowStatus(i int, now algo.Instant) WindowStatus {
	r := a.contract.all[i]
	w, at := a.window(i, now)
	bound := r.shadow.Resume(w.State(at))
	full, _ := bound.Wait(at, r.shadow.Max(), r.due(now, a.due(r.of)))
	s := WindowStatus{Rule: r.text, Shadow: true, Limit: bound.Limit(), Free: bound.Free(at), Held: bound.Held(), Spent: bound.Spent(at), Full: full}
	if k := i - len(a.contract.rules); a.cast != nil {
		s.WouldRefuse = a.cast[k].refused
	}
	return s
}
