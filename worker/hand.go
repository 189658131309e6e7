package worker

import (
	"slices"
	"time"

	"ration/lease"
)

// Serving, giving back and resolving: how tokens and slots move between the calls,
// the stock and the reports.

func (p *Pool) enter(c *Call) {
	c.state = Waiting
	p.line.insert(c)
	if c.until == Forever {
		p.patient++
	} else {
		p.longest = max(p.longest, c.until)
		p.soonest = min(p.soonest, c.until)
		p.wakeBy(c.until)
	}
}

func (p *Pool) leave(c *Call) {
	p.line.remove(c)
	if c.until == Forever {
		p.patient--
	}
	if p.line.count == 0 {
		p.longest, p.soonest = 0, Forever
	}
}

func (p *Pool) tell(c *Call) {
	if !c.silent {
		p.served = append(p.served, c)
	}
}

func (p *Pool) fail(c *Call, err error) {
	p.leave(c)
	c.state, c.err = Failed, err
	p.tell(c)
}

// deal serves the line from what is at hand, first come first served.
func (p *Pool) deal(now time.Duration) {
	for c := p.line.head; c != nil; c = p.line.head {
		if p.needsSlot() && !c.slot {
			p.fail(c, &RefusedError{lease.Refusal{Reason: lease.ErrNeedsSlot, Key: p.keys[0]}})
			continue
		}
		if p.early(now) {
			return
		}
		var slotOf *holding
		if p.needsSlot() {
			if slotOf = p.idleSlot(now); slotOf == nil {
				return
			}
		}
		if !p.take(now, c) {
			return
		}
		if slotOf != nil {
			slotOf.idle--
			slotOf.busy++
			c.slotOf = slotOf
		}
		p.leave(c)
		c.state = Taken
		p.taken.insert(c)
		p.tell(c)
	}
}

// undo takes all from a call that was Taken, without telling the lessor.
func (p *Pool) undo(now time.Duration, c *Call) {
	p.taken.remove(c)
	for _, part := range c.parts {
		part.from.open -= part.n
		p.open -= part.n
		p.demand.taken -= part.n
		p.putBack(now, part.from, part.n)
	}
	c.parts = c.parts[:0]
	for _, u := range c.Units() {
		p.demand.tookUnit(u.Unit, -u.N)
	}
	p.untakeUnits(now, c)
	if h := c.slotOf; h != nil {
		h.busy--
		if !h.slotsGone {
			h.idle++
			h.idleSince = now
			p.wakeBy(now + p.cfg.SlotLinger)
		}
		c.slotOf = nil
	}
}

// stop takes a call out of those that are taken or run.
func (p *Pool) stop(now time.Duration, c *Call) {
	if c.state == Taken {
		p.taken.remove(c)
	}
	if c.state == Running && c.slotOf != nil {
		if i := slices.Index(p.running, c); i >= 0 {
			p.running = slices.Delete(p.running, i, i+1)
		}
	}
	c.state = Done
}

// resolve counts used tokens and units of the call as spent, at its date.
func (p *Pool) resolve(now time.Duration, c *Call, used int64, units lease.Units) {
	if c.resolved {
		return
	}
	for i := range c.parts {
		n := min(used, c.parts[i].n)
		if n == 0 {
			continue
		}
		used -= n
		h := c.parts[i].from
		c.parts[i].n -= n
		h.open -= n
		p.open -= n
		p.spent(h, n, c.sent)
	}
	p.resolveUnits(c, units)
	c.resolved = !c.open()
}

// open says that something the call took is neither spent nor given back.
func (c *Call) open() bool {
	for _, part := range c.parts {
		if part.n > 0 {
			return true
		}
	}
	for _, part := range c.unitParts() {
		if part.n > 0 {
			return true
		}
	}
	return false
}

// spent notes a spend and when it has to be told of.
func (p *Pool) spent(h *holding, n int64, at time.Duration) {
	h.point(n, at, p.points(h))
	p.books.Spent += n
	p.tellSpend(h, at)
}

func (p *Pool) tellSpend(h *holding, at time.Duration) {
	switch {
	case h.gone:
	case p.ran(h), h.run && len(h.points)%(p.cfg.MaxPoints/2) == 0:
		p.dueBy(p.now)
	default:
		p.dueBy(min(at+p.reportAfter(), h.deadline-p.reportAfter()/10))
	}
}

// giveBack gives what a call has not used to the next local caller; what nobody
// takes goes back to the lessor at once.
func (p *Pool) giveBack(now time.Duration, c *Call) {
	if c.resolved {
		return
	}
	c.resolved = true
	parts, unitParts := slices.Clone(c.parts), c.unitParts()
	for _, part := range parts {
		part.from.open -= part.n
		p.open -= part.n
		p.putBack(now, part.from, part.n)
	}
	c.parts = c.parts[:0]
	p.untakeUnits(now, c)
	p.deal(now)
	if p.line.count > 0 && (p.spaced() || !p.tight(now)) {
		return // the head collects
	}
	for _, part := range parts {
		if !part.from.gone {
			p.giveReturn(now, part.from, part.from.take(part.n))
		}
	}
	for _, part := range unitParts {
		if !part.from.gone {
			p.returnUnit(now, part.from, part.at, part.n)
		}
	}
}
