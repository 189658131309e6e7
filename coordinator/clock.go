package coordinator

import (
	"time"

	"ration/algo"
)

// clock is ledger time: it starts at the wall clock's, once in a process, and
// advances with the monotonic one, so that no step of the wall clock moves it, also
// from one leadership to the next.
type clock struct {
	base   time.Time
	origin algo.Instant
}

func startClock() clock {
	now := time.Now()
	return clock{now, algo.Instant(now.UnixNano())}
}

func (c clock) now() algo.Instant { return c.origin.Add(time.Since(c.base)) }
