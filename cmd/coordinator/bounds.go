package main

import (
	"fmt"
	"time"
	"unsafe"

	"ration/algo"
)

// checkRule works out what a rule means at its worst: under a longer guard a window sees
// less, and is dearer to keep.
func checkRule(r algo.Rule, shortest, longest time.Duration, now algo.Instant) checkedRule {
	w := worst(r, shortest, now)
	c := checkedRule{Rule: r.String(), WorstText: w.text, BurstText: w.short, Memory: memory(r, longest)}
	if w.bound {
		c.Worst, c.Burst = &w.most, &w.burst
	}
	return c
}

// memory gives the most bytes that a rule keeps for one key, besides its leases.
// A list that grows may have room for twice what it needs.
func memory(r algo.Rule, guard time.Duration) int64 {
	return int64(unsafe.Sizeof(algo.Window{})) + 2*marks(r, guard)*int64(unsafe.Sizeof(algo.Mark{}))
}

// marks gives how many marks a window has at most. A sliding one has one for each
// spend; one of periods, under a guard, one for each period in reach.
func marks(r algo.Rule, guard time.Duration) int64 {
	switch {
	case r.Kind == algo.Sliding, r.Kind == algo.Concurrent && guard > 0:
		return min(r.Limit, algo.MaxMarks)
	case (r.Kind == algo.Fixed || r.Kind == algo.Counter) && guard > 0:
		return min(r.Limit, algo.MaxMarks, int64(2*(guard/r.Span())+3))
	}
	return 0
}

// bytesText rounds to the nearest kB where that is near enough.
func bytesText(n int64) string {
	if n < 10_000 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%d kB", (n+500)/1000)
}
