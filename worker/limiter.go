package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"ration/lease"
)

// Limiter spends tokens of one key, or of several at once. It is safe for concurrent use.
type Limiter struct {
	worker *Worker
	key    laneKey
	lane   atomic.Pointer[lane] // the keys', or one that was parked since
}

// Keys are what is limited, in order.
func (l *Limiter) Keys() []lease.Key { return l.key.keys.list() }

// In gives the limiter of the same keys for callers of another class, see
// lease.Request.Class; "" names none. It has tokens of its own. One whose class cannot be
// a name refuses always.
func (l *Limiter) In(class string) *Limiter {
	if class == l.key.class {
		return l
	}
	return l.worker.limiter(laneKey{l.key.keys, class})
}

// Allow is AllowN of 1.
func (l *Limiter) Allow() bool { return l.AllowN(1) }

// AllowN spends n tokens if they are at hand in this process, and says whether
// it did. It never waits and sends nothing itself; when it is false, a refill
// has been asked for. It is false for n below 1, while callers wait, and always
// on a key with a concurrency rule: Acquire works there.
//
// With units it is the same for both together, and false if the units are not as
// lease.Units are; it then takes a lock.
func (l *Limiter) AllowN(n int64, units ...lease.UnitAmount) bool {
	if len(units) > 0 {
		return n > 0 && lease.Units(units).Validate() == nil && l.allow(n, units)
	}
	if n < 1 {
		return false
	}
	p := l.lane.Load().pool
	h := p.live.Load()
	if h == nil && n >= p.dry.Load() {
		return false
	}
	if h != nil && p.swift(h, l.worker.clock, n) {
		return true
	}
	return l.allow(n, nil)
}

// Wait is WaitN of 1.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN waits until n tokens and such units are spent, or ctx ends: then it gives
// ctx's error, and nothing is taken. n below 1 is an error. A *RefusedError says
// that waiting does not help, or would take longer than ctx allows; it wraps
// lease.ErrNeedsSlot on a key with a concurrency rule, since WaitN could not give
// the slot back: use Acquire there. Callers are served in order.
func (l *Limiter) WaitN(ctx context.Context, n int64, units ...lease.UnitAmount) error {
	if ctx.Err() == nil && n > 0 && len(units) == 0 {
		p := l.lane.Load().pool
		if h := p.live.Load(); h != nil && p.swift(h, l.worker.clock, n) {
			return nil
		}
	}
	_, err := l.acquire(ctx, n, units, false, true)
	return err
}

// Acquire waits until cost tokens and such units are spent, all at one instant,
// with a slot where a concurrency rule binds, and gives a handle that has to be
// ended by one of its methods. Errors are as for WaitN; units that are not as
// lease.Units are is one. The units are kept.
func (l *Limiter) Acquire(ctx context.Context, cost int64, units ...lease.UnitAmount) (*Handle, error) {
	return l.acquire(ctx, cost, units, true, false)
}

// allow is AllowN where what it saw without the lock was not enough.
func (l *Limiter) allow(n int64, units lease.Units) bool {
	for {
		if ok, parked := l.lane.Load().allow(n, units); !parked {
			return ok
		}
		l.follow()
	}
}

// acquire waits until n tokens are spent, or ctx ends: then nothing stays taken
// for it. With once the call is finished in the same breath.
func (l *Limiter) acquire(ctx context.Context, n int64, units lease.Units, slot, once bool) (*Handle, error) {
	if n < 1 {
		return nil, fmt.Errorf("worker: a cost of %d; the least is 1", n)
	}
	if err := units.Validate(); err != nil {
		return nil, badUnits{err}
	}
	if fault := lease.ClassFault(l.key.class); fault != "" && l.key.class != "" {
		return nil, fmt.Errorf("worker: %s; %s", fault, lease.ClassRemedy)
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := l.lane.Load().acquire(ctx, n, units, slot, once)
		if err != errParked {
			return h, err
		}
		l.follow()
	}
}

// follow takes the keys' lane of today.
func (l *Limiter) follow() { l.lane.Store(l.worker.lane(l.key)) }

// unix is an instant of this process's spends as Unix time.
func (w *Worker) unix(elapsed time.Duration) time.Time {
	return time.Unix(0, w.clock.unix(elapsed))
}
