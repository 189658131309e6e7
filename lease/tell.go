package lease

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"ration/algo"
)

// report takes up one copy of a report. What it does not name it does not
// touch.
func (l *Ledger) report(m Message) {
	r := m.Report
	var h *holder // nil where nothing is known of it, and nothing can be
	if tenant, ok := r.tenant(); ok {
		if h = l.holder(owner{r.Holder, tenant}); h != nil {
			h.hear(m.Arrived, r.Sent, l.config.PPM)
		}
	}
	reply := Reply{}
	for _, c := range r.Counts {
		le, ok := l.leases.Get(name{h, c.ID.Seq}) // of a holder of whom nothing is known there is none
		if !ok || c.ID.Holder != r.Holder || !slices.Equal(le.keys, c.Keys) {
			l.stats.ReportedEnded++
			if !ok {
				l.overspendEnded(h, &c, m.Arrived)
			}
			reply.Ended = append(reply.Ended, c.ID)
			continue
		}
		l.count(le, c, m.Arrived)
		l.overspend(&le.overspent, le.accounts, &c, m.Arrived)
		if r.Heartbeat && l.counted(le) {
			l.renew(le, m.Arrived, &reply)
			l.remind(le)
		}
		if le.over() {
			l.endIfOver(le)
		}
	}
	for _, g := range r.GivenUp {
		switch {
		case g.ID.Holder != r.Holder:
			// another's, of which it has no say
		case h == nil:
			continue // it could not be remembered, so it is to be named again
		default:
			l.giveUp(name{h, g.ID.Seq})
		}
		reply.Acknowledged = append(reply.Acknowledged, g.ID)
	}
	if h != nil && r.Goodbye {
		l.farewell(h)
	}
	l.turn.Replies = append(l.turn.Replies, Replied{m.Ticket, reply})
}

// tenant is that of all keys of the report, which names none if it is empty.
func (r *Report) tenant() (string, bool) {
	switch {
	case len(r.Counts) > 0:
		return r.Counts[0].Keys[0].Tenant(), true
	case len(r.GivenUp) > 0:
		return r.GivenUp[0].Keys[0].Tenant(), true
	}
	return "", false
}

// count applies the cumulative counts of a lease: the larger number is kept, and
// spent + returned never pass what was granted. What is late, repeated or out
// of order therefore changes nothing.
//
// What comes back of a stale lease may have come back before, and be another's since: it
// is left to expire, and only its spends count.
func (l *Ledger) count(le *lease, c Count, arrived algo.Instant) {
	p := &le.tokens
	if !arrived.Before(p.Expires) {
		l.stats.ReportedLate++ // what is left counts as spent at the expiry
	} else {
		for _, point := range c.Points {
			l.point(le, point, arrived)
		}
		if n := l.clamped(p, c.Returned-p.Returned); n > 0 && !le.stale {
			l.giveBack(le, tokens, n)
			l.stats.Returned += n
		}
		for _, u := range c.ReturnedUnits {
			l.returnUnit(le, u)
		}
	}
	s := &le.slots
	if !arrived.Before(s.Expires) || le.stale {
		return
	}
	if n := l.clamped(s, c.Cut-s.Spent); n > 0 {
		l.settle(le, slots, n, arrived)
		l.stats.SlotsCut += n
	}
	if n := l.clamped(s, c.Freed-s.Returned); n > 0 {
		l.giveBack(le, slots, n)
		l.stats.SlotsFreed += n
	}
}

