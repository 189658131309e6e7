package ration

import (
	"context"
	"time"

	"ration/worker"
)

// Limiter spends what a contract allows on one key, or on several at once. It is safe
// for concurrent use, and so cheap to call that every call may ask.
type Limiter struct {
	inner *worker.Limiter
}

// Key is what is limited; of several keys the first, see Keys.
func (l *Limiter) Key() string { return l.Keys()[0] }

// Keys are all that is limited, in the order of their bytes, each once.
func (l *Limiter) Keys() []string {
	var keys []string
	for _, k := range l.inner.Keys() {
		keys = append(keys, string(k))
	}
	return keys
}

// Allow is AllowN of 1.
func (l *Limiter) Allow() bool { return l.inner.AllowN(1) }

// AllowN spends n tokens if they are at hand in this process, and says whether it
// did: nanoseconds, no network, no waiting. When it is false a refill has been
// asked for, so ask again, or Wait. It is false for n below 1, while callers wait
// here, and always on a key with a concurrency rule, where Acquire works.
//
// With Units it is the same for all that the call costs: it takes a lock, and is
// false if they are not as Units says.
func (l *Limiter) AllowN(n int64, opts ...CallOption) bool {
	if len(opts) > 0 {
		inner, units := l.in(opts)
		return inner.AllowN(n, units...)
	}
	return l.inner.AllowN(n)
}

// Wait is WaitN of 1.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN waits until n tokens are spent, and with Units what else the call costs.
// n below 1 is an error. If ctx ends first the error is ctx's, nothing is spent,
// and what had been granted serves the next caller. A *Refused says that waiting
// does not help, or is known to take longer than ctx allows. On a key with a
// concurrency rule it is ErrNeedsHandle, and ErrPermission where NATS forbids to ask.
func (l *Limiter) WaitN(ctx context.Context, n int64, opts ...CallOption) error {
	inner, units := l.in(opts)
	return outward(inner.WaitN(ctx, n, units...))
}

// Acquire waits as WaitN does, for a slot too where a concurrency rule binds, and
// gives a handle. End it by one of its methods: until then it may hold a slot.
// Units say what else the call costs, and Class who it goes before.
func (l *Limiter) Acquire(ctx context.Context, cost int64, opts ...CallOption) (*Handle, error) {
	inner, units := l.in(opts)
	h, err := inner.Acquire(ctx, cost, units...)
	if err != nil {
		return nil, outward(err)
	}
	return &Handle{h}, nil
}

// Handle is a call that may leave. End it by Finish, Cancel, Abandon or Settle:
// the first one counts, the others do nothing. It is safe for concurrent use.
type Handle struct {
	inner *worker.Handle
}

// Context ends when the handle does, when the context given to Acquire does, or,
// with the cause ErrLeaseLost, when the lease of its slot is lost. Make the call
// with it.
func (h *Handle) Context() context.Context { return h.inner.Context() }

// Sent is the instant of the spend, the very one that the coordinator dates it
// with, from a clock that does not step while the process runs.
func (h *Handle) Sent() time.Time { return h.inner.Sent() }

// Waited is how long Acquire took.
func (h *Handle) Waited() time.Duration { return h.inner.Waited() }

// Finish says that the upstream has answered: a slot is free at once.
func (h *Handle) Finish() { h.inner.Finish() }

// Cancel says that the call never left: its tokens serve the next caller or go
// back at once, until half a second after the spend, or a sixth of the shortest
// window if that is less; from then on they count as spent. Under a pace rule they
// are spent for good, since the gap has begun.
func (h *Handle) Cancel() { h.inner.Cancel() }

// Abandon says that the call left, but that nobody waits for its answer any more.
// Its slot is free a guard later, since the upstream may be at work still.
func (h *Handle) Abandon() { h.inner.Abandon() }

// Settle finishes a call with what it really used. What it used less goes back as by
// Cancel. What it used more is debt of its limits, up to one limit: nothing is granted
// there until it has come back. Units say what it used of those; of one that is not
// named it used all that it asked for. What is below 0 is an error that names both
// numbers, and the whole cost is spent.
func (h *Handle) Settle(used int64, opts ...CallOption) error {
	c := gathered(opts)
	return outward(h.inner.Settle(used, c.amounts(false)...))
}
