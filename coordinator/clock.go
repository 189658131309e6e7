package coordinator

import (
	"time"

	"ration/algo"
)

// clock is ledger time: it goes on from an instant and advances with the monotonic
// clock, so that no step of the wall clock moves it.
type clock struct {
	base   time.Time
	origin algo.Instant
}

func clockFrom(at algo.Instant) clock { return clock{time.Now(), at} }

func (c clock) now() algo.Instant { return c.origin.Add(time.Since(c.base)) }

// wall is the wall clock.
func wall() algo.Instant { return algo.Instant(time.Now().UnixNano()) }