// point settles what a point adds to the spent tokens and units of a lease, all at
// its date.
func (l *Ledger) point(le *lease, p Point, arrived algo.Instant) {
	n := le.tokens.adds(p.Count)
	units := false
	for _, u := range p.Units {
		part := le.part(resource(u.Unit))
		units = units || part != nil && part.adds(u.N) > 0
	}
	if n == 0 && !units {
		l.stats.PointsSkipped++
		return
	}
	at := l.dated(le, p.Age, arrived)
	if n > 0 {
		l.settle(le, tokens, n, at)
		l.stats.Spent += n
	}
	for _, u := range p.Units {
		of := resource(u.Unit)
		if part := le.part(of); part != nil && part.adds(u.N) > 0 {
			n := part.adds(u.N)
			l.settle(le, of, n, at)
			l.stats.UnitsSpent += n
		}
	}
}

// adds is how many more than it knows of have been spent, if count have been.
func (p *Part) adds(count int64) int64 { return max(0, min(count, p.Granted-p.Returned)-p.Spent) }

func (l *Ledger) returnUnit(le *lease, returned UnitAmount) {
	of := resource(returned.Unit)
	p := le.part(of)
	if p == nil {
		return
	}
	if n := l.clamped(p, returned.N-p.Returned); n > 0 && !le.stale {
		l.giveBack(le, of, n)
		l.stats.UnitsReturned += n
	}
}

// clamped cuts n to what the lease still holds.
func (l *Ledger) clamped(p *Part, n int64) int64 {
	if rest := p.rest(); n > rest {
		l.stats.Clamped++
		return rest
	}
	return n
}

// dated is the instant of a point: its age before the arrival, which is never
// earlier than the real spend, and never before the grant nor after the arrival.
func (l *Ledger) dated(le *lease, age time.Duration, arrived algo.Instant) algo.Instant {
	switch at := arrived.Add(-age); {
	case at.Before(le.began):
		l.stats.PointsBeforeGrant++
		return min(le.began, l.now) // after a takeover that may be behind
	case arrived.Before(at):
		return arrived
	default:
		return at
	}
}

// renew moves the expiry of the lease's slots. An expired lease is never
// renewed.
func (l *Ledger) renew(le *lease, arrived algo.Instant, reply *Reply) {
	s := &le.slots
	if s.rest() == 0 || !arrived.Before(s.Expires) {
		return
	}
	s.Expires = max(s.Expires, l.now.Add(l.config.SlotTTL))
	l.alter(le)
	for _, a := range le.accounts {
		l.touch(a)
	}
	l.stats.Renewed++
	reply.Renewed = append(reply.Renewed, Renewal{ID: le.id, SlotTTL: s.Expires.Sub(arrived)})
}

// farewell takes the requests of a holder that is gone out of the line. Leases that
// it did not account for are left to expire.
func (l *Ledger) farewell(h *holder) {
	gone := slices.SortedFunc(maps.Keys(h.waiting), func(x, y *waiter) int { return cmp.Compare(x.order, y.order) })
	for _, w := range gone {
		l.giveUp(w.name())
	}
}

// giveUp frees a grant that was never taken, takes a waiting request out of the
// line, and remembers the id if it is still to come.
func (l *Ledger) giveUp(id name) {
	le, _ := l.leases.Get(id)
	w, _ := l.waiting.Get(id)
	switch {
	case le != nil && le.stale:
		le.given = true // and left to expire
	case le != nil:
		l.stats.GivenUpGranted++
		l.stats.Returned += l.giveBackRest(le, tokens)
		l.stats.SlotsFreed += l.giveBackRest(le, slots)
		for _, u := range le.units {
			l.stats.UnitsReturned += l.giveBackRest(le, resource(u.Unit))
		}
		l.endIfOver(le)
	case w != nil:
		l.stats.GivenUpWaiting++
		l.leave(w)
		l.turn.Dropped = append(l.turn.Dropped, w.ticket)
		l.remember(id.holder, id.seq, nil)
	default:
		if _, known := l.ended.Get(id); !known {
			l.stats.GivenUpEarly++
			l.remember(id.holder, id.seq, nil)
		}
	}
}

func (l *Ledger) giveBackRest(le *lease, of resource) int64 {
	n := le.rest(of)
	l.giveBack(le, of, n)
	return n
}
