package lease

import "ration/algo"

// overspent is what has been counted of a lease's overspend.
type overspent struct {
	tokens int64
	units  Units
}

// overspend counts what the calls of a lease used beyond what they had asked for: it
// is debt of each account that the lease held from, dated at its arrival, up to one
// limit. Counts are cumulative here too, so what is repeated or late changes nothing.
func (l *Ledger) overspend(known **overspent, accounts []*account, c *Count, arrived algo.Instant) {
	if c.Over == 0 && len(c.OverUnits) == 0 {
		return
	}
	if *known == nil {
		*known = new(overspent)
	}
	was := *known
	if n := c.Over - was.tokens; n > 0 {
		was.tokens = c.Over
		l.stats.Overspent += n
		l.debit(accounts, tokens, n, arrived)
	}
	for _, u := range c.OverUnits {
		if n := u.N - was.units.Of(u.Unit); n > 0 {
			was.units = was.units.Plus(u.Unit, n)
			l.stats.UnitsOverspent += n
			l.debit(accounts, resource(u.Unit), n, arrived)
		}
	}
}

// overspendEnded does so under an id that is no lease's: of one that is over, or of one
// that only stands for an overspend. Where nothing is known of it any more, also since
// another led then, it may have been counted: then it is counted again, which is safe.
func (l *Ledger) overspendEnded(h *holder, c *Count, arrived algo.Instant) {
	if h == nil || c.ID.Holder != h.id || c.Over == 0 && len(c.OverUnits) == 0 {
		return
	}
	accounts := l.match(nil, c.Keys)
	if _, crowded := l.tooManyKeys(accounts, h.tenant); crowded {
		return // there is no room to owe it
	}
	id := name{h, c.ID.Seq}
	if _, waits := l.waiting.Get(id); waits {
		return // it has no lease
	}
	l.remember(h, c.ID.Seq, nil)
	if e, ok := l.ended.Get(id); ok && e.refused == nil {
		l.overspend(&e.over, accounts, c, arrived)
	}
}

// debit charges every account with what was spent beside what it had granted.
func (l *Ledger) debit(accounts []*account, of resource, n int64, at algo.Instant) {
	for _, a := range accounts {
		if !a.has(of) {
			continue
		}
		a.charge(min(at, l.now), l.now, of, min(n, algo.MaxLimit))
		a.castCharge(l.now, of, min(n, algo.MaxLimit), min(at, l.now))
		l.touch(a)
		l.stir(a) // its timer was set for less
	}
}

func (a *account) charge(at, now algo.Instant, of resource, n int64) {
	a.each(of, n, func(i int) {
		at := a.contract.all[i].dated(at, now)
		w, now := a.window(i, now)
		w.Charge(now, n, at)
	})
}
