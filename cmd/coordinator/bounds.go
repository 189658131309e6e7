package main

import (
	"fmt"
	"time"
	"unsafe"

	"ration/algo"
)

// maxMarks is how many spends a trailing window remembers at most: 1,024 of
// them to the nanosecond, the others on a grid of 1,024 places.
const maxMarks = 2*1024 + 1

// checkRule works out what a rule means at its worst.
func checkRule(r algo.Rule, guard time.Duration) checkedRule {
	worst, text := worst(r)
	if guard > 0 && (r.Kind == algo.Fixed || r.Kind == algo.Bucket) {
		text += "; the guard does not act here"
	}
	c := checkedRule{Rule: r.String(), WorstText: text, Memory: memory(r, guard)}
	if r.Kind != algo.Unlimited {
		c.Worst = &worst
	}
	return c
}

// worst gives the most that any window as long as the rule's period can see.
func worst(r algo.Rule) (int64, string) {
	switch {
	case r.Kind == algo.Unlimited:
		return 0, "no bound"
	case r.Limit == 0 && r.Kind != algo.Bucket, r.Kind == algo.Bucket && r.Burst == 0:
		return 0, "refuses always"
	}
	switch r.Kind {
	case algo.Fixed:
		return 2 * r.Limit, fmt.Sprintf("at most %d in any %s: %d on each side of a boundary", 2*r.Limit, r.Period, r.Limit)
	case algo.Bucket:
		return r.Burst + r.Limit, fmt.Sprintf("at most %d in any %s: %d at once and %d more", r.Burst+r.Limit, r.Period, r.Burst, r.Limit)
	case algo.Concurrent:
		return r.Limit, fmt.Sprintf("at most %d at once", r.Limit)
	}
	return r.Limit, fmt.Sprintf("at most %d in any %s", r.Limit, r.Period)
}

// memory gives the most bytes that a rule keeps for one key, besides its leases.
// A list that grows may have room for twice what it needs.
func memory(r algo.Rule, guard time.Duration) int64 {
	bytes := int64(unsafe.Sizeof(algo.Window{}))
	if r.Kind == algo.Sliding || r.Kind == algo.Concurrent && guard > 0 {
		bytes += 2 * min(r.Limit, maxMarks) * int64(unsafe.Sizeof(algo.Mark{}))
	}
	return bytes
}

func bytesText(n int64) string {
	if n < 10_000 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%d kB", (n+999)/1000)
}
