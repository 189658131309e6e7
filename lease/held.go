package lease

import "ration/algo"

// lease is a lease as the ledger keeps it, from its grant until nothing of it is
// held any more. It holds from each of its accounts the same amounts.
type lease struct {
	id       ID
	keys     []Key
	holder   *holder
	accounts []*account
	began    algo.Instant
	tokens   Part
	slots    Part
	recalled algo.Instant // when it was last asked to give back
	asked    *waiter      // whom it answers, in the turn of the grant
	alarm    alarm
}

// rest is what the lease still holds: what nobody has accounted for.
func (p *Part) rest() int64 { return p.Granted - p.Spent - p.Returned }

func (le *lease) name() name { return name{le.id, le.holder.tenant.name} }

func (le *lease) part(of resource) *Part {
	if of == slots {
		return &le.slots
	}
	return &le.tokens
}

func (le *lease) over() bool { return le.tokens.rest() == 0 && le.slots.rest() == 0 }

// expires is the next instant at which something of the lease expires.
func (le *lease) expires() (at algo.Instant, ok bool) {
	for of := range resource(resources) {
		if p := le.part(of); p.rest() > 0 && (!ok || p.Expires.Before(at)) {
			at, ok = p.Expires, true
		}
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
		if of == slots {
			a.hold(le.id.Holder, -n)
		}
		l.touch(a)
		l.stir(a)
	}
}

// begin takes up a lease.
func (l *Ledger) begin(le *lease) {
	l.leases.Put(le)
	le.holder.leases++
	le.holder.tenant.leases++
}

// endIfOver forgets a lease that holds nothing, but remembers its id.
func (l *Ledger) endIfOver(le *lease) {
	if !le.over() {
		return
	}
	l.leases.Delete(le.name())
	le.holder.leases--
	le.holder.tenant.leases--
	l.timers.stop(&le.alarm)
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
	l.remember(le.holder, le.id.Seq, nil)
}

// expire settles what leases still hold at their expiry: nobody has been heard
// of, so it counts as spent, at the last instant at which it can have been.
func (l *Ledger) expire(le *lease) {
	for of := range resource(resources) {
		p := le.part(of)
		n := p.rest()
		if n == 0 || l.now.Before(p.Expires) {
			continue
		}
		l.settle(le, of, n, p.Expires)
		if of == tokens {
			l.stats.Expired += n
		} else {
			l.stats.SlotsExpired += n
		}
	}
	l.endIfOver(le)
	if at, ok := le.expires(); ok {
		l.timers.set(timer{at: at, lease: le})
	}
}
