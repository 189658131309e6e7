package oracle

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Kind says how a rule counts.
type Kind uint8

const (
	// Sliding counts every trailing window (t-Window, t], half-open: a spend
	// exactly Window old counts no more.
	Sliding Kind = iota
	// Fixed counts from one multiple of Window since the Unix epoch to the next,
	// the first instant included and the last not.
	Fixed
	// Bucket counts a spend until it has flowed in again, Limit a Window; it
	// holds Burst at the most and is full before the first spend.
	Bucket
	// Concurrent counts the calls under way, each from its start to its end, the
	// end not included.
	Concurrent
)

// Rule is one limit of a contract, stated plainly. Window is 0 for Concurrent,
// Burst is 0 for all but Bucket. Unit names what it counts, and is empty for
// tokens.
type Rule struct {
	Kind   Kind
	Limit  int64
	Window time.Duration
	Burst  int64
	Unit   string
}

var (
	rateText       = regexp.MustCompile(`^(\d+)/(\d+)(ns|us|ms|s|m|h|d)(?: (sliding|fixed|bucket)(?: burst=(\d+))?)?(?: unit=([a-z][a-z0-9_-]{0,31}))?$`)
	concurrentText = regexp.MustCompile(`^(\d+) concurrent$`)
)

// units from the largest, so that a period is written in as few digits as can be.
var units = []struct {
	name string
	size time.Duration
}{
	{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
	{"ms", time.Millisecond}, {"us", time.Microsecond}, {"ns", 1},
}

// ParseRule reads "200/1s", "200/1s sliding", "200/1d fixed",
// "200/1m bucket burst=50" (the burst is 200 if it is left out), each with
// " unit=tokens" at its end if that is what it counts, or "16 concurrent". It is far stricter than the product's own policy, so that a
// contract cannot be misread.
func ParseRule(text string) (Rule, error) {
	if m := concurrentText.FindStringSubmatch(text); m != nil {
		limit, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return Rule{}, fmt.Errorf("oracle: rule %q: %w", text, err)
		}
		return Rule{Kind: Concurrent, Limit: limit}, nil
	}
	m := rateText.FindStringSubmatch(text)
	if m == nil {
		return Rule{}, fmt.Errorf("oracle: rule %q is neither like 12/3s nor like 4 concurrent", text)
	}
	limit, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return Rule{}, fmt.Errorf("oracle: rule %q: %w", text, err)
	}
	window, err := parsePeriod(m[2], m[3])
	if err != nil {
		return Rule{}, fmt.Errorf("oracle: rule %q: %w", text, err)
	}
	if m[6] == "call" {
		return Rule{}, fmt.Errorf("oracle: rule %q: calls are what a rule counts without a unit", text)
	}
	r := Rule{Limit: limit, Window: window, Unit: m[6]}
	switch m[4] {
	case "fixed":
		r.Kind = Fixed
	case "bucket":
		r.Kind, r.Burst = Bucket, limit
	}
	if m[5] == "" {
		return r, nil
	}
	if r.Kind != Bucket {
		return Rule{}, fmt.Errorf("oracle: rule %q: only a bucket has a burst", text)
	}
	if r.Burst, err = strconv.ParseInt(m[5], 10, 64); err != nil {
		return Rule{}, fmt.Errorf("oracle: rule %q: %w", text, err)
	}
	return r, nil
}

func parsePeriod(number, unit string) (time.Duration, error) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, err
	}
	for _, u := range units {
		if u.name != unit {
			continue
		}
		if n == 0 || n > math.MaxInt64/int64(u.size) {
			return 0, fmt.Errorf("a period of %s%s is out of range", number, unit)
		}
		return time.Duration(n) * u.size, nil
	}
	return 0, fmt.Errorf("unit %q is unknown", unit)
}

// ParseRules reads rules separated by commas, such as "5/1s, 12/3s".
func ParseRules(text string) ([]Rule, error) {
	var rules []Rule
	for part := range strings.SplitSeq(text, ",") {
		r, err := ParseRule(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// MustRules is ParseRules for rules written in a test; it panics on an error.
func MustRules(text string) []Rule {
	rules, err := ParseRules(text)
	if err != nil {
		panic(err)
	}
	return rules
}

// String is the rule as ParseRule reads it.
func (r Rule) String() string {
	if unit := r.Unit; unit != "" {
		r.Unit = ""
		return r.String() + " unit=" + unit
	}
	switch r.Kind {
	case Concurrent:
		return fmt.Sprintf("%d concurrent", r.Limit)
	case Fixed:
		return fmt.Sprintf("%d/%s fixed", r.Limit, period(r.Window))
	case Bucket:
		return fmt.Sprintf("%d/%s bucket burst=%d", r.Limit, period(r.Window), r.Burst)
	}
	return fmt.Sprintf("%d/%s", r.Limit, period(r.Window))
}

func period(d time.Duration) string {
	for _, u := range units {
		if d%u.size == 0 {
			return fmt.Sprintf("%d%s", d/u.size, u.name)
		}
	}
	return d.String()
}

// Most is the load that the rule bears: its burst for a bucket, its limit for
// all others.
func (r Rule) Most() int64 {
	if r.Kind == Bucket {
		return r.Burst
	}
	return r.Limit
}

// Wider gives the rules with every sliding window longer by guard: what is left
// of a contract for a fleet whose calls may arrive that much later than others.
func Wider(rules []Rule, guard time.Duration) []Rule {
	wide := make([]Rule, len(rules))
	for i, r := range rules {
		if r.Kind == Sliding {
			r.Window += guard
		}
		wide[i] = r
	}
	return wide
}

// Rates gives the rules that count spends and leaves out those that count calls
// under way, which a log without ends cannot judge.
func Rates(rules []Rule) []Rule {
	var rates []Rule
	for _, r := range rules {
		if r.Kind != Concurrent {
			rates = append(rates, r)
		}
	}
	return rates
}
