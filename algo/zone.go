package algo

import (
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // see loadZone
)

// zoneName is what names of zones are made of.
var zoneName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`)

// loadZone gives the zone of that name in the IANA database, and nil for UTC.
//
// The zone data of the machine is asked first, so that what a government changed
// last month counts as soon as the machine is updated. The data that is built in
// (450 kB) stands in where there is none, as in a container that holds nothing
// but the program: a policy means the same there.
//
// What names no place is refused although the machine may have a file for it:
// "Local" would mean another zone on each machine, and the zones under right/ and
// posix/ are those without these prefixes, the first with leap seconds.
func loadZone(name string) (*time.Location, bool) {
	switch {
	case name == "" || name == "UTC":
		return nil, true
	case !zoneName.MatchString(name) || len(name) > 64,
		name == "Local", name == "localtime", name == "posixrules",
		strings.HasPrefix(name, "posix/"), strings.HasPrefix(name, "right/"):
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// knownZone says that there is data of that zone.
func knownZone(name string) bool {
	_, ok := loadZone(name)
	return ok
}

// A zone sets its clock, the clock on the wall, now and then. Where it is set
// forward, walls are skipped, and a boundary among them is at the instant at
// which they are. Where it is set back, from B to A, the walls from A to B are
// shown twice. An upstream that names its periods by the wall then counts both
// times in one, whichever of them a call falls into; so all of the time that is
// shown twice is one window: the one in which A lies, and where B lies inside a
// period, the rest of that is in it too. That satisfies upstreams that do not know
// of zones as well.
//
// So walls are folded: cell(t) is the boundary on the wall at which the window
// began that t lies in. It never goes down, though the wall does.

// stretch is a time in which a zone does not set its clock, from inclusive. It
// need not be all of that time.
type stretch struct {
	from, to Instant
	offset   time.Duration
}

// stretch gives one that t lies in. Package time ends some where the clock is not
// set: with the last entry of a zone's table, at each new year after that, and a
// day before it in a leap year, of which the last day then seems to lie behind its
// own stretch.
func (c calendar) stretch(t Instant) stretch {
	local := time.Unix(0, int64(t)).In(c.zone)
	from, to := local.ZoneBounds()
	_, seconds := local.Zone()
	s := stretch{firstInstant, lastInstant, time.Duration(seconds) * time.Second}
	if !from.IsZero() {
		s.from = min(t, instantOf(from))
	}
	if !to.IsZero() {
		s.to = instantOf(to)
	}
	if s.to <= t {
		s.to = t.Add(day - t.phase(day, 0))
	}
	return s
}

// inside says that the clock is not set, by less than a day as ever, where it
// matters to walls from low to high.
func (s stretch) inside(low, high Instant) bool { return s.since(low) && s.until(high) }

func (s stretch) since(wall Instant) bool { return wall >= s.from.Add(s.offset).Add(day) }
func (s stretch) until(wall Instant) bool { return wall < s.to.Add(s.offset).Add(-day) }

func (c calendar) startInZone(t Instant) Instant {
	s := c.stretch(t)
	wall := t.Add(s.offset)
	if w := c.floor(wall); s.inside(w, wall) {
		return w.Add(-s.offset)
	}
	return c.first(c.cell(t))
}

func (c calendar) nextInZone(t Instant) Instant {
	w := c.above(c.cell(t))
	for {
		at := c.first(w)
		if at == lastInstant || c.cell(at) >= w {
			return at
		}
		// Here begins a part of what is shown twice.
		s := c.stretch(at)
		_, end, _ := c.setBackAfter(s, at.Add(s.offset))
		if c.floor(end) < end {
			end = c.above(end)
		}
		if end <= w {
			return lastInstant
		}
		w = end
	}
}

func (c calendar) cell(t Instant) Instant {
	s := c.stretch(t)
	wall := t.Add(s.offset)
	w := c.floor(wall)
	if a, b, ok := c.setBackBefore(s, w); ok && w < b {
		w = c.floor(a)
	}
	if a, _, ok := c.setBackAfter(s, wall); ok && wall >= a {
		w = c.floor(a)
	}
	return w
}

// setBackBefore finds where the clock was set back, from b to a, before s and so
// lately that it may matter to a wall in s.
func (c calendar) setBackBefore(s stretch, wall Instant) (a, b Instant, ok bool) {
	for s.from > firstInstant && !s.since(wall) {
		before := c.stretch(s.from - 1)
		if before.offset != s.offset {
			return s.from.Add(s.offset), s.from.Add(before.offset), before.offset > s.offset
		}
		s.from = before.from
	}
	return 0, 0, false
}

// setBackAfter finds where it will be, after s and so soon that it may matter.
func (c calendar) setBackAfter(s stretch, wall Instant) (a, b Instant, ok bool) {
	for s.to < lastInstant && !s.until(wall) {
		after := c.stretch(s.to)
		if after.offset != s.offset {
			return s.to.Add(after.offset), s.to.Add(s.offset), after.offset < s.offset
		}
		s.to = after.to
	}
	return 0, 0, false
}

// first gives the first instant at which the wall shows w or later.
func (c calendar) first(w Instant) Instant {
	if w == firstInstant || w == lastInstant {
		return w
	}
	t := w.Add(-day)
	for {
		s := c.stretch(t)
		if at := max(s.from, w.Add(-s.offset)); at < s.to || s.to == lastInstant {
			return at
		}
		t = s.to
	}
}
