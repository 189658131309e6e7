package oracle

import (
	"errors"
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
	// the first instant included and the last not; with a Zone, by the clock on
	// the wall there, and a time that it shows twice is one.
	Fixed
	// Bucket counts a spend until it has flowed in again, Limit a Window; it
	// holds Burst at the most and is full before the first spend.
	Bucket
	// Pace counts the spends whose gap is not over. The gap of a spend is its cost
	// times Window, divided by Limit; a spend exactly a gap old counts no more. It
	// bears one of them.
	Pace
	// Concurrent counts the calls under way, each from its start to its end, the
	// end not included.
	Concurrent
	// Counter estimates what is spent in the trailing window: all since the last
	// multiple of Window since the Unix epoch, and of what was spent in the Window
	// before that, the part that the trailing window reaches back over.
	Counter
)

// Rule is one limit of a contract, stated plainly. Window is 0 for Concurrent,
// Burst is 0 for all but Bucket. Zone and Calendar are for Fixed only: the name of
// a time zone, or "" for UTC; and "w" or "mo" for weeks from Monday and for months,
// with a Window of 7 and of 31 days. Unit names what it counts, and is empty for
// tokens.
type Rule struct {
	Kind     Kind
	Limit    int64
	Window   time.Duration
	Burst    int64
	Zone     string
	Calendar string
	Unit     string
}

var (
	rateText       = regexp.MustCompile(`^(\d+)/(\d+)(ns|us|ms|s|m|h|d|w|mo)(?: (sliding|fixed|bucket|counter|pace)(?: burst=(\d+))?(?: tz=(\S+))?)?(?: unit=([a-z][a-z0-9_-]{0,31}))?$`)
	concurrentText = regexp.MustCompile(`^(\d+) concurrent$`)
)

type unit struct {
	name string
	size time.Duration
}

// calendarUnits are those of fixed windows only.
var calendarUnits = []unit{{"w", week}, {"mo", month}}

// units from the largest, so that a period is written in as few digits as can be.
var units = []unit{
	{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
	{"ms", time.Millisecond}, {"us", time.Microsecond}, {"ns", 1},
}

// ParseRule reads "200/1s", "200/1s sliding", "200/1d fixed",
// "200/1d fixed tz=Europe/Berlin", "200/1w fixed", "200/1mo fixed",
// "200/1m bucket burst=50" (the burst is 200 if it is left out), "200/1h counter",
// "10/1s pace", each with " unit=tokens" at its end if that is what it counts, or
// "16 concurrent". It is far stricter than the product's own policy, so that a
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
	if m[7] == "call" {
		return Rule{}, fmt.Errorf("oracle: rule %q: calls are what a rule counts without a unit", text)
	}
	r := Rule{Limit: limit, Window: window, Unit: m[7]}
	switch m[4] {
	case "fixed":
		r.Kind = Fixed
	case "pace":
		r.Kind = Pace
	case "bucket":
		r.Kind, r.Burst = Bucket, limit
	case "counter":
		r.Kind = Counter
	}
	if err := r.onCalendar(m[2]+m[3], m[6]); err != nil {
		return Rule{}, fmt.Errorf("oracle: rule %q: %w", text, err)
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

// onCalendar fills in what only fixed windows have.
func (r *Rule) onCalendar(period, zone string) error {
	if period == "1w" || period == "1mo" {
		r.Calendar = period[1:]
	}
	switch {
	case r.Kind != Fixed && (r.Calendar != "" || zone != ""):
		return errors.New("weeks, months and time zones are for fixed windows")
	case r.Calendar == "" && (strings.HasSuffix(period, "w") || strings.HasSuffix(period, "mo")):
		return fmt.Errorf("a period of %s is none; write 1w or 1mo", period)
	case zone == "" || zone == "UTC":
		return nil
	case r.Window > day && r.Calendar == "":
		return fmt.Errorf("no wall clock has a period of %s", period)
	case zone == "Local":
		return errors.New("the zone Local is another one on each machine")
	}
	r.Zone = zone
	_, err := findZone(zone)
	return err
}

func parsePeriod(number, unit string) (time.Duration, error) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, err
	}
	for _, u := range append(calendarUnits, units...) {
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
		text := fmt.Sprintf("%d/%s fixed", r.Limit, period(r.Window))
		if r.Calendar != "" {
			text = fmt.Sprintf("%d/1%s fixed", r.Limit, r.Calendar)
		}
		if r.Zone != "" {
			text += " tz=" + r.Zone
		}
		return text
	case Counter:
		return fmt.Sprintf("%d/%s counter", r.Limit, period(r.Window))
	case Pace:
		return fmt.Sprintf("%d/%s pace", r.Limit, period(r.Window))
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

// Most is the load that the rule bears: its burst for a bucket, one spend for a
// pace, its limit for all others.
func (r Rule) Most() int64 {
	switch r.Kind {
	case Bucket:
		return r.Burst
	case Pace:
		return min(r.Limit, 1)
	}
	return r.Limit
}

// Wider gives the rules with every sliding window, and every gap of a pace, longer
// by guard: what is left of a contract for a fleet whose calls may arrive that much
// later than others.
func Wider(rules []Rule, guard time.Duration) []Rule {
	wide := make([]Rule, len(rules))
	for i, r := range rules {
		switch r.Kind {
		case Sliding:
			r.Window += guard
		case Pace:
			r.Window += guard * time.Duration(r.Limit)
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
