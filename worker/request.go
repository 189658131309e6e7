package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"ration/lease"
)

// request is one that is under way: it has an id, and no final answer.
type request struct {
	id         lease.ID
	want, need lease.Amount
	call       *Call // whom it is for; nil for a refill
	until      time.Duration

	flying bool          // a copy is on its way, sent at:
	sent   time.Duration // the last copy's instant
	ends   time.Duration // when that copy's patience ends
	copies int
	due    time.Duration // when the next copy goes, unless one is flying
	fails  int           // in a row
	left   bool          // its caller has gone; kept for a moment as a refill
}

type givenUp struct {
	lease.GivenUp
	said  bool
	since time.Duration
}

func (r *request) bind(c *Call) { r.call, c.request, r.left = c, r, false }

func (r *request) unbind() {
	if r.call != nil && r.call.request == r {
		r.call.request = nil
	}
	r.call = nil
}

// forSlot says whether the request waits for a slot, and not for tokens alone.
func (r *request) forSlot() bool { return r.want.Slots > 0 }

// Requests gives the copies of requests that are to be sent now, with now as
// their Sent. Send them at once; tell of each by Answered or Failed.
func (p *Pool) Requests(now time.Duration) []lease.Request {
	p.at(now)
	var out []lease.Request
	var over *request
	for _, r := range p.requests {
		switch {
		case r.left && now >= r.until:
			over = r // its caller has gone, and others may stand behind it
			continue
		case r.flying && now < r.sent+p.cfg.AskAgain, !r.flying && now < r.due:
			continue
		case r.call == nil && r.copies > 0 && now >= r.until:
			over = r // the refill, of which there is one
			continue
		}
		r.flying, r.sent = true, now
		r.copies++
		p.books.Requests++
		patience := p.patience(now, r)
		r.ends = now + patience
		out = append(out, lease.Request{
			ID: r.id, Keys: p.keys, Want: r.want, Need: r.need,
			Class: p.cfg.Class, Sent: now, Patience: patience,
		})
	}
	if over != nil {
		p.giveUp(now, over)
	}
	if out != nil || over != nil {
		p.alarm(now)
	}
	return out
}

// patience is how long the request may wait: as long as the most patient of the
// callers in line.
func (p *Pool) patience(now time.Duration, r *request) time.Duration {
	switch {
	case r.call == nil:
		return max(0, r.until-now)
	case p.patient > 0:
		return p.cfg.Patience
	}
	return max(0, p.longest-now)
}

// Answered takes up the answer to the copy of a request that was sent at sent.
func (p *Pool) Answered(now, sent time.Duration, a lease.Answer) {
	p.at(now)
	r := p.find(a.ID)
	if r == nil {
		p.books.Dropped++ // taken, refused or given up before
		return
	}
	if a.Outcome != lease.Ended && a.Terms != (lease.Terms{}) {
		p.terms, p.known = a.Terms, true
	}
	r.fails, p.trouble = 0, nil
	switch a.Outcome {
	case lease.Granted:
		p.remove(r)
		p.granted(now, sent, r, a)
	case lease.Refused:
		p.remove(r)
		p.refused(now, r, a.Refusal)
	case lease.Waiting:
		if sent == r.sent {
			r.flying, r.due = false, now+p.spread(p.cfg.BackoffMin)
			p.wakeBy(r.due)
		}
	case lease.Ended:
		p.remove(r)
	}
	p.deal(now)
	p.trim()
	p.plan(now)
}

// Failed says that no answer could be had to the copy sent at sent. The request
// goes on under its id, after a pause; if err says that this can not help, its
// callers fail.
func (p *Pool) Failed(now, sent time.Duration, id lease.ID, err error) {
	p.at(now)
	r := p.find(id)
	if r == nil || !r.flying || r.sent != sent {
		return
	}
	r.flying = false
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, lease.ErrSuperseded) {
		p.trouble = err // a copy that waits its time in the line is no trouble
	}
	if !passing(err) {
		p.giveUp(now, r)
		p.refused(now, r, lease.Refusal{Reason: err, Key: p.keys[0]})
		p.plan(now)
		return
	}
	r.due = now
	if now < sent+p.cfg.AskAgain {
		bound := p.cfg.BackoffMin << min(r.fails, 16)
		r.due = now + p.spread(min(bound, p.cfg.BackoffMax))
		r.fails++
	}
	p.wakeBy(r.due)
}

