package lease

import "ration/algo"

// lease is a lease as the ledger keeps it, from its grant until nothing of it is
// held any more. It holds from each of its accounts the same amounts.
type lease struct {
	id       ID
	keys     []Key
	accounts []*account
	began    algo.Instant
	tokens   Part
	slots    Part
	units    []UnitPart   // by name
	recalled algo.Instant // when it was last asked to give back
}

// rest is what the lease still holds: what nobody has accounted for.
func (p *Part) rest() int64 { return p.Granted - p.Spent - p.Returned }

func (le *lease) name() name { return named(le.id, le.keys) }

// part is what the lease has of a resource, or nil if that is a unit it was never
// asked for.
func (le *lease) part(of resource) *Part {
	switch of {
	case tokens:
		return &le.tokens
	case slots:
		return &le.slots
	}
	for i := range le.units {
		if le.units[i].Unit == string(of) {
			return &le.units[i].Part
		}
	}
	return nil
}

// rest is what the lease holds of a resource.
func (le *lease) rest(of resource) int64 {
	if p := le.part(of); p != nil {
		return p.rest()
	}
	return 0
}

func (le *lease) over() bool {
	for i := range le.units {
		if le.units[i].rest() > 0 {
			return false
		}
	}
	return le.tokens.rest() == 0 && le.slots.rest() == 0
}

// expires is the next instant at which something of the lease expires.
func (le *lease) expires() (at algo.Instant, ok bool) {
	sooner := func(p *Part) {
		if p.rest() > 0 && (!ok || p.Expires.Before(at)) {
			at, ok = p.Expires, true
		}
	}
	sooner(&le.tokens)
	sooner(&le.slots)
	for i := range le.units {
		sooner(&le.units[i].Part)
	}
	return at, ok
}

// settle moves n of the lease from held to spent in every account, dated at.
func (l *Ledger) settle(le *lease, of resource, n int64, at algo.Instant) {
	le.part(of).Spent += n
	l.moved(le, of, n, func(a *account) { a.settle(l.now, of, n, at) })
}

// giveBack moves n of the lease from held to free in every account.
func (l *Ledger) giveBack(le *lease, of resource, n int64) {
	le.part(of).Returned += n
	l.moved(le, of, n, func(a *account) { a.giveBack(l.now, of, n) })
}

func (l *Ledger) moved(le *lease, of resource, n int64, do func(*account)) {
	for _, a := range le.accounts {
		do(a)
		if of == slots && a.slots != nil {
			if a.slots[le.id.Holder] -= n; a.slots[le.id.Holder] == 0 {
				delete(a.slots, le.id.Holder)
			}
		}
		l.touch(a)
		l.stir(a)
	}
}

// endIfOver forgets a lease that holds nothing, but remembers its id.
func (l *Ledger) endIfOver(le *lease) {
	if !le.over() {
		return
	}
	delete(l.leases, le.name())
	for _, a := range le.accounts {
		for i, other := range a.leases {
			if other == le {
				last := len(a.leases) - 1
				a.leases[i] = a.leases[last]
				a.leases[last] = nil
				a.leases = a.leases[:last]
				break
			}
		}
		l.touch(a)
	}
	l.remember(le.name(), Answer{ID: le.id, Outcome: Ended})
}

// expire settles what leases still hold at their expiry: nobody has been heard
// of, so it counts as spent, at the last instant at which it can have been.
func (l *Ledger) expire(le *lease) {
	if l.leases[le.name()] != le {
		return // it ended before
	}
	l.stats.Expired += l.expirePart(le, tokens)
	l.stats.SlotsExpired += l.expirePart(le, slots)
	for _, u := range le.units {
		l.stats.UnitsExpired += l.expirePart(le, resource(u.Unit))
	}
	l.endIfOver(le)
	if at, ok := le.expires(); ok {
		l.timers.set(timer{at: at, lease: le})
	}
}

func (l *Ledger) expirePart(le *lease, of resource) int64 {
	p := le.part(of)
	n := p.rest()
	if n == 0 || l.now.Before(p.Expires) {
		return 0
	}
	l.settle(le, of, n, p.Expires)
	return n
}
