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
	// Class is the class whose part of the line is full, or the one that is unknown.
	Class string
	Wait  time.Duration
}

// Binds names the rule that refuses and whose it is, for people.
func (r *Refusal) Binds() string {
	what := "rule"
	if r.Quota {
		what = "quota"
	}
	if r.Plan != "" {
		return fmt.Sprintf("%s %q of plan %s of %q", what, r.Rule, r.Plan, string(r.Key))
	}
	return fmt.Sprintf("%s %q of %q", what, r.Rule, string(r.Key))
}
