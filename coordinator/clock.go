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

// read gives ledger time, and what the wall clock shows with it. A process that was
// put aside between the two readings would see the wall clock set: so they are taken
// again if that took long, which another reading tells.
func (c clock) read() (now, wall algo.Instant) {
	const long = 50 * time.Microsecond
	before, at := time.Now(), time.Now()
	for range 3 {
		if at.Sub(before) <= long {
			break
		}
		before, at = at, time.Now()
	}
	return c.origin.Add(at.Sub(c.base)), algo.Instant(at.UnixNano())
}
