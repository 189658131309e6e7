package worker

import (
	"errors"
	"time"

	"ration/lease"
)

// refused takes up a refusal: who asked for no less, and for no longer, than was
// refused need not ask again.
func (p *Pool) refused(now time.Duration, r *request, f lease.Refusal) {
	p.books.Refusals++
	if r.copies > 1 {
		p.renounce(now, r) // another copy may be granted yet
	}
	var err error = &RefusedError{f}
	if errors.Is(f.Reason, lease.ErrForbidden) {
		err = f.Reason // the contract has not been asked
	}
	hopeless := func(c *Call) bool { return false }
	switch f.Reason {
	case lease.ErrTimedOut: // callers look at their own deadlines
	case lease.ErrLimit, lease.ErrTooLate:
		hopeless = func(c *Call) bool { return r.call != nil && c.needsAll(r.need) && c.until <= r.ends }
		p.tightTill = now + p.cfg.Calm
	case lease.ErrPaused: // whatever it needs
		hopeless = func(c *Call) bool { return r.call != nil && c.until <= r.ends }
	case lease.ErrNever:
		hopeless = func(c *Call) bool { return c.needsAll(r.need) }
	case lease.ErrNeedsSlot:
		p.terms.Concurrent, p.known = true, true
		hopeless = func(c *Call) bool { return !c.slot }
		for _, h := range p.leases { // the ledger knows of none
			p.freeIdle(now, h, h.idle)
		}
	case lease.ErrLineFull:
		hopeless = func(c *Call) bool { return c == r.call }
	default:
		hopeless = func(c *Call) bool { return !passing(f.Reason) || c == r.call }
	}
	for c := p.line.head; c != nil; {
		next := c.next
		if hopeless(c) {
			p.fail(c, err)
		}
		c = next
	}
	if p.line.count > 0 {
		p.askAt = now + p.spread(p.cfg.BackoffMin) // others may ask, but not at once
		p.wakeBy(p.askAt)
	}
	if r.call == nil {
		p.refillRefused(now, r, f)
	}
}

// refillRefused pauses refills: those that need as much, or all if the refusal has
// nothing to do with how much.
func (p *Pool) refillRefused(now time.Duration, r *request, f lease.Refusal) {
	need, pause := r.need.Tokens, max(p.cfg.BackoffMax, min(f.Wait, p.cfg.AskAgain))
	switch f.Reason {
	case lease.ErrLimit, lease.ErrTooLate, lease.ErrTimedOut, lease.ErrNever:
	default:
		if need = 1; !passing(f.Reason) {
			pause = p.cfg.AskAgain
		}
	}
	if len(r.need.Units) > 0 { // it says nothing of those that need none
		p.unitRefillAt = now + pause
		p.wakeBy(p.unitRefillAt)
		return
	}
	p.noRefill(need, now+pause)
}

// needsAll says that the call needs no less of anything.
func (c *Call) needsAll(need lease.Amount) bool {
	return c.cost >= need.Tokens && c.Units().Covers(need.Units)
}
