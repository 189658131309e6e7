package worker

import (
	"slices"
	"time"
)

// Close fails the callers in line, takes all tokens and slots back, and ends the
// calls that run: they count as spent, and their slots as cut. Report then gives
// the final counts, for a goodbye.
func (p *Pool) Close(now time.Duration) {
	p.at(now)
	if p.closed {
		return
	}
	p.closed = true
	for c := p.line.head; c != nil; c = p.line.head {
		p.fail(c, ErrClosed)
	}
	for c := p.taken.head; c != nil; c = p.taken.head {
		p.stop(now, c)
		p.giveBack(now, c)
		p.slotBack(now, c, true)
		c.state, c.err = Failed, ErrClosed
		p.tell(c)
	}
	for _, c := range slices.Clone(p.running) {
		p.stop(now, c)
		p.resolve(now, c, c.cost, c.Units())
		p.slotBack(now, c, false)
		c.state, c.err = Lost, ErrClosed
		p.tell(c)
	}
	for _, c := range p.settling {
		if !c.resolved {
			p.resolve(now, c, c.cost, c.Units())
		}
	}
	p.settling = nil
	for _, r := range slices.Clone(p.requests) {
		p.giveUp(now, r)
	}
	for _, h := range p.leases {
		p.returnLeft(now, h)
		p.freeIdle(now, h, h.idle)
	}
	p.Tick(now)
}

// Restart drops all leases, requests and ids given up, for a holder that takes a
// new incarnation. Calls that hold slots are lost; callers in line ask anew.
func (p *Pool) Restart(now time.Duration) {
	p.at(now)
	p.books.Incarnated++
	for _, h := range slices.Clone(p.leases) {
		p.lose(now, h)
	}
	for _, r := range p.requests {
		r.unbind()
	}
	p.requests, p.refill, p.givenUp = nil, nil, nil
	p.overspendsRestart()
	p.owed, p.due = 0, Forever
	p.Tick(now)
}

// Idle says that the pool holds nothing, wants nothing and has nothing to tell.
func (p *Pool) Idle() bool {
	return len(p.leases) == 0 && p.line.count == 0 && len(p.requests) == 0 &&
		len(p.givenUp) == 0 && len(p.overspends) == 0 && p.open == 0 && p.unitsOpen == 0 && len(p.served) == 0
}

// Holds says whether there is anything for a heartbeat to name.
func (p *Pool) Holds() bool { return len(p.leases) > 0 || len(p.givenUp) > 0 || len(p.overspends) > 0 }
