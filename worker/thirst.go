package worker

import (
	"math"
	"time"

	"ration/lease"
)

// Allow takes and spends n tokens at hand, or is false and starts a refill. It
// is for owners that drive the pool alone, such as a simulator.
func (p *Pool) Allow(now time.Duration, n int64) bool {
	if h := p.live.Load(); h != nil && h.takeAll(n) {
		return h.spend(now, n)
	}
	c := p.Try(now, n)
	if c == nil || !p.Spend(now, c) {
		p.Cancel(now, c)
		return false
	}
	p.Finish(now, c)
	return true
}

// Try takes n tokens at hand for a call that will not wait: Spend it, then
// Finish. It is nil if they are not there, or others wait for them, or a
// concurrency rule binds; then a refill is started.
func (p *Pool) Try(now time.Duration, n int64) *Call {
	p.at(now)
	if p.closed || p.terms.Concurrent || n < 1 {
		return nil
	}
	p.orders++
	c := &Call{cost: n, order: p.orders, asked: now, until: now, state: Taken}
	c.parts = c.inline[:0]
	if p.line.count > 0 || !p.take(now, c) {
		p.thirst, p.thirstAt = n, now
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

// prefetch refills before the stock runs out, one request at a time, while
// nobody else waits and what comes will be spent before it is idle; and it
// refills for an Allow that found nothing.
func (p *Pool) prefetch(now time.Duration) {
	if p.refill != nil || now < p.refillAt || len(p.requests) >= p.cfg.MaxInFlight {
		return
	}
	if p.line.count > 0 && !p.terms.Concurrent {
		return // who waits is asked for
	}
	need, patience := int64(0), time.Duration(0)
	switch {
	case p.thirsty(now) && p.atHand(now) < p.thirst:
		need, patience = p.thirst, p.cfg.AskAgain
	case p.tight(now) || p.demand.batch < 2 || now-p.lastSpend >= p.cfg.IdleAfter:
		return
	case p.demand.within(p.cfg.IdleAfter) < 1 || p.atHand(now)+p.coming() > p.demand.batch/2:
		return
	default:
		need = 1
	}
	if p.terms.Concurrent {
		if idle, busy := p.slots(now); idle+busy == 0 {
			return
		}
	}
	p.refill = p.ask(now, nil, lease.Amount{Tokens: max(need, p.size(now))}, lease.Amount{Tokens: need})
	p.refill.until = now + patience
}

func (p *Pool) coming() (n int64) {
	for _, r := range p.requests {
		n += r.want.Tokens
	}
	return n
}

// publish sets what Allow takes from without asking the pool.
func (p *Pool) publish(now time.Duration) {
	var live *holding
	if p.line.count == 0 && !p.closed && p.known && !p.terms.Concurrent {
		for _, h := range p.stock {
			if now < h.deadline && h.left.Load() > 0 {
				live = h
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
	dry := live == nil && (p.closed || p.refill != nil || p.line.count > 0 || now < p.refillAt || p.terms.Concurrent)
	if p.dry.Load() != dry {
		p.dry.Store(dry)
	}
}
