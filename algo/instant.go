package algo

import (
	"math"
	"time"
)

// Instant is a moment of ledger time, in nanoseconds since the Unix epoch. Any
// int64 is valid; arithmetic stops at both ends instead of wrapping around.
type Instant int64

const (
	firstInstant Instant = math.MinInt64
	lastInstant  Instant = math.MaxInt64
)

// Add gives the instant d after t, or before it if d is negative.
func (t Instant) Add(d time.Duration) Instant {
	sum := t + Instant(d)
	switch {
	case d > 0 && sum < t:
		return lastInstant
	case d < 0 && sum > t:
		return firstInstant
	}
	return sum
}

// Sub gives the time from u to t.
func (t Instant) Sub(u Instant) time.Duration {
	diff := t - u
	switch {
	case t > u && diff < 0:
		return math.MaxInt64
	case t < u && diff > 0:
		return math.MinInt64
	}
	return time.Duration(diff)
}

// Before says that t comes before u.
func (t Instant) Before(u Instant) bool { return t < u }

// After says that t comes after u.
func (t Instant) After(u Instant) bool { return t > u }

// phase is how far t lies past the last instant that is an offset after a
// multiple of step: from 0 to step-1, also for instants before the epoch.
func (t Instant) phase(step, offset time.Duration) time.Duration {
	p := (time.Duration(t)%step - offset%step) % step
	if p < 0 {
		p += step
	}
	return p
}

// up gives the first multiple of step at or after t.
func (t Instant) up(step time.Duration) Instant {
	if p := t.phase(step, 0); p > 0 {
		return t.Add(step - p)
	}
	return t
}
