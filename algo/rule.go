package algo

import (
	"fmt"
	"math/bits"
	"time"
)

// Ranges of the numbers in a rule. They leave every sum inside an int64 and
// every product inside 128 bits.
const (
	// MaxLimit is the largest limit and the largest burst.
	MaxLimit int64 = 1_000_000_000_000_000
	// MaxPeriod is the longest period: ten years of 365 days.
	MaxPeriod = 10 * year
)

// Kind is when spent tokens come back.
type Kind uint8

const (
	// Sliding: each one a period after its spend.
	Sliding Kind = iota + 1
	// Fixed: all of them at the clock boundary. Held ones count in the next window
	// too. A trailing window as long as the period may see twice the limit.
	Fixed
	// Bucket: evenly, Limit in each period, as long as any is spent.
	Bucket
	// Counter: those of one period, counted from the epoch, evenly during the
	// next. It is an estimate and no hard bound: a trailing window as long as the
	// period may see twice the limit less one.
	Counter
	// Pace: the whole limit, a gap for each token after the last spend; until then
	// nothing does. A gap is the period divided by the limit.
	Pace
	// Concurrent: at once when the upstream has answered (Return), or a guard
	// after a call was cut off (Settle).
	Concurrent
	// Unlimited: at once.
	Unlimited
)

var kindWords = map[Kind]string{
	Sliding:    "sliding",
	Fixed:      "fixed",
	Bucket:     "bucket",
	Counter:    "counter",
	Pace:       "pace",
	Concurrent: "concurrent",
	Unlimited:  "unlimited",
}

