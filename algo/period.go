package algo

import (
	"fmt"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
	year = 365 * day

	// longestMonth stands for a month where one number is wanted.
	longestMonth = 31 * day
)

// Period is how long a rule's window is: a length of time or, for fixed windows
// only, one calendar month, which has none.
type Period struct {
	// Length is from 1 ns to MaxPeriod, or 0 if Months is set. For a fixed
	// window it is under a day, or a day, or a week.
	Length time.Duration
	// Months is 0 or 1.
	Months int
}

// Nominal gives the length, for a month that of the longest one.
func (p Period) Nominal() time.Duration {
	if p.Months > 0 {
		return time.Duration(p.Months) * longestMonth
	}
	return p.Length
}

// String gives the period in the largest unit that leaves a whole number.
func (p Period) String() string {
	if p.Months > 0 {
		return fmt.Sprintf("%dmo", p.Months)
	}
	for _, u := range plainUnits {
		if p.Length%u.length == 0 {
			return fmt.Sprintf("%d%s", p.Length/u.length, u.name)
		}
	}
	return fmt.Sprintf("%dns", p.Length)
}

// plainUnits are the units String writes, largest first.
var plainUnits = []struct {
	name   string
	length time.Duration
}{
	{"d", day},
	{"h", time.Hour},
	{"m", time.Minute},
	{"s", time.Second},
	{"ms", time.Millisecond},
	{"us", time.Microsecond},
}

// unit is what a word for a length of time means.
type unit struct {
	length time.Duration
	months int
	// calendar marks units for fixed windows only; plain is what to write
	// instead in other rules.
	calendar bool
	plain    string
}

var units = map[string]unit{}

func init() {
	for length, names := range map[time.Duration][]string{
		time.Nanosecond:  {"ns", "nanosecond", "nanoseconds"},
		time.Microsecond: {"us", "µs", "μs", "microsecond", "microseconds"},
		time.Millisecond: {"ms", "millisecond", "milliseconds"},
		time.Second:      {"s", "sec", "second", "seconds"},
		time.Minute:      {"m", "min", "minute", "minutes"},
		time.Hour:        {"h", "hr", "hour", "hours"},
		day:              {"d", "day", "days"},
		year:             {"y", "year", "years"},
	} {
		for _, name := range names {
			units[name] = unit{length: length}
		}
	}
	for _, name := range []string{"w", "week", "weeks"} {
		units[name] = unit{length: week, calendar: true, plain: "7d"}
	}
	for _, name := range []string{"mo", "month", "months"} {
		units[name] = unit{months: 1, calendar: true, plain: "30d"}
	}
}
