package algo

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Lasts is for how long, at most, a window remembers anything after the last thing
// that happened to it. It is cut to the longest Duration.
func (s *Spec) Lasts() time.Duration {
	switch k := s.kind.(type) {
	case trailing:
		return sum(k.span, k.grid)
	case fixed:
		return sum(s.rule.Span(), s.rule.Span(), k.clocks.Guard, k.clocks.Guard, k.grid)
	case counter:
		return sum(k.period, k.period)
	case guardedCounter:
		return sum(k.period, k.period, k.guard, k.guard, k.grid)
	case bucket:
		return times(k.period, s.rule.Burst, k.limit)
	case pace:
		return times(k.after(0, 1).Sub(0), k.limit, 1)
	default:
		panic(fmt.Sprintf("algo: a spec of kind %T", k))
	}
}

// Full gives a window of which everything is spent at the instant until, before or after
// now, and held until then: nothing is known of it but that.
func (s *Spec) Full(now, until Instant) Window {
	var w Window
	if k, ok := s.kind.(trailing); ok {
		w = s.Window(min(now, until))
		k.restore(&w, State{Marks: []Mark{{until, s.max}}})
	} else {
		w = s.Window(until) // which sees nothing earlier any more
		w.Take(until, s.max)
		w.Settle(until, s.max, until)
	}
	w.see(now)
	return w
}

// Within is the most that a fresh window grants within d.
func (s *Spec) Within(d time.Duration) int64 {
	switch span := s.rule.Span(); {
	case s.max == 0 || s.rule.Kind == Concurrent || s.rule.Kind == Unlimited:
		return s.max
	case s.rule.Kind == Bucket:
		return min(unlimited, s.rule.Burst+min(s.rule.flow(d), MaxLimit))
	case int64(d/span) > MaxLimit/s.rule.Limit:
		return unlimited
	default:
		return s.rule.Limit * (int64(d/span) + 2) // a calendar may begin anew in between
	}
}

func sum(parts ...time.Duration) (all time.Duration) {
	for _, d := range parts {
		if all += d; all < 0 {
			return math.MaxInt64
		}
	}
	return all
}

// times is d*n/of, rounded up; of 0 is for ever.
func times(d time.Duration, n, of int64) time.Duration {
	hi, lo := bits.Mul64(uint64(d), uint64(n))
	if of == 0 || hi >= uint64(of) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(of))
	if q >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(q) + 1
}
