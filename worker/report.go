package worker

import (
	"slices"
	"time"

	"ration/lease"
)

// Due is when a report is wanted; Forever if nothing waits to be told. It may
// lie in the past.
func (p *Pool) Due() time.Duration { return p.due }

// Report gives what a report that is sent at this very instant has to say of the
// pool's leases: with heartbeat of all of them, else of those about which there
// is news. Tell what becomes of it by Replied or Unreported.
func (p *Pool) Report(now time.Duration, heartbeat bool) ([]lease.Count, []lease.GivenUp) {
	p.at(now)
	p.due = Forever
	var counts []lease.Count
	for _, h := range p.leases {
		p.dateSwift(now, h)
		if h.unsaid || heartbeat {
			counts = append(counts, h.count(now, p.keys))
			h.unsaid = false
		}
	}
	counts = p.tellOverspends(counts, heartbeat)
	p.due = Forever // all that dating made due is in counts
	var ids []lease.GivenUp
	for i := range p.givenUp {
		if g := &p.givenUp[i]; heartbeat || !g.said {
			ids = append(ids, g.GivenUp)
			g.said = true
		}
	}
	return counts, ids
}

// Replied takes up the reply to a report. Leases and ids of other pools in it
// are passed over.
func (p *Pool) Replied(now time.Duration, sent lease.Report, reply lease.Reply) {
	p.at(now)
	for _, c := range sent.Counts {
		if h := p.byID[c.ID]; h != nil {
			h.acknowledge(c)
		}
	}
	p.overspendsTold(sent.Counts)
	for _, renewed := range reply.Renewed {
		h := p.byID[renewed.ID]
		if h == nil || h.slotsGone {
			continue
		}
		if now >= h.slotDeadline {
			p.loseSlots(now, h) // it came too late to be believed
			continue
		}
		h.slotDeadline = max(h.slotDeadline, sent.Sent+renewed.SlotTTL-lease.Margin(renewed.SlotTTL))
	}
	for _, id := range reply.Ended {
		if h := p.byID[id]; h != nil {
			p.lose(now, h)
		}
	}
	p.givenUp = slices.DeleteFunc(p.givenUp, func(g givenUp) bool { return slices.Contains(reply.Acknowledged, g.ID) })
	for _, h := range slices.Clone(p.leases) {
		if h.over(now) {
			p.drop(h)
		}
	}
	p.deal(now)
	p.plan(now)
}

// Unreported says that a report had no reply: it is said again, after a pause.
func (p *Pool) Unreported(now time.Duration, sent lease.Report) {
	p.at(now)
	again := false
	for _, c := range sent.Counts {
		if h := p.byID[c.ID]; h != nil {
			h.unsaid, again = true, true
		}
	}
	for i := range p.givenUp {
		g := &p.givenUp[i]
		if slices.ContainsFunc(sent.GivenUp, func(s lease.GivenUp) bool { return s.ID == g.ID }) {
			g.said, again = false, true
		}
	}
	if p.overspendsUntold(sent.Counts) || again {
		p.dueBy(now + p.spread(p.cfg.BackoffMax))
	}
}

// Recalled gives back what is idle, since others wait: tokens but for what will
// be spent within a hundredth of the window, and slots up to as many as asked,
// those that serve now as their calls end, even if local callers wait for them.
func (p *Pool) Recalled(now time.Duration, r lease.Recall) {
	p.at(now)
	if !r.On(p.keys) || p.closed {
		return
	}
	p.books.Recalls++
	p.tightTill = now + p.cfg.Calm
	p.demand.look(now)
	keep := int64(0)
	switch {
	case p.spaced():
		if p.open == 0 && p.atHand(now) == 0 {
			break // it was asked for what is over by now
		}
		p.othersTill = now + p.cfg.Calm
		keep = p.keeps(now)
	case now-p.lastSpend < p.cfg.IdleAfter:
		keep = p.share()
	}
	p.returnAbove(now, keep, p.unitsFor(keep))
	if r.Slots > 0 {
		p.scarceTill = now + p.cfg.Calm
		// A turn recalls lease by lease: what comes together adds up, what comes
		// again later is the same want.
		if now-p.recalledAt > 10*time.Millisecond {
			p.owed = 0
		}
		p.recalledAt = now
		ask := p.owed + r.Slots
		for _, h := range p.leases {
			n := min(h.idle, ask)
			p.freeIdle(now, h, n)
			ask -= n
		}
		_, busy := p.slots(now)
		p.owed = min(ask, busy)
	}
	p.plan(now)
}
