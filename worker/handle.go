package worker

import (
	"context"
	"sync"
	"time"

	"ration/lease"
)

// Handle is a call that may leave: its cost is spent, and it has a slot where
// one is needed. End it by Finish, Cancel, Abandon or Settle; the first of them
// counts, the others do nothing. It is safe for concurrent use.
type Handle struct {
	lane   *lane
	parent context.Context
	call   *Call
	ready  chan struct{} // where it waited

	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelCauseFunc
	over   error // why ctx ends
}

// Context ends when the handle does, when the context given to Acquire does, or
// when the lease of its slot is lost; the cause is then ErrLeaseLost, and the
// call should stop, since the slot may soon serve another.
func (h *Handle) Context() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil {
		h.ctx, h.cancel = context.WithCancelCause(h.parent)
		if h.over != nil {
			h.cancel(h.over)
		}
	}
	return h.ctx
}

func (h *Handle) end(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over != nil {
		return
	}
	h.over = why
	if h.cancel != nil {
		h.cancel(why)
	}
}

// Sent is the instant of the spend: the very one that the ledger dates it with,
// as Unix time from a clock that does not step while the process runs.
func (h *Handle) Sent() time.Time { return h.lane.worker.unix(h.call.sent) }

// Waited is how long Acquire took.
func (h *Handle) Waited() time.Duration { return h.call.Waited() }

// Finish says that the upstream has answered.
func (h *Handle) Finish() {
	h.lane.do(func(now time.Duration) { h.lane.pool.Finish(now, h.call) })
	h.end(context.Canceled)
}

// Cancel says that the call never left: its tokens serve the next local caller
// or go back at once, until half a second after the spend, or a sixth of the
// shortest window if that is less; from then on they count as spent. Under a pace
// rule they are spent for good, since the gap has begun.
func (h *Handle) Cancel() {
	h.lane.do(func(now time.Duration) { h.lane.pool.Cancel(now, h.call) })
	h.end(context.Canceled)
}

// Abandon says that the call left, but nobody waits for its answer any more. Its
// slot comes back to others only a guard later, since the upstream may be at
// work still.
func (h *Handle) Abandon() {
	h.lane.do(func(now time.Duration) { h.lane.pool.Abandon(now, h.call) })
	h.end(context.Canceled)
}

// Settle finishes a call that used more or less than its cost. The rest goes to the
// next local caller or back, as by Cancel. What it used beyond is debt of the limits,
// up to one limit, that later grants repay: nothing is granted there until it has come
// back. Of a unit that is not named all is used. A used below 0, or above what any rule
// could grant, is an error that names both numbers; the whole cost is spent then, of
// tokens and units.
func (h *Handle) Settle(used int64, units ...lease.UnitAmount) (err error) {
	h.lane.do(func(now time.Duration) { err = h.lane.pool.Settle(now, h.call, used, units...) })
	h.end(context.Canceled)
	return err
}
