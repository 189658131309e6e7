package worker

import (
	"slices"
	"time"

	"ration/lease"
)

// The stock: tokens at hand, and the ways out of it other than a call.

// take takes the call's cost from the stock, soonest deadline first, or nothing.
func (p *Pool) take(now time.Duration, c *Call) bool {
	if len(c.Units()) > 0 && !p.unitsAtHand(now).Covers(c.Units()) {
		return false
	}
	short := c.cost
	empty := 0
	for _, h := range p.stock {
		if now >= h.deadline {
			p.expire(h)
		} else if n := h.take(short); n > 0 {
			c.parts = append(c.parts, part{h, n})
			short -= n
		}
		if h.left() == 0 {
			empty++
		}
		if short == 0 {
			break
		}
	}
	if empty > 0 {
		p.tidyStock()
	}
	if short > 0 {
		for _, part := range c.parts {
			p.putBack(now, part.from, part.n)
		}
		c.parts = c.parts[:0]
		return false
	}
	for _, part := range c.parts {
		part.from.open += part.n
	}
	p.open += c.cost
	p.demand.taken += c.cost
	if len(c.Units()) > 0 {
		p.takeUnits(now, c)
		p.tidyStock()
	}
	return true
}

func (p *Pool) tidyStock() {
	p.stock = slices.DeleteFunc(p.stock, func(h *holding) bool {
		h.stocked = h.stored()
		return !h.stocked
	})
}

// putBack makes tokens of a lease available again, or lets them expire with it.
func (p *Pool) putBack(now time.Duration, h *holding, n int64) {
	if n == 0 {
		return
	}
	if h.gone || now >= h.deadline {
		h.expired += n
		p.books.Expired += n
		return
	}
	h.put(n)
	p.shelve(h)
}

// shelve puts a lease of which something is left into the stock.
func (p *Pool) shelve(h *holding) {
	if !h.stocked {
		h.stocked = true
		i, _ := slices.BinarySearchFunc(p.stock, h, func(a, b *holding) int { return int(sign(a.deadline - b.deadline)) })
		p.stock = slices.Insert(p.stock, i, h)
	}
	p.wakeBy(h.deadline)
}

func sign(d time.Duration) time.Duration { return max(-1, min(1, d)) }

// atHand is how many tokens could be taken now.
func (p *Pool) atHand(now time.Duration) int64 {
	var n int64
	for _, h := range p.stock {
		if now < h.deadline {
			n += h.left()
		}
	}
	return n
}

// returnLeft returns all that is left of a lease.
func (p *Pool) returnLeft(now time.Duration, h *holding) {
	p.giveReturn(now, h, h.takeLeft())
	for i := range h.units {
		p.returnUnit(now, h, i, h.units[i].left)
	}
}

// giveReturn counts n tokens, already taken out of what is left, as returned.
func (p *Pool) giveReturn(now time.Duration, h *holding, n int64) {
	if n <= 0 {
		return
	}
	if now >= h.deadline {
		h.expired += n
		p.books.Expired += n
		return
	}
	h.returned += n
	h.unsaid = true
	p.books.Returned += n
	if p.ran(h) {
		p.dueBy(now)
		return
	}
	p.dueBy(now + p.cfg.Coalesce)
}

// expire ends the tokens of a lease at its deadline.
func (p *Pool) expire(h *holding) {
	if n := h.takeLeft(); n > 0 {
		h.expired += n
		p.books.Expired += n
	}
	p.expireUnits(h)
}

// lose ends a lease that is over before its time: nothing of it is spent any
// more, and what calls took of it but have not spent is taken from them by Spend.
func (p *Pool) lose(now time.Duration, h *holding) {
	h.gone = true
	p.expire(h)
	p.loseSlots(now, h)
	p.drop(h)
}

// drop forgets a lease.
func (p *Pool) drop(h *holding) {
	p.expire(h)
	if swift := h.swift(); swift > h.dated {
		h.spent += swift - h.dated
		p.books.Spent += swift - h.dated
		h.dated = swift
	}
	missed := h.missed.Load()
	p.books.Spent -= missed
	p.books.Expired += missed
	h.gone = true
	delete(p.byID, h.id)
	same := func(o *holding) bool { return o == h }
	p.leases = slices.DeleteFunc(p.leases, same)
	p.stock = slices.DeleteFunc(p.stock, same)
	p.allowed = slices.DeleteFunc(p.allowed, same)
	if p.live.Load() == h {
		p.live.Store(nil)
	}
}

// returnAbove returns what is at hand, but for keep tokens and such units.
func (p *Pool) returnAbove(now time.Duration, keep int64, units lease.Units) {
	p.returnUnitsAbove(now, units)
	for _, h := range p.stock {
		have := h.left()
		kept := min(have, keep)
		keep -= kept
		p.giveReturn(now, h, h.take(have-kept))
	}
	p.tidyStock()
}