// spread draws a pause, so that many do not ask again at one instant.
func (p *Pool) spread(most time.Duration) time.Duration {
	return time.Duration(p.rand.Int64N(int64(most) + 1))
}

func (p *Pool) granted(now, sent time.Duration, r *request, a lease.Answer) {
	h := &holding{
		id: r.id, granted: a.Granted, moved: a.Granted.Tokens,
		deadline:     sent + a.TokenTTL - lease.Margin(a.TokenTTL),
		slotDeadline: sent + a.SlotTTL - lease.Margin(a.SlotTTL),
		idle:         a.Granted.Slots, idleSince: now,
		run: p.spaced(), share: a.Granted.Tokens / losable,
	}
	if h.run && a.Granted.Tokens > 0 {
		p.agree()
	}
	h.taken.Store(h.granted.Tokens) // until it is put on the shelf
	h.backAt = h.deadline - min((h.deadline-now)/4, p.cfg.Batch)
	for _, u := range a.Granted.Units {
		h.units = append(h.units, unitStock{unit: u.Unit, granted: u.N})
		p.books.UnitsGranted += u.N
	}
	short := a.Granted.Tokens < r.want.Tokens || !a.Granted.Units.Covers(r.want.Units)
	p.leases = append(p.leases, h)
	p.byID[h.id] = h
	p.books.Grants++
	p.books.Granted += a.Granted.Tokens
	p.demand.gotBatch(now, a.Granted.Tokens, short)
	if r.call == nil && p.thirst > 0 {
		p.keepTill = now + p.cfg.AllowIdle
	}
	if r.call == nil && short {
		p.noRefill(1, now+p.cfg.Batch) // it has given what it can
	}
	p.putBack(now, h, a.Granted.Tokens)
	for i, u := range a.Granted.Units {
		p.putBackUnit(now, h, i, u.N)
	}
	if a.Granted.Slots == 0 || now >= h.slotDeadline {
		h.slotsGone, h.idle = true, 0
	}
	p.wakeBy(now + p.cfg.SlotLinger)

	waited := a.Waited > 0
	slotsShort := r.want.Slots > 0 && a.Terms.Concurrent && (waited || a.Granted.Slots < r.want.Slots)
	if slotsShort {
		p.scarceTill = now + p.cfg.Calm
	}
	tokensShort := short && !slotsShort || waited && r.need.Slots == 0
	if tokensShort {
		p.tightTill = now + p.cfg.Calm
	}
	p.deal(now)
	if p.line.count > 0 || r.call == nil {
		return
	}
	// Nobody local waits any more. Where others do, it goes back at once.
	if p.tight(now) && !h.gone && !h.run {
		p.returnLeft(now, h)
	}
	if p.scarce(now) {
		p.freeIdle(now, h, h.idle)
	}
}

func (p *Pool) find(id lease.ID) *request {
	for _, r := range p.requests {
		if r.id == id {
			return r
		}
	}
	return nil
}

func (p *Pool) remove(r *request) {
	p.requests = slices.DeleteFunc(p.requests, func(o *request) bool { return o == r })
	if p.refill == r {
		p.refill = nil
	}
	if r.call != nil && r.call.request == r {
		r.call.request = nil // but refused still has to know whom it was for
	}
}

// giveUp ends a request for good. If it was ever sent, it is named until the
// lessor knows; an answer that comes now is dropped.
func (p *Pool) giveUp(now time.Duration, r *request) {
	p.remove(r)
	if r.copies > 0 {
		p.renounce(now, r)
	}
}

func (p *Pool) renounce(now time.Duration, r *request) {
	if slices.ContainsFunc(p.givenUp, func(g givenUp) bool { return g.ID == r.id }) {
		return
	}
	p.books.GivenUp++
	p.givenUp = append(p.givenUp, givenUp{GivenUp: lease.GivenUp{ID: r.id, Keys: p.keys}, since: now})
	p.dueBy(now + p.cfg.Coalesce)
}
