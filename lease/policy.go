package lease

import (
	"iter"
	"strings"
	"time"

	"ration/algo"
)

// Policy says which keys are limited, and how. ParsePolicy makes one. It never
// changes afterwards and is safe for concurrent use.
type Policy struct {
	// Limits are the limits in the order of the file, Plans the plans by name, and
	// Assigned which keys have which plan, in the order of the file. At least one limit or
	// assignment is there.
	Limits   []Limit
	Plans    []Plan
	Assigned []Assignment
	// Classes are those of all lines, first drained first.
	Classes []string
	// Unknown says what becomes of a key that no limit names.
	Unknown UnknownKeys
	// Mirror says what becomes of grants while the mirror is away.
	Mirror MirrorMode

	root *branch
}

// Limit is the rules for every key that a pattern matches: each such key has
// windows of its own.
type Limit struct {
	Pattern Pattern
	// Rules are at least one: rate and concurrency rules of which no two count
	// the same, or Unlimited alone.
	Rules []algo.Rule
	// Guard is how much later one call may arrive upstream than another, 0 to
	// 24 h.
	Guard time.Duration
	// Waiting is who may wait at each of the keys.
	Waiting WaitingLine
	// Shadow says that the rules count what they would refuse, and refuse nothing. None of
	// them is a concurrency rule then.
	Shadow bool
	// Line is the line of the file that the limit begins on, counted from 1.
	Line int
}

// Plan is rules that are sold under a name: a prefix that has a plan keeps to its rules
// besides those of its limit.
type Plan struct {
	Name  string
	Rules []algo.Rule // as those of a Limit
	// Class is the highest class that requests of its keys may have, one of the policy's;
	// empty for any.
	Class string
	Line  int // as that of a Limit
}

// Assignment gives each prefix that a pattern matches a plan.
type Assignment struct {
	Pattern Pattern
	Plan    *Plan
	Line    int
}

// Binding is what binds a prefix: a limit, a plan, or both. It is comparable.
type Binding struct {
	Limit *Limit // nil for none
	Plan  *Plan  // nil for none
}

// Guard is that of the limit, also for the rules of the plan.
func (b Binding) Guard() time.Duration {
	if b.Limit == nil {
		return 0
	}
	return b.Limit.Guard
}

// UnknownKeys is what becomes of a key none of whose prefixes the policy names.
type UnknownKeys uint8

const (
	// RefuseUnknown refuses such a key with ErrUnknownKey.
	RefuseUnknown UnknownKeys = iota
	// AllowUnknown does not limit it.
	AllowUnknown
)

// String is the word in the policy: refuse or allow.
func (u UnknownKeys) String() string {
	if u == AllowUnknown {
		return "allow"
	}
	return "refuse"
}

// MirrorMode is what a leader does while its mirror is away.
type MirrorMode uint8

const (
	// StrictMirror grants nothing that is not recorded.
	StrictMirror MirrorMode = iota
	// AvailableMirror goes on, and gives up that no window sees more than its limit until
	// the mirror has caught up: what is granted meanwhile is forgotten if the leader dies.
	AvailableMirror
)

// String is the word in the policy: strict or available.
func (m MirrorMode) String() string {
	if m == AvailableMirror {
		return "available"
	}
	return "strict"
}

// Match is a prefix of a key, and what binds it.
type Match struct {
	Prefix Key
	Binding
}

// Match gives what binds a valid key: for each prefix of k that the policy names,
// from short to long, the limit and the plan of the most literal patterns of that
// depth, each by itself, where the first segment that is literal in one and a name
// in the other decides. An empty result means that k is unknown.
func (p *Policy) Match(k Key) []Match {
	if p.root == nil {
		return nil
	}
	var (
		matches []Match
		rooms   [2][8]*branch // so that the branches are allocated only where many patterns overlap
		here    = append(rooms[0][:0], p.root)
		next    = rooms[1][:0]
		start   = 0
	)
	for prefix := range k.Prefixes() {
		var bound Binding
		here, next, bound = descend(here, next[:0], string(prefix[start:]))
		if bound != (Binding{}) {
			if matches == nil {
				deeper := strings.Count(string(k[len(prefix):]), "/")
				matches = make([]Match, 0, min(1+deeper, 8)) // one allocation for all but the deepest keys
			}
			matches = append(matches, Match{prefix, bound})
		}
		if len(here) == 0 {
			break
		}
		start = len(prefix) + 1
	}
	return matches
}

// bounds gives all rules there are, each limit by itself, and each plan under the
// widest guard that may come with it.
func (p *Policy) bounds() iter.Seq[Binding] {
	return func(yield func(Binding) bool) {
		widest := &Limit{}
		for i := range p.Limits {
			widest.Guard = max(widest.Guard, p.Limits[i].Guard)
			if !yield(Binding{Limit: &p.Limits[i]}) {
				return
			}
		}
		for i := range p.Plans {
			if !yield(Binding{widest, &p.Plans[i]}) {
				return
			}
		}
	}
}
