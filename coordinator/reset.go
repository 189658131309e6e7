package coordinator

import (
	"cmp"
	"context"
	"time"

	"ration/lease"
)

// ClockReset tells what taking the wall clock has changed.
type ClockReset struct {
	// Moved is by how much calendar time was set forward, or back if it is negative.
	Moved time.Duration
	// Wider is how much wider the guards of fixed rules were before.
	Wider time.Duration
}

// ResetClock lets calendar time, which fixed rules go by, take the leader's wall clock at
// once, whatever lies between: a window may open twice, or early. It is a change in a turn,
// and returns when that is recorded. Where the mirror is away, and turns go on without, it
// fails with lease.ErrMirrorAway; it may be in force then, and can be asked for again. What was
// not taken up before ctx ended is not done.
func (l *Leader) ResetClock(ctx context.Context) (ClockReset, error) {
	return await(ctx, func(told func(ClockReset, error)) {
		var r ClockReset
		var refused error
		l.inbox.put(envelope{
			change: func(ledger *lease.Ledger) {
				if refused = ctx.Err(); refused != nil {
					return
				}
				now, wall := l.clock.read()
				before := ledger.Dial()
				ledger.ResetClock(now, wall)
				r = ClockReset{Moved: ledger.Dial().Offset - before.Offset, Wider: before.Apart}
			},
			looked: func(err error) { told(r, cmp.Or(refused, err)) },
		})
	})
}
