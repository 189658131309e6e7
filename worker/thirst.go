package worker

import (
	"math"
	"time"

	"ration/lease"
)

// Allow takes and spends n tokens and such units at hand, or is false and starts a
// refill. It is for owners that drive the pool alone, such as a simulator.
func (p *Pool) Allow(now time.Duration, n int64, units ...lease.UnitAmount) bool {
	if h := p.live.Load(); len(units) == 0 && h != nil && h.takeAll(n) {
		if now < h.deadline {
			return true
		}
		h.missed.Add(n)
		return false
	}
	c := p.Try(now, n, units...)
	if c == nil || !p.Spend(now, c) {
		p.Cancel(now, c)
		return false
	}
	p.Finish(now, c)
	return true
}

// Try takes n tokens and such units at hand, all of one instant or nothing, for a
// call that will not wait: read the clock, Spend it, and Finish it; if it was no
// spend, Cancel it, or it stands in the line. It is nil if the tokens are not there
// or others wait for them: then a refill is under way, or planned once a pause is
// over. It is nil and nothing more if n is below 1, a concurrency rule binds, or
// the pool is closed.
func (p *Pool) Try(now time.Duration, n int64, units ...lease.UnitAmount) *Call {
	p.at(now)
	if p.closed || p.terms.Concurrent || n < 1 {
		return nil
	}
	p.orders++
	c := &Call{cost: n, more: newMore(units), order: p.orders, asked: now, until: now, state: Taken}
	c.parts = c.inline[:0]
	if p.line.count == 0 && p.early(now) && p.atHand(now) >= n {
		return nil // it is there, and its time will come
	}
	if p.line.count > 0 || p.early(now) || !p.take(now, c) {
		p.thirst, p.thirstUnits, p.thirstAt = n, units, now
		p.plan(now)
		return nil
	}
	p.taken.insert(c)
	p.plan(now)
	return c
}

// thirsty says that an Allow found nothing a moment ago.
func (p *Pool) thirsty(now time.Duration) bool {
	return p.thirst > 0 && now < p.thirstAt+p.cfg.IdleAfter
}

// unbarred says that no refill is too large to be asked for.
const unbarred = math.MaxInt64

// barred is how large a need may not be asked for now, nor any above it: a refill
// for it is under way, or was in vain a moment ago. That says nothing of a smaller
// need: tokens that are too few for five may do for one.
func (p *Pool) barred(now time.Duration) int64 {
	least := int64(unbarred)
	if p.refill != nil && len(p.refill.need.Units) == 0 {
		least = p.refill.need.Tokens
	}
	if now < p.refillAt {
		least = min(least, p.refillNeed)
	}
	return least
}

// noRefill keeps refills that need so many tokens or more from being asked for
// until an instant.
func (p *Pool) noRefill(need int64, until time.Duration) {
	p.refillAt, p.refillNeed = until, need
	p.wakeBy(until)
}

// prefetch refills before the stock runs out, one request at a time, while
// nobody else waits and what comes will be spent before it is idle; and it
// refills for an Allow that found nothing. One that needs less than what is
// barred takes the place of the refill under way, and needs 1: once that is in
// vain nothing is smaller, so it is two requests to a pause, in whatever order
// large and small are asked for.
func (p *Pool) prefetch(now time.Duration) {
	if p.line.count > 0 && !p.terms.Concurrent {
		return // who waits is asked for
	}
	if p.spaced() {
		if !p.thirsty(now) || p.atHand(now) >= p.thirst || !p.mayAsk() {
			return
		}
		p.returnAbove(now, 0, nil) // too little, and nobody has two runs at once
	}
	need, want, patience := int64(1), int64(1), time.Duration(0)
	var needUnits lease.Units
	barred := p.barred(now)
	switch {
	case p.thirsty(now) && len(p.thirstUnits) > 0:
		if p.refill != nil || now < p.unitRefillAt || p.atHand(now) >= p.thirst && p.unitsAtHand(now).Covers(p.thirstUnits) {
			return
		}
		need, want, needUnits, patience = p.thirst, p.thirst, p.thirstUnits, p.cfg.AskAgain
	case p.thirsty(now) && p.atHand(now) < p.thirst && p.thirst < barred:
		want, patience = p.thirst, p.cfg.AskAgain
		if barred == unbarred {
			need = p.thirst
		}
	case p.refill != nil || barred < unbarred || p.tight(now) || p.demand.batch < 2 || now-p.lastSpend >= p.cfg.IdleAfter:
		return
	case p.demand.within(p.cfg.IdleAfter) < 1 || p.enough(now) > p.demand.batch/2:
		return
	}
	if p.refill == nil && len(p.requests) >= p.cfg.MaxInFlight {
		return
	}
	if p.terms.Concurrent {
		if idle, busy := p.slots(now); idle+busy == 0 {
			return
		}
	}
	if p.refill != nil {
		if len(p.refill.need.Units) > 0 {
			p.unitRefillAt = now + p.cfg.BackoffMax // or the two would take turns
		}
		p.giveUp(now, p.refill)
	}
	p.refill = p.ask(now, nil, p.refillOf(now, want, needUnits), lease.Amount{Tokens: need, Units: needUnits})
	p.refill.until = now + patience
}

// refillOf is what a refill asks for: a batch of tokens and, where calls cost units
// too, what brings both to the same number of calls.
func (p *Pool) refillOf(now time.Duration, least int64, units lease.Units) lease.Amount {
	n := max(least, p.size(now))
	if len(p.demand.units) == 0 {
		return lease.Amount{Tokens: n, Units: units}
	}
	have, calls := p.unitsAtHand(now), p.enough(now)+n
	n = max(least, calls-p.atHand(now))
	return lease.Amount{Tokens: n, Units: wants(units, p.unitsFor(calls), have)}
}

// enough is for how many tokens' calls there is enough at hand or coming.
func (p *Pool) enough(now time.Duration) int64 {
	n := p.atHand(now)
	for _, r := range p.requests {
		n += r.want.Tokens
	}
	if len(p.demand.units) == 0 {
		return n
	}
	have := p.unitsAtHand(now)
	for _, r := range p.requests {
		have = plus(have, r.want.Units, 1)
	}
	for i := range p.demand.units {
		u := &p.demand.units[i]
		if per := p.demand.per(u); per > 0 {
			n = min(n, int64(min(float64(have.Of(u.unit))/per, 1<<40)))
		}
	}
	return n
}

// publish sets what Allow takes from without asking the pool.
func (p *Pool) publish(now time.Duration) {
	var live *holding
	if p.line.count == 0 && !p.closed && p.known && !p.terms.Concurrent && !p.spaced() {
		for _, h := range p.stock {
			if now < h.deadline && h.left() > 0 {
				if h.share > 0 {
					live = h
				}
				break
			}
		}
	}
	if live != nil {
		p.wakeBy(now + p.pace())
	}
	if p.live.Load() != live {
		if live != nil && !live.published {
			live.published = true
			p.allowed = append(p.allowed, live)
		}
		p.live.Store(live)
	}
	dry := p.barred(now)
	if live == nil && len(p.stock) > 0 {
		dry = unbarred // there is something, for one who has the lock
	}
	if p.closed || p.line.count > 0 || p.terms.Concurrent {
		dry = 1
	}
	if p.dry.Load() != dry {
		p.dry.Store(dry)
	}
}
