package main

import (
	"fmt"
	"time"
	"unsafe"

	"ration/algo"
)

// checkRule works out what a rule means at its worst: under a longer guard a window sees
// less, and is dearer to keep.
func checkRule(r algo.Rule, shortest, longest time.Duration) checkedRule {
	worst, text := worst(r, shortest)
	c := checkedRule{Rule: r.String(), WorstText: text, Memory: memory(r, longest)}
	if r.Kind != algo.Unlimited {
		c.Worst = &worst
	}
	return c
}

// worst gives the most calls, or what else the rule counts, that are let go in any
// window as long as the rule's period. Only that of a bucket, and the gap of a pace,
// depend on the guard.
func worst(r algo.Rule, guard time.Duration) (int64, string) {
	switch {
	case r.Kind == algo.Unlimited:
		return 0, "no bound"
	case r.Limit == 0 && r.Kind != algo.Bucket, r.Kind == algo.Bucket && r.Burst == 0:
		return 0, "refuses always"
	}
	unit := ""
	if r.Unit != "" {
		unit = " " + r.Unit
	}
	switch r.Kind {
	case algo.Fixed:
		return 2 * r.Limit, fmt.Sprintf("at most %d%s in any %s: %d on each side of a boundary", 2*r.Limit, unit, r.Period, r.Limit)
	case algo.Counter:
		most := max(1, 2*r.Limit-1)
		return most, fmt.Sprintf("an estimate and no hard bound: up to %d%s in any %s", most, unit, r.Period)
	case algo.Pace:
		most := 2*r.Limit - 1
		gap := algo.Compile(r, algo.Allowance{Guard: guard}).Gap()
		return most, fmt.Sprintf("one call each %s, at most %d in any %s; %d where calls cost more than 1", gap, r.Limit, r.Period, most)
	case algo.Bucket:
		burst := algo.Compile(r, algo.Allowance{Guard: guard}).Max()
		text := fmt.Sprintf("at most %d%s in any %s: %d at once and %d more", burst+r.Limit, unit, r.Period, burst, r.Limit)
		if burst < r.Burst {
			text += fmt.Sprintf(" (the guard takes %d of the burst)", r.Burst-burst)
		}
		return burst + r.Limit, text
	case algo.Concurrent:
		return r.Limit, fmt.Sprintf("at most %d at once", r.Limit)
	}
	return r.Limit, fmt.Sprintf("at most %d%s in any %s", r.Limit, unit, r.Period)
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
