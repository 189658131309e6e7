package worker

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	"ration/lease"
)

// laneKey is what a lane is for: callers of one class, who share the tokens of a key,
// or of the same several keys. What is held for one class is not spent by another, that
// a lower one may not live on what a higher one was granted.
type laneKey struct {
	keys  keySet
	class string
}

// lane is a pool, its lock, and what carries its messages and wakes its callers.
// Messages are sent and callers woken after the lock is let go.
type lane struct {
	worker *Worker
	key    laneKey
	tenant *tenant
	alarm  *alarm

	mu     sync.Mutex
	pool   *Pool // under mu, but for its live and dry
	life   *life // the incarnation that the pool's leases belong to
	used   time.Duration
	parked bool // for good
}

var keySeed = maphash.MakeSeed()

func newLane(t *tenant, key laneKey) *lane {
	w := t.worker
	l := &lane{worker: w, key: key, tenant: t, life: w.life.Load(), used: w.clock.now()}
	rnd := rand.New(rand.NewPCG(w.cfg.Seed, maphash.String(keySeed, string(key.keys))))
	cfg := w.cfg.Pool
	cfg.Class = key.class
	l.pool = NewPool(key.keys.list(), cfg, func() lease.ID { return l.life.id() }, rnd)
	l.alarm = newAlarm(w.scope, w.clock, w.late, func() { l.do(l.pool.Tick) })
	return l
}

// do calls f under the lock, at an instant read after what Allow had spent was
// looked at, and then does what came of it.
func (l *lane) do(f func(now time.Duration)) {
	l.mu.Lock()
	life := l.worker.checkLife()
	l.pool.Look()
	now := l.worker.clock.now()
	if l.life != life {
		l.life = life
		l.pool.Restart(now)
	}
	if l.worker.closed.Load() {
		l.pool.Close(now)
	}
	l.used = now
	f(now)
	lost := l.wake()
	requests := l.pool.Requests(now)
	next, due, holds := l.pool.Next(), l.pool.Due(), l.pool.Holds()
	l.mu.Unlock()

	for _, h := range lost {
		h.end(h.call.err)
	}
	for _, r := range requests {
		l.worker.scope.spawn(func() { l.send(r) })
	}
	l.alarm.set(next)
	if holds {
		l.tenant.wants(l, due)
	}
}

// wake wakes the callers that were decided, and gives the handles that lost their
// slots. It is called under the lock; no channel it sends to can block.
func (l *lane) wake() (lost []*Handle) {
	for _, c := range l.pool.Served() {
		h := c.Owner.(*Handle)
		if c.state == Lost {
			lost = append(lost, h)
			continue
		}
		select {
		case h.ready <- struct{}{}:
		default: // it has been told already
		}
	}
	return lost
}

// send sends one copy of a request and waits for its answer.
func (l *lane) send(r lease.Request) {
	ctx, cancel := context.WithTimeout(l.worker.scope.ctx, l.worker.cfg.Pool.AskAgain)
	answer, err := l.worker.lessor.Acquire(ctx, r)
	cancel()
	l.do(func(now time.Duration) {
		if err != nil {
			l.pool.Failed(now, r.Sent, r.ID, err)
			return
		}
		l.pool.Answered(now, r.Sent, answer)
	})
}

// spend spends a call that was taken, reading the clock after each take.
func (l *lane) spend(c *Call) {
	for c.state == Taken && !l.pool.Spend(l.worker.clock.now(), c) {
	}
}

// errParked says that the keys have another lane, or will have.
var errParked = errors.New("worker: parked")

// acquire is Limiter.acquire on this lane, or errParked.
func (l *lane) acquire(ctx context.Context, cost int64, units lease.Units, slot, once bool) (*Handle, error) {
	h := &Handle{lane: l, parent: ctx}
	state, kept := l.ask(h, cost, units, slot, once)
	if h.call == nil {
		return nil, errParked
	}
	for state == Waiting {
		select {
		case <-h.ready:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		l.do(func(now time.Duration) { state, kept = l.advance(now, h, once) })
	}
	switch {
	case kept:
		return h, nil
	case state == Failed:
		return nil, l.explain(h.call.err)
	default:
		return nil, l.withdraw(h, ctx.Err())
	}
}

// ask makes the call of a handle, unless the lane is parked.
func (l *lane) ask(h *Handle, cost int64, units lease.Units, slot, once bool) (state State, kept bool) {
	deadline, bounded := h.parent.Deadline()
	l.do(func(now time.Duration) {
		if l.parked {
			return
		}
		until := Forever
		if bounded {
			until = after(now, time.Until(deadline))
		}
		h.call = l.pool.Ask(now, cost, slot, until, units...)
		h.call.Owner = h
		if state, kept = l.advance(now, h, once); state == Waiting {
			h.ready = make(chan struct{}, 1)
		}
	})
	return state, kept
}

// advance spends a call if it was taken. It is kept if its caller is still there.
// It is called under the lock.
func (l *lane) advance(now time.Duration, h *Handle, once bool) (state State, kept bool) {
	l.spend(h.call)
	state = h.call.state
	if state != Running || h.parent.Err() != nil {
		return state, false
	}
	if once {
		l.pool.Finish(now, h.call)
	}
	return state, true
}

// withdraw cancels a call whose caller has gone.
func (l *lane) withdraw(h *Handle, err error) error {
	var trouble error
	l.do(func(now time.Duration) {
		l.pool.Cancel(now, h.call)
		trouble = l.pool.Trouble()
	})
	return because(err, trouble)
}

// explain turns a pool's time-out into the caller's own.
func (l *lane) explain(err error) error {
	if err != lease.ErrTimedOut {
		return err
	}
	l.mu.Lock()
	trouble := l.pool.Trouble()
	l.mu.Unlock()
	return because(context.DeadlineExceeded, trouble)
}

// because names the trouble behind a deadline, if there was any.
func because(err, trouble error) error {
	if err == context.DeadlineExceeded && trouble != nil {
		return fmt.Errorf("%w: %w", err, trouble)
	}
	return err
}

// allow takes n tokens and such units at hand when Allow could not by itself,
// unless the lane is parked.
func (l *lane) allow(n int64, units lease.Units) (ok, parked bool) {
	l.do(func(now time.Duration) {
		if parked = l.parked; parked {
			return
		}
		c := l.pool.Try(now, n, units...)
		if c == nil {
			return
		}
		if ok = l.pool.Spend(l.worker.clock.now(), c); ok {
			l.pool.Finish(now, c)
		} else {
			l.pool.Cancel(now, c)
		}
	})
	return ok, parked
}

// after is now plus d, or Forever if that is no instant any more.
func after(now, d time.Duration) time.Duration {
	if d > Forever-now {
		return Forever
	}
	return now + d
}
