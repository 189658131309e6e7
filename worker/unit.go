package worker

import (
	"slices"
	"time"

	"ration/algo"
	"ration/lease"
)

// Units besides calls: how they lie in leases and move to calls. Only the pool's
// owner touches them, so what is seen at hand can be taken.

// unitStock is what a lease has of one unit. Each of it is in one place.
type unitStock struct {
	unit                                 string
	granted, left, open, spent, returned int64
	ackSpent, ackReturned                int64
}

// more is what a call costs besides tokens, and what it has of that.
type more struct {
	cost  lease.Units
	parts []unitPart
}

// newMore gives nil for a call of tokens alone.
func newMore(cost lease.Units) *more {
	if len(cost) == 0 {
		return nil
	}
	return &more{cost: cost}
}

func (c *Call) unitParts() []unitPart {
	if c.more == nil {
		return nil
	}
	return c.more.parts
}

// unitPart is what a call has of one unit of a lease.
type unitPart struct {
	from *holding
	at   int // its place in from.units
	n    int64
}

func (u *unitPart) stock() *unitStock { return &u.from.units[u.at] }

// unit finds what the lease has of a unit, -1 if it has none.
func (h *holding) unit(name string) int {
	for i := range h.units {
		if h.units[i].unit == name {
			return i
		}
	}
	return -1
}

// stored says that something of the lease is at hand.
func (h *holding) stored() bool {
	for i := range h.units {
		if h.units[i].left > 0 {
			return true
		}
	}
	return h.left() > 0
}

// unitsAtHand are the units that could be taken now.
func (p *Pool) unitsAtHand(now time.Duration) (at lease.Units) {
	for _, h := range p.stock {
		if now >= h.deadline {
			continue
		}
		for i := range h.units {
			if u := &h.units[i]; u.left > 0 {
				at = at.Plus(u.unit, u.left)
			}
		}
	}
	return at
}

// takeUnits takes what a call costs of units that are at hand, soonest deadline
// first.
func (p *Pool) takeUnits(now time.Duration, c *Call) {
	for _, cost := range c.Units() {
		short := cost.N
		for _, h := range p.stock {
			i := h.unit(cost.Unit)
			if i < 0 || now >= h.deadline {
				continue
			}
			u := &h.units[i]
			n := min(short, u.left)
			if n <= 0 {
				continue
			}
			u.left -= n
			u.open += n
			c.more.parts = append(c.more.parts, unitPart{h, i, n})
			if short -= n; short == 0 {
				break
			}
		}
		p.unitsOpen += cost.N
		p.demand.tookUnit(cost.Unit, cost.N)
	}
}

// untakeUnits takes the units from a call. They are at hand again, if their lease
// lives.
func (p *Pool) untakeUnits(now time.Duration, c *Call) {
	if c.more == nil {
		return
	}
	for _, part := range c.more.parts {
		part.stock().open -= part.n
		p.unitsOpen -= part.n
		p.putBackUnit(now, part.from, part.at, part.n)
	}
	c.more.parts = nil
}

// putBackUnit makes units of a lease available again, or lets them expire with it.
func (p *Pool) putBackUnit(now time.Duration, h *holding, at int, n int64) {
	if n == 0 {
		return
	}
	if h.gone || now >= h.deadline {
		p.books.UnitsExpired += n
		return
	}
	h.units[at].left += n
	p.shelve(h)
}

// expireUnits ends the units of a lease at its deadline.
func (p *Pool) expireUnits(h *holding) {
	for i := range h.units {
		p.books.UnitsExpired += h.units[i].left
		h.units[i].left = 0
	}
}

// returnUnit returns up to n of what is left of a unit of a lease.
func (p *Pool) returnUnit(now time.Duration, h *holding, at int, n int64) {
	u := &h.units[at]
	n = min(n, u.left)
	if n <= 0 {
		return
	}
	u.left -= n
	if now >= h.deadline {
		p.books.UnitsExpired += n
		return
	}
	u.returned += n
	h.unsaid = true
	p.books.UnitsReturned += n
	p.dueBy(now + p.cfg.Coalesce)
}

// returnUnitsAbove returns the units at hand, but for some to keep.
func (p *Pool) returnUnitsAbove(now time.Duration, keep lease.Units) {
	keep = slices.Clone(keep)
	for _, h := range p.stock {
		for i := range h.units {
			u := &h.units[i]
			kept := min(u.left, keep.Of(u.unit))
			if kept > 0 {
				keep = keep.Plus(u.unit, -kept)
			}
			p.returnUnit(now, h, i, u.left-kept)
		}
	}
}

// resolveUnits counts used units of the call as spent, at its date.
func (p *Pool) resolveUnits(c *Call, used lease.Units) {
	for _, cost := range used {
		left := cost.N
		for i := range c.more.parts {
			part := &c.more.parts[i]
			u := part.stock()
			n := min(left, part.n)
			if u.unit != cost.Unit || n == 0 {
				continue
			}
			left -= n
			part.n -= n
			u.open -= n
			u.spent += n
			p.unitsOpen -= n
			p.books.UnitsSpent += n
			part.from.note(c.sent, p.cfg.MaxPoints)
			p.tellSpend(part.from, c.sent)
		}
	}
}

// settled gives what a call used of its units, what is named and all of the rest, and
// what it used beyond them.
func (c *Call) settled(named lease.Units) (used, over lease.Units, err error) {
	for _, u := range named {
		cost := c.Units().Of(u.Unit)
		if u.N < 0 || u.N > algo.MaxLimit {
			return c.Units(), nil, senseless{u.N, cost, " " + u.Unit}
		}
		over = over.Plus(u.Unit, max(0, u.N-cost))
	}
	for _, cost := range c.Units() {
		n := cost.N
		for _, u := range named {
			if u.Unit == cost.Unit {
				n = min(u.N, cost.N)
			}
		}
		used = used.Plus(cost.Unit, n)
	}
	return used, over, nil
}

// unitCounts are the counts that a point tells of units.
func (h *holding) unitCounts() []int64 {
	counts := make([]int64, len(h.units))
	for i := range h.units {
		counts[i] = h.units[i].spent
	}
	return counts
}

// toldUnits writes counts of the lease's units by their names.
func (h *holding) toldUnits(count func(i int) int64) (told lease.Units) {
	for i := range h.units {
		if n := count(i); n > 0 {
			told = append(told, lease.UnitAmount{Unit: h.units[i].unit, N: n})
		}
	}
	return told
}

// acknowledgeUnits notes what a report told of units that has been answered.
func (h *holding) acknowledgeUnits(c lease.Count) {
	for i := range h.units {
		u := &h.units[i]
		if k := len(c.Points); k > 0 {
			u.ackSpent = max(u.ackSpent, c.Points[k-1].Units.Of(u.unit))
		}
		u.ackReturned = max(u.ackReturned, c.ReturnedUnits.Of(u.unit))
	}
}

// knownUnits says that what a point says of units is acknowledged.
func (h *holding) knownUnits(point int) bool {
	for i := range h.units {
		if h.unitPoints[point][i] > h.units[i].ackSpent {
			return false
		}
	}
	return true
}

// unitsOpen says that a call has units of the lease that are neither spent nor
// returned, unitsTold that all of them are, and that the lessor knows.
func (h *holding) unitsOpen() bool {
	for i := range h.units {
		if h.units[i].open > 0 {
			return true
		}
	}
	return false
}

func (h *holding) unitsTold() bool {
	for i := range h.units {
		if u := &h.units[i]; u.spent+u.returned != u.granted || u.ackSpent != u.spent || u.ackReturned != u.returned {
			return false
		}
	}
	return true
}
