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
	// brief is how far apart the readings of the two clocks may be, and readings
	// how often they are read for that at most.
	brief    = 100 * time.Microsecond
	readings = 16
)

// clock is the holder's own: the time elapsed since it was made. It is the
// monotonic clock, set forward to the boot-time clock, which counts on while the
// machine is suspended. It steps forward only, and is safe for concurrent use.
type clock struct {
	base time.Time
	wall int64 // Unix time of base, read once, so that it does not step

	boot   func() (time.Duration, bool) // nil: the monotonic clock alone
	origin time.Duration                // what boot was ahead of base, or a little more

	ahead    atomic.Int64 // what the monotonic clock is set forward by
	looked   atomic.Int64 // monotonic time of the last look
	suspends atomic.Int64
}

// newClock makes a clock over the boot-time clock, or over the monotonic one
// alone if that is nil or does not work.
func newClock(boot func() (time.Duration, bool)) *clock {
	c := &clock{base: time.Now()}
	c.wall = c.base.UnixNano()
	if boot == nil {
		return c
	}
	c.boot = boot
	if gap, _, ok := c.gap(time.Since(c.base)); ok {
		c.origin = gap.most
	} else {
		c.boot = nil
	}
	return c
}

// now is the elapsed time.
func (c *clock) now() time.Duration {
	t := time.Since(c.base)
	if c.boot != nil && int64(t)-c.looked.Load() > int64(lookEvery) {
		t = c.look(t)
	}
	return t + time.Duration(c.ahead.Load())
}

// gap is what the boot-time clock is ahead of the monotonic one: between two
// bounds, since something may happen between the readings of the two.
type gap struct{ least, most time.Duration }

// gap reads the boot-time clock between two readings of the monotonic one, the
// first of which is given: with the one before, the gap is at most, and with the
// one after at least, what it comes to. A pause in between, of the process or of
// its thread, sets the bounds apart, and then it reads again. It gives the last
// reading of the monotonic clock too.
func (c *clock) gap(before time.Duration) (best gap, last time.Duration, ok bool) {
	for try := range readings {
		at, ok := c.boot()
		last = time.Since(c.base)
		if !ok {
			return best, last, false
		}
		now := gap{at - last, at - before}
		if try == 0 || now.most-now.least < best.most-best.least {
			best = now
		}
		if best.most-best.least <= brief {
			break
		}
		before = last
	}
	return best, last, true
}

// look compares the clocks, and gives a reading of the monotonic one taken after.
//
// A clock set too far forward would date spends early, and one not far enough
// would spend after the deadline. So the gap at base is taken for as large as it
// may have been, and today's for as small: the clock is never set further forward
// than it has to be, and lacks 2·brief at most, far below the margin of any lease.
func (c *clock) look(before time.Duration) time.Duration {
	gap, t, ok := c.gap(before)
	c.looked.Store(int64(t))
	if !ok {
		return t
	}
	for to := int64(gap.least - c.origin); ; {
		ahead := c.ahead.Load()
		if to <= ahead {
			return t
		}
		if c.ahead.CompareAndSwap(ahead, to) {
			if to-ahead > int64(suspended) {
				c.suspends.Add(1)
			}
			return t
		}
	}
}

// unix is an elapsed time as Unix time in nanoseconds, from a clock that does
// not step while the process runs.
func (c *clock) unix(elapsed time.Duration) int64 { return c.wall + int64(elapsed) }
