package worker

import (
	"slices"
	"time"

	"ration/lease"
)

// tight says that tokens are contended: a grant waited or fell short of what
// was wanted, or a recall came, not long ago.
func (p *Pool) tight(now time.Duration) bool { return now < p.tightTill }

// scarce says the same of slots.
func (p *Pool) scarce(now time.Duration) bool { return now < p.scarceTill }

// share is what the holder spends in a hundredth of the shortest window. Where
// others wait, no lease is asked to be larger: a token held for h and then spent
// is out of its window for h longer than it had to be.
func (p *Pool) share() int64 { return p.demand.within(p.terms.Window / 100) }

// size is how many tokens to ask for beyond what is needed.
func (p *Pool) size(now time.Duration) int64 {
	p.demand.look(now)
	if p.spaced() {
		return p.runSize(now)
	}
	if p.tight(now) {
		return min(p.share(), p.cfg.MaxBatch)
	}
	p.demand.usedUp(now, p.cfg.Batch, p.cfg.MaxBatch)
	return p.demand.batch
}

// plan brings what is asked for in line with what is wanted: it gives up
// requests that nobody wants any more, asks for callers whom nothing under way
// would serve, and refills before the stock runs out.
func (p *Pool) plan(now time.Duration) {
	if !p.closed {
		p.rebind(now)
		p.cover(now)
		p.prefetch(now)
	}
	p.publish(now)
}

// rebind finds another caller for each request whose own has left the line,
// since its place in the lessor's line is worth keeping; it has to need just
// what the request does, or a small caller would wait for a large grant. A
// request that finds none is given up; only one whose caller was served by
// something else is kept for a moment as a refill, while there is demand and
// nobody else waits.
func (p *Pool) rebind(now time.Duration) {
	for _, r := range slices.Clone(p.requests) {
		if r == p.refill || r.call != nil && r.call.state == Waiting && r.call.request == r {
			continue
		}
		served := r.call != nil && (r.call.state == Taken || r.call.state == Running)
		r.unbind()
		if c := p.unasked(r); c != nil {
			r.bind(c)
			continue
		}
		keep := served && p.refill == nil && p.line.count == 0 && !r.forSlot() && !p.tight(now) && !p.spaced() && r.need.Tokens <= p.demand.batch &&
			now-p.lastSpend < p.cfg.IdleAfter && p.atHand(now)+r.want.Tokens <= 2*p.demand.batch
		if !keep {
			p.giveUp(now, r)
			continue
		}
		p.refill = r
		r.until, r.left = now+p.cfg.BackoffMin, true
		p.wakeBy(r.until)
	}
}

// unasked finds a caller near the front whom r could be for.
func (p *Pool) unasked(r *request) *Call {
	looked := 0
	for c := p.line.head; c != nil && looked < 4*p.cfg.MaxInFlight; c = c.next {
		looked++
		if c.request == nil && (r.need.Tokens == 0 || c.cost == r.need.Tokens && slices.Equal(c.Units(), r.need.Units)) && (c.slot || !r.forSlot()) {
			return c
		}
	}
	return nil
}

// cover walks the line and asks for those whom nothing at hand or under way would
// serve. A caller with a request of its own is served by that; the others share
// what is at hand, and what requests want beyond their need. On a contract with
// a concurrency rule the first callers use the idle slots and lack tokens only;
// the others lack a slot, and get their tokens with it.
func (p *Pool) cover(now time.Duration) {
	if p.spaced() {
		p.coverRun(now)
		return
	}
	if p.line.count == 0 || len(p.requests) >= p.cfg.MaxInFlight {
		return
	}
	if now < p.askAt {
		p.wakeBy(p.askAt)
		return
	}
	v := p.survey(now)
	for c := p.line.head; c != nil && len(p.requests) < p.cfg.MaxInFlight; c = c.next {
		inTokens := p.slotless(c) || v.idle > 0
		if v.idle > 0 {
			v.idle--
		}
		own := c.request != nil
		if own && c.request.forSlot() != inTokens {
			continue
		}
		switch {
		case inTokens && v.idle == 0 && v.tokens >= v.cost && v.units.Covers(v.unitCost) && p.slotless(c):
			return // enough for all the rest
		case !inTokens && v.slots >= v.callers:
			return
		case inTokens:
			p.coverTokens(now, c, &v)
		case !p.coverSlot(now, c, &v):
			return
		}
		if !own {
			v.callers--
			v.cost -= c.cost
			v.unitCost = plus(v.unitCost, c.Units(), -1)
		}
	}
}

