package sim

import (
	"time"

	"ration/algo"
	"ration/lease"
)

// face is what a wall clock shows: by how much it is off, and how often it was set.
type face struct {
	off  time.Duration
	sets int
}

// walls are the wall clocks of a site. Either those of the coordinators are seconds apart
// and are set at any time, or that of the store: a step of one that all share, in a total
// outage, is not promised.
//
// Fixed windows go by the wall clock of the leader: to one that stays wrong there is no
// remedy. So where there are fixed rules a coordinator's is wrong only for as long as
// calendar time does not follow it over a boundary: while none lies between true time and
// what it shows, so that calendar time follows at once and is set right before it matters;
// or while one does all the time, so that calendar time stays and guards are wider.
type walls struct {
	site   *site
	store  bool // it is the store's that is set
	most   time.Duration
	fixed  []*algo.Spec
	guard  time.Duration
	period time.Duration // the longest of fixed rules
	shown  time.Duration // by how much the last leader's was off
	apart  bool          // calendar time is not what the leader's shows
	wide   time.Duration // until then what was spent under wider guards may count
}

func newWalls(s *site, p *lease.Policy, c Contract) walls {
	w := s.world
	all := walls{site: s, store: w.rand.IntN(3) == 0, most: 5 * time.Second, guard: c.Guard}
	if c.Scarce {
		all.most = 90 * time.Minute
	}
	for _, limit := range p.Limits {
		for _, r := range limit.Rules {
			if r.Kind == algo.Fixed {
				all.fixed = append(all.fixed, algo.Compile(r, algo.Allowance{}))
				all.period = max(all.period, r.Span())
			}
		}
	}
	s.store.wallAt = w.between(-5*time.Second, 5*time.Second)
	if s.steady || len(all.fixed) > 0 {
		return all
	}
	off := w.between(-3*time.Second, 3*time.Second)
	for _, l := range s.all {
		if l.face.off = off; !all.store {
			l.face.off = w.between(-3*time.Second, 3*time.Second)
		}
	}
	return all
}

// wall is the host's wall clock.
func (l *lessor) wall() algo.Instant {
	if len(l.site.walls.fixed) > 0 { // by which windows begin
		return algo.Instant(l.world.unix()).Add(l.face.off)
	}
	return algo.Instant(l.world.origin).Add(l.elapsed() + l.face.off)
}

// set sets a wall clock: wrong, or right again.
func (s *walls) set(l *lessor) {
	w := s.site.world
	switch number, _ := l.candidate.Known(); {
	case s.store:
		w.count("store's wall clock set")
		s.site.store.wallAt += w.between(-10*time.Second, 10*time.Second)
	case len(s.fixed) == 0:
		s.move(l, l.face.off+w.between(-s.most, s.most))
	case l.face.off != 0:
		s.right(l)
	case number > 0: // who knows of no seat begins by its wall clock
		s.wrong(l)
	}
}

func (s *walls) move(l *lessor, off time.Duration) {
	switch {
	case off > l.face.off:
		s.site.world.count("wall clock set ahead")
	case off < l.face.off:
		s.site.world.count("wall clock set back")
	}
	l.face.off = off
	l.face.sets++
}

// wrong sets a clock wrong for a while.
func (s *walls) wrong(l *lessor) {
	w := s.site.world
	for range 8 {
		off, d := w.between(-s.most, s.most), w.between(50*time.Millisecond, 8*time.Second)
		past, ok := s.bears(off, d)
		if !ok {
			continue
		}
		if past {
			w.count("wall clock set past a boundary")
		} else {
			w.count("wall clock set within a period")
		}
		s.move(l, off)
		sets := l.face.sets
		w.after(d, func() {
			if l.face.sets == sets {
				s.right(l)
			}
		})
		return
	}
}

func (s *walls) right(l *lessor) {
	if len(s.fixed) > 0 && l.face.off != 0 {
		s.site.world.count("wall clock set right")
		s.move(l, 0)
	}
}

// booted sets the clock of a machine that has just been started.
func (l *lessor) booted() { l.site.walls.right(l) }

// bears says whether for so long a boundary lies between true time and a clock that is
// off by so much, or for so long none does.
func (s *walls) bears(off, d time.Duration) (past, ok bool) {
	const step = 50 * time.Millisecond
	now := algo.Instant(s.site.world.unix())
	for x := time.Duration(0); x <= d; x += step {
		some, none := s.between(now.Add(x+min(0, off)), now.Add(x+max(0, off)), s.guard+300*time.Millisecond+step)
		switch {
		case some == none, x > 0 && some != past:
			return past, false
		}
		past = some
	}
	return past, true
}

// between says whether a boundary lies between two instants, or none does; neither where
// one is so near to either that it cannot be told.
func (s *walls) between(low, high algo.Instant, near time.Duration) (some, none bool) {
	none = true
	for _, spec := range s.fixed {
		if _, next, _ := spec.Period(low.Add(-near)); next <= high.Add(near) {
			none = false
		}
		if _, next, _ := spec.Period(low.Add(near)); next < high.Add(-near) {
			some = true
		}
	}
	return some, none
}

// outage sets clocks while no coordinator runs.
func (s *walls) outage() {
	w := s.site.world
	if w.rand.IntN(2) == 0 || !s.store && len(s.fixed) > 0 {
		return
	}
	w.count("wall clock set in a total outage")
	if s.store {
		s.set(s.site.all[0])
		return
	}
	d := w.between(-s.most, s.most)
	for _, l := range s.site.all {
		s.move(l, l.face.off+d)
	}
}

// tookOver compares the clock of a new leader with that of the one before.
func (l *lessor) tookOver() {
	if l.face.off != l.site.walls.shown {
		l.world.count("takeover under another wall clock")
	}
	if l.site.outage {
		l.world.count("takeover after a total outage")
		l.site.outage = false
	}
}

// looked notes how calendar time lies to the wall clock of the leader that steps now.
func (s *walls) looked(l *lessor) {
	s.shown = l.face.off
	was, wider := s.apart, l.ledger.Dial().Apart
	if s.apart = wider > 0; !s.apart {
		return
	}
	if !was {
		l.world.count("calendar time apart from the wall clock")
	}
	s.wide = max(s.wide, l.world.now+2*(wider+s.guard)+s.period)
}
