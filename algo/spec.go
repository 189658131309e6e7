package algo

import (
	"fmt"
	"time"
)

// unlimited is the limit of a rule without one: so large that it is never met,
// so small that held and spent together stay inside an int64.
const unlimited int64 = 1 << 62

// Spec is a rule with its allowance worked out. It never changes, is safe for
// concurrent use, and is shared by all windows under one limit.
type Spec struct {
	rule Rule
	max  int64
	kind behaviour
}

// behaviour is how one kind of rule lets spent tokens come back. It has no state
// of its own; what a kind remembers is in the window.
type behaviour interface {
	// begin readies a window that is new at w.seen.
	begin(w *Window)
	// advance gives back what comes back in (w.seen, to].
	advance(w *Window, to Instant)
	// settle records that n held tokens, which are held no more, were spent at
	// that instant, at or before w.seen.
	settle(w *Window, n int64, at Instant)
	// beside gives what counts as spent at w.seen beside so many that are held.
	beside(w *Window, held int64) int64
	// wait gives the first instant at or after w.seen at which n are free, where
	// free is what is free now and due tells of all that is held. There is none
	// if it is not ok.
	wait(w *Window, n, free int64, due []Due) (at Instant, ok bool)
	// restore takes over from a state all but what is seen and held, mending what
	// no window ever has.
	restore(w *Window, st State)
}

// Compile works out what the allowance makes of the rule. It panics if a number
// is out of its range; [ParseRule] gives no such rule.
func Compile(r Rule, a Allowance) *Spec {
	if fault := r.fault(); fault != "" {
		panic(fmt.Sprintf("algo: compile of rule %q: %s", r, fault))
	}
	if a.Guard < 0 || a.Guard > MaxPeriod {
		panic(fmt.Sprintf("algo: compile with a guard of %v, not from 0 to %v", a.Guard, MaxPeriod))
	}
	if a.PPM < 0 || a.PPM > million {
		panic(fmt.Sprintf("algo: compile with clocks %d ppm apart, not from 0 to %d", a.PPM, million))
	}
	s := &Spec{rule: r, max: r.Limit}
	switch r.Kind {
	case Sliding:
		s.kind = newTrailing(a.grow(r.Period.Length) + a.Guard)
	case Fixed:
		s.kind = newFixed(r, a)
	case Bucket:
		s.max = r.burst(a.Guard)
		s.kind = bucket{limit: r.Limit, period: a.grow(r.Period.Length)}
	case Counter:
		s.kind = newCounter(r, a)
	case Pace:
		s.kind = newPace(r, a)
	case Concurrent:
		s.kind = newTrailing(a.Guard)
	case Unlimited:
		s.max = unlimited
		s.kind = newTrailing(0)
	}
	return s
}

// Rule gives the rule as it was written.
func (s *Spec) Rule() Rule { return s.rule }

// Max is the most that one take could ever be granted: the limit, or a bucket's
// burst less what flows in during one guard. It is 0 where nothing ever is, which
// for a limit above 0 [Rule.Starved] tells of. For an unlimited rule it is 1<<62.
func (s *Spec) Max() int64 { return s.max }

// Gap is how long after the spend of one token of a pace rule the next may be
// spent, rounded up, with the allowance in it. It is 0 for every other kind, where the
// limit is 0, and of a spec that is unbound.
func (s *Spec) Gap() time.Duration {
	if k, ok := s.kind.(pace); ok && k.limit > 0 && s.bound() {
		return k.after(0, 1).Sub(0)
	}
	return 0
}

// Period tells of the period of a fixed rule that t lies in: when it began, and when
// the next one begins. Other rules have none, and are not ok.
func (s *Spec) Period(t Instant) (began, next Instant, ok bool) {
	k, ok := s.kind.(fixed)
	if !ok {
		return 0, 0, false
	}
	return k.start(t), k.next(t), true
}

// Window gives a window in which everything is free.
func (s *Spec) Window(now Instant) Window {
	w := Window{spec: s, seen: now}
	s.kind.begin(&w)
	return w
}

// Due tells when held tokens will be settled as spent: N of them at the instant
// At, dated At.
type Due struct {
	At Instant
	N  int64
}

// until is how long from now to at; nothing if at is not after the latest
// instant seen, since then it works already.
func until(now, seen, at Instant) time.Duration {
	if at <= seen {
		return 0
	}
	return at.Sub(now)
}
