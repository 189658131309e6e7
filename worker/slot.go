package worker

import (
	"slices"
	"time"
)

// Slots: one serves one call after another, and goes back as free or as cut.

// idleSlot finds a slot that may be used the longest.
func (p *Pool) idleSlot(now time.Duration) *holding {
	var best *holding
	for _, h := range p.leases {
		if h.idle > 0 && !h.slotsGone && now < h.slotDeadline && (best == nil || h.slotDeadline > best.slotDeadline) {
			best = h
		}
	}
	return best
}

// slots is how many could be taken now, and how many serve.
func (p *Pool) slots(now time.Duration) (idle, busy int64) {
	for _, h := range p.leases {
		if !h.slotsGone && now < h.slotDeadline {
			idle += h.idle
			busy += h.busy
		}
	}
	return idle, busy
}

// slotBack is where a slot goes when its call ends.
func (p *Pool) slotBack(now time.Duration, c *Call, clean bool) {
	h := c.slotOf
	if h == nil {
		return
	}
	c.slotOf = nil
	h.busy--
	switch {
	case h.slotsGone || now >= h.slotDeadline:
		return
	case !clean:
		h.cut++
		h.unsaid = true
		p.owed = max(0, p.owed-1)
		p.dueBy(now + p.cfg.Coalesce)
		return
	}
	h.idle++
	h.idleSince = now
	if p.owed > 0 {
		p.owed--
		p.freeIdle(now, h, 1)
		return
	}
	before := h.idle
	p.deal(now)
	switch {
	case h.idle < before:
		p.books.Handed++
	case p.line.count > 0:
		// the next caller lacks tokens only
	case p.scarce(now) || p.closed:
		p.freeIdle(now, h, 1)
	default:
		p.wakeBy(now + p.cfg.SlotLinger)
	}
}

// freeIdle gives n idle slots of a lease back.
func (p *Pool) freeIdle(now time.Duration, h *holding, n int64) {
	n = min(n, h.idle)
	if n <= 0 || h.slotsGone {
		return
	}
	h.idle -= n
	h.freed += n
	h.unsaid = true
	p.dueBy(now + p.cfg.Coalesce)
}

// loseSlots cuts the calls that hold slots of a lease.
func (p *Pool) loseSlots(now time.Duration, h *holding) {
	if h.slotsGone || h.granted.Slots == 0 {
		return
	}
	h.slotsGone, h.idle = true, 0
	for _, c := range slices.Clone(p.running) {
		if c.slotOf != h {
			continue
		}
		p.stop(now, c)
		p.resolve(now, c, c.cost, c.Units())
		c.slotOf = nil
		h.busy--
		c.state, c.err = Lost, ErrLeaseLost
		p.books.LostCalls++
		p.tell(c)
	}
}

// needsSlot says whether a call has to have a slot to run.
func (p *Pool) needsSlot() bool { return p.terms.Concurrent }
