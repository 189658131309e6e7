package oracle

import (
	"fmt"
	"math"
	"math/big"
	"time"
)

// Schedule is what a greedy scheduler gets from a contract: a lone one with
// unlimited demand for single calls, which makes each call as soon as every rule
// allows it. Calls are under way for Hold, which only concurrency rules mind, and
// each costs Units besides; where a rule counts a unit, its numbers have to be
// multiples of what a call costs of that.
// Nobody who keeps the contract has made more calls at any instant.
type Schedule struct {
	Rules []Rule
	Hold  time.Duration
	Units map[string]int64
	From  int64 // Unix nanoseconds; where the first call may be made
}

// First is when each of the first n calls is made, in Unix nanoseconds. It
// gives fewer if some rule is 0 and none can be made.
func (s Schedule) First(n int) []int64 {
	return s.times(n, math.MaxInt64)
}

// Until is when each call before the instant is made.
func (s Schedule) Until(end int64) []int64 {
	return s.times(math.MaxInt, end)
}

// Length is the time from the first of n calls to the last.
func (s Schedule) Length(n int) time.Duration {
	times := s.First(n)
	if len(times) == 0 {
		return 0
	}
	return time.Duration(times[len(times)-1] - times[0])
}

func (s Schedule) times(n int, end int64) []int64 {
	s.Rules = s.inCalls()
	if len(s.Rules) == 0 && n == math.MaxInt {
		panic("oracle: a contract without rules has no greedy schedule until an instant")
	}
	earliest := make([]func([]int64, int64) int64, len(s.Rules))
	for i, r := range s.Rules {
		if r.Most() == 0 || r.Limit == 0 && r.Kind == Bucket {
			return nil
		}
		if r.Kind == Concurrent && s.Hold <= 0 && n == math.MaxInt && len(s.Rules) == 1 {
			panic(fmt.Sprintf("oracle: %q alone bounds nothing when calls take no time", r))
		}
		earliest[i] = s.earliest(r)
	}
	var times []int64
	for len(times) < n {
		at := s.From
		if len(times) > 0 {
			at = times[len(times)-1]
		}
		// Each rule only ever moves the call later, and a rule that allows it at
		// an instant allows it at every later one: go round until all agree.
		for moved := true; moved; {
			moved = false
			for _, e := range earliest {
				if t := e(times, at); t > at {
					at, moved = t, true
				}
			}
		}
		if at >= end {
			break
		}
		times = append(times, at)
	}
	return times
}

// inCalls gives the rules with those of units as rules of calls, and without those
// of units that the calls do not cost.
func (s Schedule) inCalls() (rules []Rule) {
	for _, r := range s.Rules {
		if r.Unit == "" {
			rules = append(rules, r)
			continue
		}
		n := s.Units[r.Unit]
		if n == 0 {
			continue
		}
		if r.Limit%n != 0 || r.Burst%n != 0 {
			panic(fmt.Sprintf("oracle: %q is no multiple of the %d that a call costs", r, n))
		}
		rules = append(rules, Rule{Kind: r.Kind, Limit: r.Limit / n, Window: r.Window, Burst: r.Burst / n})
	}
	return rules
}

// earliest gives a function that tells the first instant, from at on, at which
// the rule alone allows one more call after those made.
func (s Schedule) earliest(r Rule) func(made []int64, at int64) int64 {
	switch r.Kind {
	case Fixed:
		return fixedEarliest(r)
	case Counter:
		return counterEarliest(r)
	case Bucket:
		return bucketEarliest(r)
	case Pace:
		return nthLast(1, r.Holds(1))
	case Concurrent:
		return nthLast(r.Limit, s.Hold)
	}
	return nthLast(r.Limit, r.Window)
}

// nthLast: the call that came limit calls ago must be past.
func nthLast(limit int64, past time.Duration) func([]int64, int64) int64 {
	return func(made []int64, at int64) int64 {
		if n := int64(len(made)); n >= limit {
			return max(at, made[n-limit]+int64(past))
		}
		return at
	}
}

// fixedEarliest has a count for each window of the calls made as it sees them.
func fixedEarliest(r Rule) func([]int64, int64) int64 {
	counts, seen := map[int64]int64{}, 0
	return func(made []int64, at int64) int64 {
		for ; seen < len(made); seen++ {
			counts[cellOf(r, made[seen])]++
		}
		for counts[cellOf(r, at)] >= r.Limit {
			at = cellEnd(r, at)
		}
		return at
	}
}

// bucketEarliest plays the calls made into a bucket of its own as it sees them.
func bucketEarliest(r Rule) func([]int64, int64) int64 {
	b, seen := newBucket(r), 0
	room := new(big.Int).Mul(big.NewInt(r.Burst-1), b.window) // what may be missing before a call
	return func(made []int64, at int64) int64 {
		for ; seen < len(made); seen++ {
			b.spend(made[seen], 1)
		}
		over := new(big.Int).Sub(b.missing, room)
		if over.Sign() <= 0 {
			return at
		}
		return max(at, b.last+ceilDiv(over, big.NewInt(r.Limit)))
	}
}
