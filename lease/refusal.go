package lease

import (
	"fmt"
	"time"
)

// Refusal is a normal answer: the reason and, for ErrLimit and ErrTooLate, the
// rule that binds, the prefix it limits, and how long to wait. Waiting exactly
// that long works if nobody else takes. Where there are too many of something,
// Rule has the bound.
type Refusal struct {
	Reason error
	Key    Key
	Rule   string
	// Plan is the plan that has the rule; empty if the limit has it.
	Plan string
	// Quota says that the rule is a quota, fixed for a day or more, and not a rate.
	Quota bool
	// Pause is that of Key which refuses, or nil. With ErrPaused a Wait of 0 says that it has
	// no known end.
	Pause *Pause
	// Class is the class whose part of the line is full, or the one that is unknown.
	Class string
	Wait  time.Duration
}

// Binds names the rule that refuses and whose it is, or the pause and why, for people.
// It is empty where neither does.
func (r *Refusal) Binds() string {
	if r.Pause != nil {
		return fmt.Sprintf("%q is paused %v", string(r.Key), r.Pause)
	}
	if r.Rule == "" {
		return ""
	}
	what := "rule"
	if r.Quota {
		what = "quota"
	}
	if r.Plan != "" {
		return fmt.Sprintf("%s %q of plan %s of %q", what, r.Rule, r.Plan, string(r.Key))
	}
	return fmt.Sprintf("%s %q of %q", what, r.Rule, string(r.Key))
}
