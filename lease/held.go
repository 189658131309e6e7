package lease

import (
	"fmt"
	"slices"

	"ration/algo"
)

// lease is a lease as the ledger keeps it, from its grant until nothing of it is
// held any more. It holds from each of its accounts the same amounts.
type lease struct {
	id        ID
	keys      []Key
	holder    *holder
	accounts  []*account
	places    []int // in the leases of accounts, in their order
	began     algo.Instant
	rank      int // of the class that asked; of one that was restored, the first
	tokens    Part
	slots     Part
	units     []UnitPart   // by name
	batch     *batch       // nil in an unmirrored ledger
	given     bool         // it was given up, and is stale: nobody is granted it again
	stale     bool         // of a record that may be older: what it gave back may be another's by now
	adopted   bool         // of records, and not yet seen to hold from all that count its slots
	overspent *overspent   // nil for nothing
	recalled  algo.Instant // when it was last asked to give back
	asked     *waiter      // whom it answers, in the turn of the grant
	alarm     alarm
	inline    struct { // where there is one account
		accounts [1]*account
		places   [1]int
	}
}

// rest is what the lease still holds: what nobody has accounted for.
func (p *Part) rest() int64 { return p.Granted - p.Spent - p.Returned }

func (le *lease) name() name { return name{le.holder, le.id.Seq} }

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

// add makes the lease one that holds from the account.
func (le *lease) add(a *account) {
	if le.accounts == nil {
		le.accounts, le.places = le.inline.accounts[:0], le.inline.places[:0]
	}
	le.accounts = append(le.accounts, a)
	le.places = append(le.places, len(a.leases))
	a.leases = append(a.leases, le)
}

// remove takes out the lease at a place; the last one moves there.
func (a *account) remove(le *lease, place int) {
	last := len(a.leases) - 1
	if place > last || a.leases[place] != le {
		panic(fmt.Sprintf("lease: %v is not at place %d of the %d leases of %q", le.id, place, last+1, a.key))
	}
	moved := a.leases[last]
	a.leases[place] = moved
	a.leases[last] = nil
	a.leases = a.leases[:last]
	moved.places[slices.Index(moved.accounts, a)] = place
}

// rest is what the lease holds of a resource.
func (le *lease) rest(of resource) int64 {
	if p := le.part(of); p != nil {
		return p.rest()
	}
	return 0
}

// resources are those that the lease was granted some of, or may have been.
func (le *lease) resources() []resource {
	all := []resource{tokens, slots}
	for _, u := range le.units {
		all = append(all, resource(u.Unit))
	}
	return all
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
	l.moved(le, of, n, func(a *account) {
		a.settle(l.now, of, n, at)
		l.castSpend(a, of, n, at)
	})
}

// giveBack moves n of the lease from held to free in every account.
func (l *Ledger) giveBack(le *lease, of resource, n int64) {
	le.part(of).Returned += n
	l.moved(le, of, n, func(a *account) { a.giveBack(l.now, of, n) })
}

func (l *Ledger) moved(le *lease, of resource, n int64, do func(*account)) {
	l.alter(le)
	l.carry(of, -n)
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
	le.holder.highest = max(le.holder.highest, le.id.Seq)
	le.holder.leases++
	le.holder.tenant.leases++
}

// endIfOver forgets a lease that holds nothing, but remembers its id.
func (l *Ledger) endIfOver(le *lease) {
	if !le.over() {
		return
	}
	l.leases.Delete(le.name())
	l.delist(le)
	le.holder.leases--
	le.holder.tenant.leases--
	l.timers.stop(&le.alarm)
	for i, a := range le.accounts {
		a.remove(le, le.places[i])
		l.touch(a)
	}
	l.remember(le.holder, le.id.Seq, nil)
	if le.overspent == nil {
		return
	}
	if e, ok := l.ended.Get(le.name()); ok {
		e.over = le.overspent
	}
}

// expire settles what leases still hold at their expiry: nobody has been heard
// of, so it counts as spent, at the last instant at which it can have been.
func (l *Ledger) expire(le *lease) {
	for _, of := range le.resources() {
		n := l.expirePart(le, of)
		l.stats.expired(of, n)
		if of == tokens && n > 0 && spacing(le.accounts) > 0 {
			l.stats.RunsExpired++
		}
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
