package oracle

import (
	"fmt"
	"time"
)

// Limit is a contract on a key and all keys below it; on everything if Key is
// empty.
type Limit struct {
	Key   string
	Rules []Rule
}

// Violation is an instant at which a rule bore more than it may.
type Violation struct {
	Key  string // of the limit, as given
	Rule Rule
	At   int64 // Unix nanoseconds: the window ends here
	Load int64 // what it bore
}

// String tells the place of the violation so that a log can be searched for it.
func (v Violation) String() string {
	where := ""
	if v.Key != "" {
		where = fmt.Sprintf(" of %q", v.Key)
	}
	return fmt.Sprintf("rule %q%s bore %d at %d (%s)", v.Rule, where, v.Load, v.At,
		time.Unix(0, v.At).UTC().Format("15:04:05.000000000"))
}

// Worst is the heaviest load that the rule ever bore and the first instant at
// which it did; 0, 0 if there are no spends. For a sliding rule it is the worst
// of all trailing windows, since a trailing window is heaviest at a spend. The
// spends may be in any order.
func Worst(r Rule, spends []Spend) (most, at int64) {
	for _, l := range loads(r, ordered(spends)) {
		if l.tops > most {
			most, at = l.tops, l.at
		}
	}
	return most, at
}

// Violations gives every instant at which one of the rules bore more than it
// may, rule by rule, in order of time. All spends count, whatever their keys.
func Violations(spends []Spend, rules []Rule) []Violation {
	spends = ordered(spends)
	var found []Violation
	for _, r := range rules {
		for _, l := range loads(r, spends) {
			if l.tops > r.Most() {
				found = append(found, Violation{Rule: r, At: l.at, Load: l.tops})
			}
		}
	}
	return found
}

// Judge gives the violations of each limit by the spends at or below its key.
func Judge(spends []Spend, limits []Limit) []Violation {
	var found []Violation
	for _, limit := range limits {
		for _, v := range Violations(Under(spends, limit.Key), limit.Rules) {
			v.Key = limit.Key
			found = append(found, v)
		}
	}
	return found
}

// Binds is how often the rule bound.
//
// A rule is full at an instant at which something was spent if it could not
// have borne the next spend as well, at that same instant. For a rate rule Binds
// counts windows: of the windows that follow each other without a gap from the
// first spend on, it is the number of those in which the rule was full at least
// once. So a rule that is full all the time binds once a window, not once a
// spend. A pace is full after each spend. For a concurrency rule it counts how often a start made it full.
func Binds(r Rule, spends []Spend) int {
	spends = ordered(spends)
	binds, last := 0, int64(-1)
	for _, l := range loads(r, spends) {
		if l.tops+l.next <= r.Most() {
			continue
		}
		if r.Kind == Concurrent {
			binds++
			continue
		}
		if window := (l.at - spends[0].At) / int64(r.Window); window != last {
			binds, last = binds+1, window
		}
	}
	return binds
}
