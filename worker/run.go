package worker

import (
	"slices"
	"time"

	"ration/lease"
)

// Runs: under a pace rule a lease is a run of spends, a gap apart. Its calls are dealt
// one at a time, since the gap begins at the spend and not at the take; while it
// has any left nobody else is granted, so it is neither kept longer than it is of
// use nor told of late.

const (
	// runAhead is how much demand one run should serve while nobody else wants
	// the rule: passing it on costs about one way of a message.
	runAhead = time.Second
	// runShare is the part of the shortest window that a run should serve where
	// others want the rule too.
	runShare = 4
)

// spaced says that a pace rule binds.
func (p *Pool) spaced() bool { return p.terms.Spacing > 0 }

// early says that no call may be dealt now: one has been and is not spent yet, or
// the gap after the last spend is not over. It sees to it that Tick comes then.
func (p *Pool) early(now time.Duration) bool {
	switch {
	case !p.spaced():
		return false
	case p.taken.count > 0:
		return true
	case now < p.nextSpend:
		if len(p.stock) > 0 {
			p.wakeBy(p.nextSpend)
		}
		return true
	}
	return false
}

// space begins the gap after a call that is spent. Its tokens are told of with a
// date of their own, and no more come back.
func (p *Pool) space(now time.Duration, c *Call) {
	gaps := Forever
	if c.cost <= int64((Forever-now)/p.terms.Spacing) {
		gaps = now + time.Duration(c.cost)*p.terms.Spacing
	}
	p.nextSpend = max(p.nextSpend, gaps)
	p.resolve(now, c, c.cost, c.Units())
	p.plan(now)
	if p.line.count > 0 && len(p.stock) > 0 {
		p.wakeBy(p.nextSpend)
	}
}

// agree takes note of a run that was granted: the lessor holds the gap of the last one
// to be over. Its clock and this one may differ by 200 parts in a million, which of
// a gap of an hour is more than the run lives; so that much, and a little, is taken
// off what is left of the gap. The run would else expire unspent, time and again. A
// grant of slots alone says nothing of the gap.
func (p *Pool) agree() {
	p.nextSpend -= (p.nextSpend - max(p.lastSpend, 0)) / 4000
}

// ran says that all of a run is accounted for: who waits for it can be told.
func (p *Pool) ran(h *holding) bool { return h.run && h.left() == 0 && h.open == 0 }

// points is how many points of a lease wait to be acknowledged before some are
// merged. There is one for each spend of a run, so it is told of after half as many
// as are usual, and few are ever merged.
func (p *Pool) points(h *holding) int {
	if h.run {
		return 4 * p.cfg.MaxPoints
	}
	return p.cfg.MaxPoints
}

// follow is how many tokens more than one are spent in a span.
func (p *Pool) follow(span time.Duration) int64 { return int64((span - 1) / p.terms.Spacing) }

// shareSpan is how long a run should be where others want the rule too.
func (p *Pool) shareSpan() time.Duration {
	return min(max(p.terms.Window/runShare, p.cfg.Batch), runAhead)
}

// runSize is how many tokens to ask for beyond what is needed.
func (p *Pool) runSize(now time.Duration) int64 {
	p.demand.usedUp(now, runAhead, p.cfg.MaxBatch)
	if now < p.othersTill {
		return min(p.demand.batch, 1+p.follow(p.shareSpan()))
	}
	return p.demand.batch
}

// usable says that callers in line can have what is at hand.
func (p *Pool) usable(now time.Duration) bool {
	if p.line.count == 0 || !p.needsSlot() {
		return p.line.count > 0
	}
	idle, _ := p.slots(now)
	return idle > 0
}

// keeps is how much of a run to keep when others wait: what callers in line will
// use, and while callers keep coming in time for each spend, a turn's worth.
func (p *Pool) keeps(now time.Duration) int64 {
	var keep int64
	if p.usable(now) {
		have := p.atHand(now)
		for c := p.line.head; c != nil && c.cost <= have-keep; c = c.next {
			keep += c.cost
		}
	}
	if p.taken.count > 0 || now < p.nextSpend+p.cfg.SlotLinger {
		keep = max(keep, p.follow(p.shareSpan()))
	}
	return keep
}

// runIdleAt is when the rest of a run has been idle for long enough to go back: at
// once when its next spend is due, where others want the rule.
func (p *Pool) runIdleAt(now time.Duration) time.Duration {
	idle := p.cfg.IdleAfter
	if now < p.othersTill {
		idle = p.cfg.SlotLinger
	}
	if p.taken.count > 0 || p.usable(now) {
		return Forever
	}
	return max(p.nextSpend, p.demand.grantedAt) + idle
}

// returnRuns gives back what is left of runs that are about to end: what expires
// counts as spent then, and keeps everybody from the rule for as many gaps.
func (p *Pool) returnRuns(now time.Duration) {
	for _, h := range p.stock {
		if h.run && now >= h.backAt {
			p.books.RunsGivenUp++
			p.returnLeft(now, h)
		}
	}
	p.tidyStock()
}

// mayAsk says that tokens may be asked for: none of a run are in the hands of a
// call, and none are asked for by a caller.
func (p *Pool) mayAsk() bool {
	return p.open == 0 && !slices.ContainsFunc(p.requests, func(r *request) bool { return r != p.refill && r.need.Tokens > 0 })
}

// runOver says that nothing of a run is left. What is too little for the head of the
// line goes back, since nobody has two runs at once.
func (p *Pool) runOver(now time.Duration) bool {
	have := p.atHand(now)
	if c := p.line.head; c != nil && have > 0 && (have < c.cost || !p.unitsAtHand(now).Covers(c.Units())) {
		p.books.RunsTooShort++
		p.returnAbove(now, 0, nil)
		have = 0
	}
	return have == 0 && p.open == 0
}

// coverRun asks for what the head of the line lacks: the next run once nothing is
// left of the last one, and a slot. It is one request at a time, since one run at a
// time is granted, for all who stand in line.
func (p *Pool) coverRun(now time.Duration) {
	c := p.line.head
	if c == nil {
		return
	}
	want, need := p.lacks(now, c)
	if need.Zero() {
		return
	}
	if now < p.askAt {
		p.wakeBy(p.askAt)
		return
	}
	var kept *request
	for _, r := range slices.Clone(p.requests) {
		if kept == nil && r != p.refill && r.need.Equal(need) {
			kept = r
			continue
		}
		p.giveUp(now, r)
	}
	switch {
	case kept == nil:
		p.ask(now, c, want, need)
	case kept.call != c:
		kept.unbind()
		kept.bind(c)
	}
}

// lacks is what the head of the line needs, and what those behind it could use too.
func (p *Pool) lacks(now time.Duration, c *Call) (want, need lease.Amount) {
	if p.runOver(now) {
		need.Tokens, need.Units = c.cost, c.Units()
		want.Tokens = max(c.cost, min(max(p.line.cost, p.size(now)), p.cfg.MaxBatch))
		want.Units = wants(need.Units, p.unitsFor(want.Tokens), p.unitsAtHand(now))
	}
	if !p.needsSlot() {
		return want, need
	}
	idle, busy := p.slots(now)
	if idle > 0 || busy > 0 && (p.scarce(now) || now < p.nextSpend) {
		return want, need // there is one, or may be in time
	}
	need.Slots, want.Slots = 1, 1
	if !p.scarce(now) {
		want.Slots = int64(p.line.count)
	}
	return want, need
}
