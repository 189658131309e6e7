package worker

import (
	"sync/atomic"
	"time"

	"ration/internal/tsc"
)

const (
	// lookEvery is how stale the look at the boot-time clock may be. A look
	// costs ten times a reading of the monotonic clock.
	lookEvery = time.Millisecond
	// counted is over which time the processor's counter is compared with the
	// monotonic clock, once.
	counted = time.Second
	// fastest is what no counter exceeds, in ticks a nanosecond. One that seems to
	// was set while it was compared.
	fastest = 8.0
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

	// What the processor's counter is good for, if it is steady: while it is within
	// span ticks of from, the elapsed time is at most by.
	steady bool
	first  uint64 // the counter, after base was read
	span   atomic.Int64
	from   atomic.Uint64
	by     atomic.Int64
}

// newClock makes a clock over the boot-time clock, or over the monotonic one
// alone if that is nil or does not work.
func newClock(boot func() (time.Duration, bool)) *clock {
	c := &clock{base: time.Now(), steady: tsc.Steady()}
	c.first = tsc.Read()
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
	if int64(t)-c.looked.Load() > int64(lookEvery) {
		t = c.look(t)
	}
	return t + time.Duration(c.ahead.Load())
}

// before says that now is before t, and takes a look if it is not sure without.
//
// In most cases the processor's counter is enough, which is read in half the time
// of the clock: since the last look it has counted fewer ticks than it counts
// between two looks, so at most that much has passed.
func (c *clock) before(t time.Duration) bool { return c.surely(tsc.Read(), t) || c.now() < t }

// surely says that t had not come when the counter read ticks; false says nothing.
// A counter that was set back or forward is out of the span, and a wrong one can
// mislead by no more than the boot-time clock may be stale.
func (c *clock) surely(ticks uint64, t time.Duration) bool {
	return ticks-c.from.Load() < uint64(c.span.Load()) && c.by.Load() < int64(t) // by is raised before from
}

// count notes that the monotonic clock read t after the counter read ticks.
func (c *clock) count(ticks uint64, t time.Duration) {
	if !c.steady {
		return
	}
	// These ticks passed after the first reading of the clock and before its last,
	// so the rate is higher than it seems, and the span no longer than it may be.
	if t < counted || c.span.Load() == 0 {
		rate := min(float64(ticks-c.first)/float64(t), fastest)
		raise(&c.span, int64(rate*float64(lookEvery)))
	}
	raise(&c.by, int64(t)+c.ahead.Load()+int64(lookEvery))
	c.from.Store(ticks)
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
func (c *clock) look(before time.Duration) time.Duration {
	ticks := tsc.Read()
	t := c.follow(before)
	c.looked.Store(int64(t))
	c.count(ticks, t)
	return t
}

// follow sets the clock forward to the boot-time clock.
//
// A clock set too far forward would date spends early, and one not far enough
// would spend after the deadline. So the gap at base is taken for as large as it
// may have been, and today's for as small: the clock is never set further forward
// than it has to be, and lacks 2·brief at most, far below the margin of any lease.
func (c *clock) follow(before time.Duration) time.Duration {
	if c.boot == nil {
		return time.Since(c.base)
	}
	gap, t, ok := c.gap(before)
	if !ok {
		return t
	}
	if raise(&c.ahead, int64(gap.least-c.origin)) > suspended {
		c.suspends.Add(1)
	}
	return t
}

// raise stores what is more than is there, and gives by how much.
func raise(at *atomic.Int64, to int64) time.Duration {
	for {
		was := at.Load()
		if to <= was {
			return 0
		}
		if at.CompareAndSwap(was, to) {
			return time.Duration(to - was)
		}
	}
}

// unix is an elapsed time as Unix time in nanoseconds, from a clock that does
// not step while the process runs.
func (c *clock) unix(elapsed time.Duration) int64 { return c.wall + int64(elapsed) }
