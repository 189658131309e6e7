package worker

import (
	"slices"
	"time"

	"ration/lease"
)

// pace is how often what Allow spends is dated: a spend is dated late by no more
// than W/200.
func (p *Pool) pace() time.Duration {
	if p.terms.Window == 0 {
		return p.cfg.Batch
	}
	return min(max(p.terms.Window/200, time.Millisecond), p.cfg.Batch)
}

// reportAfter is how long a spend may wait to be reported: a third of the
// shortest window, so that there is time for one more try within the half.
func (p *Pool) reportAfter() time.Duration {
	if p.terms.Window == 0 {
		return time.Second
	}
	return min(p.terms.Window/3, time.Second)
}

// resolveAfter is how long a spent call can still give tokens back.
func (p *Pool) resolveAfter() time.Duration { return p.reportAfter() / 2 }

// Look notes what Allow has taken so far; the next Tick or Report dates that at
// its own instant. Look first and read the clock after, so that no spend is
// dated early. Without it a spend is dated a Tick later.
func (p *Pool) Look() {
	for _, h := range p.allowed {
		h.looked = h.swift()
	}
	p.looks.Add(1) // after: who finds the number unchanged has read the clock before
}

// swift takes and spends n tokens of a lease, at an instant that is read after the
// take: a process that is stopped in between finds the deadline passed. It needs no
// lock. A take that a Look may have seen before the clock was read may be dated too
// early, and is no spend either. The tokens are lost.
func (p *Pool) swift(h *holding, c *clock, n int64) bool {
	looks := p.looks.Load()
	if !h.takeAll(n) {
		return false
	}
	if c.before(h.deadline) && p.looks.Load() == looks {
		return true
	}
	h.missed.Add(n)
	return false
}

// Next is when Tick has something to do; Forever if never. It may lie in the
// past.
func (p *Pool) Next() time.Duration { return p.wake }

// Tick does what is due by now: it dates what Allow spent, ends what has reached
// its deadline, and gives back what is idle.
func (p *Pool) Tick(now time.Duration) {
	p.at(now)
	for _, h := range slices.Clone(p.leases) {
		p.dateSwift(now, h)
		if now >= h.deadline {
			p.expire(h)
		}
		if now >= h.slotDeadline {
			p.loseSlots(now, h)
		}
		if h.over(now) {
			p.drop(h)
		}
	}
	p.resolveDue(now)
	p.timeOut(now)
	p.demand.look(now)
	p.deal(now)
	p.returnIdle(now)
	p.givenUp = slices.DeleteFunc(p.givenUp, func(g givenUp) bool { return now-g.since > forget })
	p.Look()
	p.plan(now)
	p.alarm(now)
}

// forget is how long an id is named that nobody acknowledges: by then no copy of
// its request can be granted any more.
const forget = 2 * time.Minute

func (p *Pool) dateSwift(now time.Duration, h *holding) {
	n := h.looked - h.dated
	if n <= 0 {
		return
	}
	h.dated = h.looked
	p.lastSpend = now
	p.demand.taken += n
	p.spent(h, n, now)
}

// resolveDue counts as spent what calls sent long enough ago.
func (p *Pool) resolveDue(now time.Duration) {
	n := 0
	for _, c := range p.settling {
		if !c.resolved {
			if c.state == Running && now < c.sent+p.resolveAfter() {
				break
			}
			p.resolve(now, c, c.cost, c.Units())
		}
		n++
	}
	p.settling = slices.Delete(p.settling, 0, n)
}

// timeOut fails callers whose deadline has passed.
func (p *Pool) timeOut(now time.Duration) {
	if now < p.soonest {
		return
	}
	p.soonest, p.longest = Forever, 0
	for c := p.line.head; c != nil; {
		next := c.next
		switch {
		case c.until <= now:
			p.fail(c, lease.ErrTimedOut)
		case c.until != Forever:
			p.soonest, p.longest = min(p.soonest, c.until), max(p.longest, c.until)
		}
		c = next
	}
}

// returnIdle gives back tokens that nobody has spent of for a while, and slots
// that nobody local wants.
func (p *Pool) returnIdle(now time.Duration) {
	p.returnRuns(now)
	if now >= p.idleAt(now) {
		if now >= p.keepTill {
			p.thirst, p.thirstUnits = 0, nil
		}
		p.returnAbove(now, p.thirst, p.thirstUnits)
	}
	for _, h := range p.leases {
		if h.idle > 0 && (p.line.count == 0 || p.closed) && (p.scarce(now) || now-h.idleSince >= p.cfg.SlotLinger) {
			p.freeIdle(now, h, h.idle)
		}
	}
}

// idleAt is when the stock has served nobody for long enough to go back.
func (p *Pool) idleAt(now time.Duration) time.Duration {
	if p.spaced() {
		return p.runIdleAt(now)
	}
	return max(p.lastSpend, p.demand.grantedAt) + p.cfg.IdleAfter
}

// alarm sets when the next Tick is wanted.
func (p *Pool) alarm(now time.Duration) {
	p.wake = Forever
	if p.live.Load() != nil {
		p.wakeBy(now + p.pace())
	}
	p.alarmLeases(now)
	p.alarmRequests(now)
	if len(p.settling) > 0 {
		p.wakeBy(p.settling[0].sent + p.resolveAfter())
	}
	for _, h := range p.stock {
		if h.run && now < h.backAt {
			p.wakeBy(h.backAt)
		}
	}
	if p.line.count > 0 {
		p.early(now) // to be woken when its time has come
	}
	if idleAt := p.idleAt(now); len(p.stock) > 0 && now < idleAt {
		p.wakeBy(idleAt)
	} else if len(p.stock) > 0 {
		p.wakeBy(max(p.keepTill, now+1))
	}
	if p.line.count > 0 {
		p.wakeBy(p.soonest)
		if now < p.askAt {
			p.wakeBy(p.askAt)
		}
	}
	if now < p.refillAt {
		p.wakeBy(p.refillAt)
	}
	if now < p.unitRefillAt {
		p.wakeBy(p.unitRefillAt)
	}
	for _, g := range p.givenUp {
		p.wakeBy(g.since + forget + 1)
	}
}

func (p *Pool) alarmLeases(now time.Duration) {
	for _, h := range p.leases {
		switch {
		case now < h.deadline:
			p.wakeBy(h.deadline)
		case now <= h.deadline+grace:
			p.wakeBy(h.deadline + grace + 1)
		}
		if !h.slotsGone && now < h.slotDeadline {
			p.wakeBy(h.slotDeadline)
			if h.idle > 0 && p.line.count == 0 {
				p.wakeBy(h.idleSince + p.cfg.SlotLinger)
			}
		}
	}
}

func (p *Pool) alarmRequests(now time.Duration) {
	for _, r := range p.requests {
		switch {
		case r.left:
			p.wakeBy(r.until)
		case r.flying:
			p.wakeBy(r.sent + p.cfg.AskAgain)
		default:
			p.wakeBy(max(r.due, now))
		}
	}
}
