package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"ration/lease"
)

// Limiter spends tokens of one key. It is safe for concurrent use.
type Limiter struct {
	worker *Worker
	key    lease.Key
	lane   atomic.Pointer[lane] // the key's, or one that was parked since
}

// Key is what is limited.
func (l *Limiter) Key() lease.Key { return l.key }

// Allow is AllowN of 1.
func (l *Limiter) Allow() bool { return l.AllowN(1) }

// AllowN spends n tokens if they are at hand in this process, and says whether
// it did. It never waits and sends nothing itself; when it is false, a refill
// has been asked for. It is false for n below 1, while callers wait, and always
// on a key with a concurrency rule: Acquire works there.
//
// The take comes first and the clock is read after: a process that is stopped
// in between finds the deadline passed, and has not spent.
func (l *Limiter) AllowN(n int64) bool {
	if n < 1 {
		return false
	}
	p := l.lane.Load().pool
	h := p.live.Load()
	if h == nil && n >= p.dry.Load() {
		return false
	}
	if h != nil && h.takeAll(n) && h.spend(l.worker.clock.now(), n) {
		return true
	}
	return l.allow(n)
}

// Wait is WaitN of 1.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN waits until n tokens are spent, or ctx ends: then it gives ctx's error,
// and nothing is taken. n below 1 is an error. A *RefusedError says that waiting
// does not help, or would take longer than ctx allows; it wraps
// lease.ErrNeedsSlot on a key with a concurrency rule, since WaitN could not
// give the slot back: use Acquire there. Callers are served in order.
func (l *Limiter) WaitN(ctx context.Context, n int64) error {
	if ctx.Err() == nil && n > 0 {
		if h := l.lane.Load().pool.live.Load(); h != nil && h.takeAll(n) && h.spend(l.worker.clock.now(), n) {
			return nil
		}
	}
	_, err := l.acquire(ctx, n, false, true)
	return err
}

// Acquire waits until cost tokens are spent, with a slot where a concurrency
// rule binds, and gives a handle that has to be ended by one of its methods.
// Errors are as for WaitN.
func (l *Limiter) Acquire(ctx context.Context, cost int64) (*Handle, error) {
	return l.acquire(ctx, cost, true, false)
}

// allow is AllowN where what it saw without the lock was not enough.
func (l *Limiter) allow(n int64) bool {
	for {
		if ok, parked := l.lane.Load().allow(n); !parked {
			return ok
		}
		l.follow()
	}
}

// acquire waits until n tokens are spent, or ctx ends: then nothing stays taken
// for it. With once the call is finished in the same breath.
func (l *Limiter) acquire(ctx context.Context, n int64, slot, once bool) (*Handle, error) {
	if n < 1 {
		return nil, fmt.Errorf("worker: a cost of %d; the least is 1", n)
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := l.lane.Load().acquire(ctx, n, slot, once)
		if err != errParked {
			return h, err
		}
		l.follow()
	}
}

// follow takes the key's lane of today.
func (l *Limiter) follow() { l.lane.Store(l.worker.lane(l.key)) }

// unix is an instant of this process's spends as Unix time.
func (w *Worker) unix(elapsed time.Duration) time.Time {
	return time.Unix(0, w.clock.unix(elapsed))
}
