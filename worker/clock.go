package worker

import (
	"sync/atomic"
	"time"
)

const (
	// lookEvery is how stale the look at the boot-time clock may be. A look
	// costs ten times a reading of the monotonic clock.
	lookEvery = time.Millisecond
	// suspended is a gap between the two clocks that only a suspend explains.
	suspended = time.Second
)

// clock is the holder's own: the time elapsed since it was made. It is the
// monotonic clock, set forward to the boot-time clock, which counts on while the
// machine is suspended. It steps forward only, and is safe for concurrent use.
type clock struct {
	base time.Time
	wall int64 // Unix time of base, read once, so that it does not step

	boot     func() (time.Duration, bool) // nil: the monotonic clock alone
	bootBase time.Duration

	ahead    atomic.Int64 // what the monotonic clock is set forward by
	looked   atomic.Int64 // monotonic time of the last look
	suspends atomic.Int64
}

func newClock(monotonicOnly bool) *clock {
	c := &clock{base: time.Now()}
	c.wall = c.base.UnixNano()
	if monotonicOnly {
		return c
	}
	if at, ok := bootTime(); ok {
		c.boot = bootTime
		// What passed since base is not lost: the boot-time clock was read after.
		c.bootBase = at - time.Since(c.base)
	}
	return c
}

// now is the elapsed time.
func (c *clock) now() time.Duration {
	t := time.Since(c.base)
	if c.boot != nil && int64(t)-c.looked.Load() > int64(lookEvery) {
		t = c.look()
	}
	return t + time.Duration(c.ahead.Load())
}

// look compares the clocks, and gives a reading of the monotonic one taken after
// the boot-time clock was read: so the difference is never taken for larger than
// it is, whatever happens between the two readings. A clock set too far forward
// would date spends early.
func (c *clock) look() time.Duration {
	boot, ok := c.boot()
	t := time.Since(c.base)
	c.looked.Store(int64(t))
	if !ok {
		return t
	}
	for gap := int64(boot - c.bootBase - t); ; {
		ahead := c.ahead.Load()
		if gap <= ahead {
			return t
		}
		if c.ahead.CompareAndSwap(ahead, gap) {
			if gap-ahead > int64(suspended) {
				c.suspends.Add(1)
			}
			return t
		}
	}
}

// unix is an elapsed time as Unix time in nanoseconds, from a clock that does
// not step while the process runs.
func (c *clock) unix(elapsed time.Duration) int64 { return c.wall + int64(elapsed) }