// slotless says that the call needs no slot, as far as is known.
func (p *Pool) slotless(c *Call) bool { return !c.slot || p.known && !p.terms.Concurrent }

// view is what is at hand or coming for callers that have no request of their
// own, and who they are.
type view struct {
	tokens, idle  int64
	slots         int64 // coming, each with its caller's tokens
	forSlots      int   // requests for them
	callers, cost int64
	units         lease.Units // as tokens
	unitCost      lease.Units // as cost
}

// serves says that what is there is enough for c, and takes that away.
func (v *view) serves(c *Call) bool {
	if v.tokens < c.cost || !v.units.Covers(c.Units()) {
		return false
	}
	v.tokens -= c.cost
	v.units = plus(v.units, c.Units(), -1)
	return true
}

func (p *Pool) survey(now time.Duration) view {
	v := view{tokens: p.atHand(now), callers: int64(p.line.count), cost: p.line.cost}
	if len(p.line.units) > 0 {
		v.units, v.unitCost = p.unitsAtHand(now), slices.Clone(p.line.units)
	}
	for _, r := range p.requests {
		need := lease.Amount{}
		if r.call != nil {
			need = r.need
			v.callers--
			v.cost -= r.call.cost
			v.unitCost = plus(v.unitCost, r.call.Units(), -1)
		}
		if r.forSlot() {
			v.slots += r.want.Slots - need.Slots
			v.forSlots++
		} else {
			v.tokens += r.want.Tokens - need.Tokens
			v.units = plus(plus(v.units, r.want.Units, 1), need.Units, -1)
		}
	}
	idle, busy := p.slots(now)
	v.idle = idle
	if p.scarce(now) {
		v.idle += min(busy, p.share()) // as good as idle: they will be, within W/100
	}
	return v
}

// coverTokens asks for the tokens of a call that lacks nothing else. Its need is
// its whole cost, so that a cost that can never be granted is known at once.
func (p *Pool) coverTokens(now time.Duration, c *Call, v *view) {
	if v.serves(c) {
		return
	}
	more := p.size(now)
	if len(c.Units()) > 0 {
		more -= v.tokens // those that lack units serve first
	}
	if p.tight(now) {
		more = min(more, v.cost-v.tokens) // what callers lack, and no more
	}
	need := lease.Amount{Tokens: c.cost, Units: c.Units()}
	want := lease.Amount{Tokens: max(c.cost, more)}
	want.Units = wants(c.Units(), p.unitsFor(want.Tokens), v.units)
	p.ask(now, c, want, need)
	v.tokens += want.Tokens - c.cost
	v.units = plus(plus(v.units, want.Units, 1), c.Units(), -1)
}

// coverSlot asks for a slot for c, unless one is coming, and for the rest of the
// line while nobody else wants slots. Tokens at hand serve first.
func (p *Pool) coverSlot(now time.Duration, c *Call, v *view) bool {
	if v.slots > 0 {
		v.slots--
		return true
	}
	if v.forSlots >= max(1, p.cfg.MaxInFlight/2) {
		return false
	}
	need := lease.Amount{Tokens: c.cost, Slots: 1, Units: c.Units()}
	if v.serves(c) {
		need = lease.Amount{Slots: 1}
	}
	want := need
	if !p.scarce(now) {
		if p.known {
			want.Slots = max(1, v.callers)
			want.Tokens = max(want.Tokens, min(v.cost-v.tokens, p.cfg.MaxBatch))
		}
		if !p.tight(now) {
			want.Tokens = max(want.Tokens, p.size(now))
		}
		want.Units = wants(need.Units, p.unitsFor(want.Tokens), v.units)
	}
	p.ask(now, c, want, need)
	v.slots += want.Slots - 1
	v.forSlots++
	return true
}

func (p *Pool) ask(now time.Duration, c *Call, want, need lease.Amount) *request {
	r := &request{id: p.ids(), want: want, need: need, due: now, until: Forever}
	if c != nil {
		r.bind(c)
	}
	p.requests = append(p.requests, r)
	p.wakeBy(now)
	return r
}