// String gives the word for the kind in rule text.
func (k Kind) String() string {
	if word, ok := kindWords[k]; ok {
		return word
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Rule is one limit as written, with its defaults filled in. Two rules are the
// same only if they are equal.
type Rule struct {
	Kind Kind
	// Limit is from 0 to MaxLimit; with 0 everything is refused. An unlimited
	// rule has 0.
	Limit int64
	// Period is zero unless the rule counts tokens.
	Period Period
	// Burst is the most a bucket holds, from 0 to MaxLimit, and 0 for every
	// other kind. Where it is not written it is the limit.
	Burst int64
	// Zone is the name, in the IANA database, of the time zone on whose clock a
	// fixed window starts. It is empty for UTC and for every other kind.
	Zone string
	// Unit is the name of what the rule counts, and empty for calls: a call that
	// says that it costs so many of the unit takes as many, and any other call
	// takes nothing of the rule. Only a rate rule other than a pace has one.
	Unit string
}

// CountsTokens says that the rule is about a rate: a call takes a token of it
// for good. Concurrency counts slots, and unlimited counts nothing.
func (r Rule) CountsTokens() bool {
	return r.Kind == Sliding || r.Kind == Fixed || r.Kind == Bucket || r.Kind == Counter || r.Kind == Pace
}

// Span is the period of a rate rule, for a calendar month that of the longest
// one, and 0 for other rules.
func (r Rule) Span() time.Duration { return r.Period.Nominal() }

// String gives the rule as [ParseRule] reads it, in its shortest form.
func (r Rule) String() string {
	if r.Unit != "" {
		return r.form() + " unit=" + r.Unit
	}
	return r.form()
}

// form is the rule without its unit.
func (r Rule) form() string {
	switch r.Kind {
	case Sliding:
		return fmt.Sprintf("%d/%s", r.Limit, r.Period)
	case Fixed:
		text := fmt.Sprintf("%d/%s fixed", r.Limit, r.Period)
		if r.Period.Length == week {
			text = fmt.Sprintf("%d/1w fixed", r.Limit)
		}
		if r.Zone != "" {
			text += " tz=" + r.Zone
		}
		return text
	case Counter, Pace:
		return fmt.Sprintf("%d/%s %s", r.Limit, r.Period, r.Kind)
	case Bucket:
		if r.Burst == r.Limit {
			return fmt.Sprintf("%d/%s bucket", r.Limit, r.Period)
		}
		return fmt.Sprintf("%d/%s bucket burst=%d", r.Limit, r.Period, r.Burst)
	case Concurrent:
		return fmt.Sprintf("%d concurrent", r.Limit)
	default:
		return r.Kind.String()
	}
}

// fault tells what is out of range in a rule, or nothing.
func (r Rule) fault() string {
	switch {
	case kindWords[r.Kind] == "":
		return "it has no kind"
	case r.Limit < 0 || r.Limit > MaxLimit:
		return fmt.Sprintf("its limit %d is not from 0 to %d", r.Limit, MaxLimit)
	case r.Burst < 0 || r.Burst > MaxLimit:
		return fmt.Sprintf("its burst %d is not from 0 to %d", r.Burst, MaxLimit)
	case r.Burst != 0 && r.Kind != Bucket:
		return fmt.Sprintf("its burst is %d and it is no bucket", r.Burst)
	case r.Zone != "" && r.Kind != Fixed:
		return fmt.Sprintf("its zone is %.40q and it is not fixed", r.Zone)
	case r.Unit != "" && (!r.CountsTokens() || r.Unit == Calls || UnitFault(r.Unit) != ""):
		return fmt.Sprintf("its unit is %.40q; a rate rule has the name of one other than %s, or none, and any other rule has none", r.Unit, Calls)
	case r.Unit != "" && r.Kind == Pace:
		return fmt.Sprintf("its unit is %.40q and it is a pace, which calls keep", r.Unit)
	case !knownZone(r.Zone):
		return fmt.Sprintf("its zone %.40q is unknown", r.Zone)
	case !r.CountsTokens():
		return ""
	case r.Period.Months != 0:
		if r.Kind != Fixed || r.Period != (Period{Months: 1}) {
			return fmt.Sprintf("its period is %d months and %v; only 1 month, fixed, is allowed", r.Period.Months, r.Period.Length)
		}
	case r.Period.Length <= 0 || r.Period.Length > MaxPeriod:
		return fmt.Sprintf("its period %v is not from 1ns to %v", r.Period.Length, MaxPeriod)
	case r.Kind == Fixed && !fixable(r.Period.Length):
		return fmt.Sprintf("its fixed period %v is neither under a day, nor a day, nor a week", r.Period.Length)
	}
	return ""
}

// fixable says that the calendar has windows of length d.
func fixable(d time.Duration) bool { return d <= day || d == week }

// Starved tells that a rule whose limit is above 0 never grants anything under
// such a guard, from 0 to MaxPeriod, and what to write instead; both are empty
// for any other rule. Only the burst of a bucket can be too small for a guard.
func (r Rule) Starved(guard time.Duration) (problem, remedy string) {
	if r.Kind != Bucket || r.Burst == 0 || r.burst(guard) > 0 {
		return "", ""
	}
	lost := r.flow(guard)
	problem = fmt.Sprintf("a guard of %s takes %d of a burst of %d, and nothing is ever granted", Period{Length: guard}, lost, r.Burst)
	if lost >= MaxLimit {
		return problem, "write a shorter guard"
	}
	return problem, fmt.Sprintf("write burst=%d or more, or a shorter guard", lost+1)
}

// burst is what is left of a bucket's burst under a guard. In any time x the
// upstream may see what is spent in x and one guard: burst + rate*(x + guard). So
// the burst is less by what flows in during one guard, rounded up.
func (r Rule) burst(guard time.Duration) int64 { return max(0, r.Burst-r.flow(guard)) }

// flow is how many tokens flow into a bucket in a time, rounded up, or MaxLimit
// if they are more.
func (r Rule) flow(d time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(r.Limit), uint64(d))
	if hi >= uint64(r.Period.Length) {
		return MaxLimit
	}
	quo, rest := bits.Div64(hi, lo, uint64(r.Period.Length))
	if rest > 0 {
		quo++
	}
	return int64(min(quo, uint64(MaxLimit)))
}
