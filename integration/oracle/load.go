package oracle

import (
	"cmp"
	"fmt"
	"slices"
)

// LoadAt is how much of the rule the spends weigh at an instant, found by
// looking at every one of them: the tokens in the trailing or fixed window, the
// tokens missing in the bucket rounded up, the spends whose gap is not over, the
// calls under way. Spends after the instant do not count. It takes time in proportion to the spends, for a
// bucket too; the fast way of Worst and Violations is tested against it.
func LoadAt(r Rule, spends []Spend, at int64) int64 {
	switch r.Kind {
	case Bucket:
		return bucketLoadAt(r, spends, at)
	case Counter:
		return counterLoadAt(r, spends, at)
	}
	var load int64
	for _, s := range spends {
		if counts(r, s, at) {
			load += weight(r, s)
		}
	}
	return load
}

func counts(r Rule, s Spend, at int64) bool {
	if s.At > at {
		return false
	}
	switch r.Kind {
	case Sliding:
		return at-s.At < int64(r.Window)
	case Fixed:
		return cellOf(r, s.At) == cellOf(r, at)
	case Pace:
		return heldUntil(r, s) > at
	case Concurrent:
		return s.Done == 0 || s.Done > at
	}
	return false
}

func weight(r Rule, s Spend) int64 {
	switch {
	case r.Kind == Concurrent || r.Kind == Pace:
		return 1
	case r.Unit != "":
		return s.Units[r.Unit]
	}
	return s.Cost
}

// load is what a rule weighs just after all that happens at one instant.
type load struct {
	at   int64
	tops int64 // the load
	next int64 // the weight of what is spent next; 1 after the last
}

// loads gives the load at each instant at which something is spent, in one pass
// over spends, which are in order.
func loads(r Rule, spends []Spend) []load {
	step := stepper(r, spends)
	var all []load
	for i, s := range spends {
		tops := step(i, s)
		if i+1 < len(spends) && spends[i+1].At == s.At {
			continue
		}
		next := int64(1)
		if i+1 < len(spends) {
			next = weight(r, spends[i+1])
		}
		all = append(all, load{s.At, tops, next})
	}
	return all
}

// stepper gives a function to be called with each spend in order; it tells the
// load just after it.
func stepper(r Rule, spends []Spend) func(i int, s Spend) int64 {
	switch r.Kind {
	case Fixed:
		return fixedStepper(r)
	case Bucket:
		return bucketStepper(r)
	case Counter:
		return counterStepper(r)
	case Pace:
		return paceStepper(r, spends)
	case Concurrent:
		return concurrentStepper(spends)
	}
	var sum int64
	oldest := 0
	return func(_ int, s Spend) int64 {
		sum += weight(r, s)
		for ; s.At-spends[oldest].At >= int64(r.Window); oldest++ {
			sum -= weight(r, spends[oldest])
		}
		return sum
	}
}

func fixedStepper(r Rule) func(int, Spend) int64 {
	sums := map[int64]int64{}
	return func(_ int, s Spend) int64 {
		c := cellOf(r, s.At)
		sums[c] += weight(r, s)
		return sums[c]
	}
}

func bucketStepper(r Rule) func(int, Spend) int64 {
	b := newBucket(r)
	return func(_ int, s Spend) int64 {
		b.spend(s.At, weight(r, s))
		return ceilDiv(b.missing, b.window)
	}
}

// concurrentStepper merges the starts with the ends. A call that ends at the
// very instant at which another starts is over by then; one that starts and ends
// at the same instant was never under way.
func concurrentStepper(spends []Spend) func(int, Spend) int64 {
	var ends []int64
	for _, s := range spends {
		if s.Done != 0 {
			ends = append(ends, max(s.At, s.Done))
		}
	}
	slices.SortFunc(ends, cmp.Compare)
	var started, ended int64
	return func(_ int, s Spend) int64 {
		started++
		for ended < int64(len(ends)) && ends[ended] <= s.At {
			ended++
		}
		return started - ended
	}
}

// Eases gives the first instant from at on at which a fixed window or a counter
// bears no more than most, 0 or more, if nothing more is spent. It panics for
// rules of other kinds.
func Eases(r Rule, spends []Spend, at, most int64) int64 {
	switch {
	case r.Kind == Counter:
		return estimateAt(r, spends, at).eases(at, most)
	case r.Kind != Fixed:
		panic(fmt.Sprintf("oracle: when %q eases is not known", r))
	case LoadAt(r, spends, at) <= most:
		return at
	}
	return cellEnd(r, at)
}
