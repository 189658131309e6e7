package coordinator

import (
	"context"
	"fmt"
	"time"

	"ration/lease"
)

// outled is for how long another is heard to lead under no lower epoch before a leader
// believes it: several words of it, and not one that was late.
const outled = time.Second

// listen gives the error that the leader cannot be asked, that another leads on another
// mirror, or that another leads under no lower epoch, or nil when ctx ends.
//
// The mirror fences a leader that another has followed, unless the mirror itself is split:
// then this side of it goes on under the lower epoch, once it has forgotten the replicas of
// the other side, and the network alone tells of that. Where both sides were won at one
// instant, under one number, whoever stops first has a higher one next.
//
// It has a ticker of its own, since a mirror that hangs holds up the renewals.
func (c *Coordinator) listen(ctx context.Context, l *Leader) error {
	tick := time.NewTicker(c.config.RenewEvery)
	defer tick.Stop()
	var deaf, beside time.Duration
	looked := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, epoch := time.Now(), l.Epoch()
		// Who was put aside between two looks has heard nothing of what was said then.
		passed := min(now.Sub(looked), 2*c.config.RenewEvery)
		looked = now
		c.number.Store(max(c.number.Load(), epoch.Number)) // it may have been won anew, and others compare it
		around := l.hear()
		for _, r := range around.Rivals {
			if r.Leads {
				return r.error(c.mirror.Load())
			}
		}
		if deaf += passed; around.Connected {
			deaf = 0
		}
		if beside += passed; around.Led < epoch.Number {
			beside = 0
		}
		switch {
		case deaf > c.config.Seat.TTL/4:
			return errDeaf
		case beside > outled:
			return fmt.Errorf("%w: epoch %d is led beside this one, %d; the mirror may be split", lease.ErrFenced, around.Led, epoch.Number)
		}
	}
}
