package lease

import (
	"math"
	"time"

	"ration/algo"
)

// Calendar time is what fixed rules go by: ledger time plus an offset, which follows
// the leader's wall clock. What that shows is taken at once where no boundary of a
// fixed rule lies between, since then no window begins early or twice; else
// calendar time runs faster or slower by a thousandth, and while the two differ
// either may be what the upstream goes by. It never goes back past a boundary.

// Dial is how calendar time lies to ledger time: what a leader mirrors, and the next
// one goes on from ([Ledger.SetDial]). The zero Dial is ledger time itself.
type Dial struct {
	// Offset is calendar time less ledger time.
	Offset time.Duration
	// Apart is how much wider than their own the guards of fixed rules are: no less
	// than calendar time and the wall clock differ, and 0 only if they do not.
	Apart time.Duration
	// Widened tells when Apart grew, by rising instant and falling Apart: what a window
	// did not see of it, since it was not looked at, it makes up for.
	Widened []Widening
	// High is the highest offset of late, at least Offset: what a spend that is not
	// settled yet may have been let go under.
	High time.Duration
}

// Widening says that just before an instant of calendar time Apart grew to so much.
type Widening struct {
	At    algo.Instant
	Apart time.Duration
}

const (
	// slewing is what part of passing time an offset changes by at most.
	slewing = 1000
	// slewMost is how much of it may be saved up: what two readings of clocks may
	// differ by is followed at once, and no leader that slept jumps over a boundary.
	slewMost = time.Millisecond
	// apartLeast and apartMost are the narrowest and the widest that guards grow by. The
	// widest is nearly nine years, so that with a guard of its own it is one still; by
	// then nothing comes back anyhow.
	apartLeast = time.Millisecond
	apartMost  = apartLeast << 38
	// crestSpan is for how long it is known, at least, that the offset was higher:
	// longer than spends wait to be settled.
	crestSpan = time.Minute
)

// dial is a Dial and what its owner knows besides.
type dial struct {
	Dial
	ahead   time.Duration // how far the wall clock was ahead when last looked at
	looked  bool
	at      algo.Instant // ledger time of that look
	room    time.Duration
	crests  [2]crest // the later one first
	clocks  []clock
	started bool          // clocks are known
	full    time.Duration // how far ahead of now a window may see that is lost and full
}

// crest says that until that instant of ledger time the offset was, now and then, as
// high as this.
type crest struct {
	known bool
	began algo.Instant
	until algo.Instant
	high  time.Duration
}

// clock is the boundaries of fixed rules that share them, and the widest guard of
// these.
type clock struct {
	spec  *algo.Spec
	guard time.Duration
}

// calendar gives the calendar time of an instant of now or later.
func (d *dial) calendar(t algo.Instant) algo.Instant { return t.Add(d.Offset) }

// look follows what the wall clock shows at now. shown is the latest instant of
// ledger time that windows have seen: before it calendar time does not go. It says
// whether waits told before may be too long now: calendar time jumped, or Apart is
// another.
func (d *dial) look(now, wall, shown algo.Instant) (changed bool) {
	if d.looked {
		d.room = min(slewMost, d.room+max(0, now.Sub(d.at))/slewing)
	} else if d.looked = true; d.High > d.Offset {
		d.fell(now, d.High)
	}
	d.at = now
	before := d.calendar(now)
	gap := wall.Sub(before)
	step := min(gap, d.room)
	if gap < 0 {
		step = max(gap, -d.room, -max(0, now.Sub(shown)))
	}
	switch {
	case step == gap || !d.clear(min(wall, before), max(wall, before)):
		d.room -= max(step, -step)
	default:
		step, changed = gap, true
	}
	if step < 0 {
		d.fell(now, d.Offset)
	}
	d.Offset += step
	d.ahead = gap - step
	was := d.Apart
	if d.Apart = apart(d.ahead, was); d.Apart > was {
		d.widened(max(before, d.calendar(now)) + 1)
	}
	d.High = d.high(now)
	return changed || d.Apart != was
}

// reset takes the wall clock, whatever lies between.
func (d *dial) reset(now, wall algo.Instant) {
	d.fell(now, max(d.Offset, d.High))
	*d = dial{
		Dial:   Dial{Offset: wall.Sub(now)},
		looked: true, at: now, crests: d.crests, clocks: d.clocks, started: d.started, full: d.full,
	}
	d.High = d.high(now)
}

// clear says that no boundary lies from low to high, nor within a guard of them: a
// spend of just now may arrive so late, and counts where it was settled.
func (d *dial) clear(low, high algo.Instant) bool {
	for _, c := range d.clocks {
		if _, next, _ := c.spec.Period(low.Add(-c.guard)); next <= high.Add(c.guard) {
			return false
		}
	}
	return true
}

// apart rounds up how far two clocks differ, coarsely, since windows come under
// another guard whenever it changes: to a power of two of a millisecond, and nothing
// if they do not differ. It falls only when a quarter is left, so that a clock that
// is read now a little later, now a little earlier, does not move it to and fro.
func apart(d, was time.Duration) time.Duration {
	if d < 0 {
		d = -max(d, -math.MaxInt64)
	}
	if d == 0 {
		return 0
	}
	up := apartLeast
	for up < d && up < apartMost {
		up *= 2
	}
	if up < was && d > was/4 {
		return was
	}
	return up
}

// widened notes that Apart grew. What grew by less before is no more to be known: who
// missed that missed this. Turns have the list that was.
func (d *dial) widened(at algo.Instant) {
	var list []Widening
	for _, w := range d.Widened {
		if w.Apart > d.Apart && w.At < at {
			list = append(list, w)
		}
	}
	d.Widened = append(list, Widening{at, d.Apart})
}

// missed is the most that Apart grew to since a window saw that.
func (d *dial) missed(seen algo.Instant) time.Duration {
	for _, w := range d.Widened {
		if w.At > seen {
			return w.Apart
		}
	}
	return 0
}

// fell notes that at now the offset falls from high. Crests of the last span, and some
// longer, are kept as one each.
func (d *dial) fell(now algo.Instant, high time.Duration) {
	c := &d.crests[0]
	if !c.known || now.Sub(c.began) >= crestSpan {
		d.crests[1] = *c
		*c = crest{known: true, began: now, high: high}
	}
	c.until, c.high = now, max(c.high, high)
}

// high is the highest offset of the last span or longer.
func (d *dial) high(now algo.Instant) time.Duration {
	high := d.Offset
	for _, c := range d.crests {
		if c.known && now.Sub(c.until) <= crestSpan {
			high = max(high, c.high)
		}
	}
	return high
}

// dated gives the calendar time of a spend at an instant of ledger time up to now:
// no earlier than what it was then, nor than what it is taken for now, and not after
// now.
func (d *dial) dated(at, now algo.Instant) algo.Instant {
	offset := d.Offset
	for _, c := range d.crests {
		if c.known && at <= c.until {
			offset = max(offset, c.high)
		}
	}
	return min(at.Add(offset), d.calendar(now))
}

// latest gives the latest calendar time that it may be at an instant to come.
func (d *dial) latest(now, at algo.Instant) algo.Instant {
	if d.ahead > 0 && at > now {
		at = at.Add(at.Sub(now)/slewing + 1)
	}
	return d.calendar(at)
}

// longest gives how long it may take until so much of calendar time has passed.
func (d *dial) longest(wait time.Duration) time.Duration {
	if d.ahead >= 0 || wait <= 0 || wait > math.MaxInt64/2 {
		return wait
	}
	return wait + wait/(slewing-1) + 1 + d.room
}
