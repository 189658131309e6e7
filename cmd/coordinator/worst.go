package main

import (
	"fmt"
	"math/big"
	"time"

	"ration/algo"
)

// worstCase is the most that a rule lets go, in calls or what else it counts, as the
// clocks of its fleet count: a guard is room for those of an upstream.
type worstCase struct {
	bound bool  // whether there is any
	most  int64 // in any trailing window as long as the rule's period; of slots, in use at once
	burst int64 // at one instant
	text  string
	short string // burst for people
}

// worst works out what a rule lets go at its worst under a guard. What a fixed rule
// does depends on the calendar: of that it looks at the two years from now on.
//
// A window (t-W, t] is half open, so what lies W apart is never in one of them. That
// clocks are trusted to run apart only makes it less, by at most 1 in 5,000.
func worst(r algo.Rule, guard time.Duration, now algo.Instant) worstCase {
	spec := algo.Compile(r, algo.Allowance{Guard: guard})
	once := spec.Max()
	switch {
	case r.Kind == algo.Unlimited:
		return worstCase{text: "no bound"}
	case once == 0:
		return worstCase{bound: true, text: "refuses always"}
	}
	c := worstCase{bound: true, most: once, burst: once, short: fmt.Sprintf("%d at once", once)}
	unit := ""
	if r.Unit != "" {
		unit = " " + r.Unit
	}
	window := algo.Period{Length: r.Span()}
	switch r.Kind {
	case algo.Sliding:
		c.text = fmt.Sprintf("at most %d%s in any %s", c.most, unit, window)
	case algo.Fixed:
		periods := periodsSpent(spec, guard, now)
		c.most = int64(periods) * r.Limit
		c.text = fmt.Sprintf("at most %d%s in any %s%s", c.most, unit, window, sides(periods, r.Limit, guard))
	case algo.Bucket:
		more := portion(r.Limit, r.Span()-1, r.Span())
		c.most = once + more
		c.text = fmt.Sprintf("at most %d%s in any %s: the burst and %d more", c.most, unit, window, more)
		if r.Limit == 0 {
			c.text = fmt.Sprintf("at most %d%s, and no more ever", c.most, unit)
		}
		if once < r.Burst {
			c.short += fmt.Sprintf(" (the guard takes %d)", r.Burst-once)
		}
	case algo.Counter:
		c.most = estimated(r, guard)
		c.text = fmt.Sprintf("an estimate and no hard bound: up to %d%s in any %s", c.most, unit, window)
	case algo.Pace:
		gap := spec.Gap()
		calls := int64((r.Span()-1)/gap) + 1
		c.most = once + portion(r.Limit, r.Span()-1, r.Span(), guard)
		c.text = fmt.Sprintf("at most %d in any %s, %s apart; %d where calls cost more than 1", calls, window, gap, c.most)
		c.short = "1 call at once"
	case algo.Concurrent:
		c.text = fmt.Sprintf("at most %d under way", c.most)
	}
	return c
}

// sides tells where the periods are that a trailing window spends the limits of.
func sides(periods int, limit int64, guard time.Duration) string {
	if periods == 1 {
		return ""
	}
	text := fmt.Sprintf(": %d on each side of a boundary", limit)
	if guard > 0 {
		text += fmt.Sprintf(", %s apart", 2*guard)
	}
	switch {
	case periods == 3:
		text += ", and as many in a shorter period between"
	case periods > 3:
		text += fmt.Sprintf(", and as many in each of %d shorter periods between", periods-2)
	}
	return text
}

// portion gives limit*part/(period + limit*guard), rounded down: how many tokens' worth
// of gaps, each period/limit and a guard, fit in part.
func portion(limit int64, part, period time.Duration, guard ...time.Duration) int64 {
	l := big.NewInt(limit)
	each := big.NewInt(int64(period))
	for _, g := range guard {
		each.Add(each, new(big.Int).Mul(l, big.NewInt(int64(g))))
	}
	n := new(big.Int).Mul(l, big.NewInt(int64(part)))
	return n.Div(n, each).Int64()
}

// estimated is the worst of a counter: all of the limit as late as a period goes, and
// then what is free as soon as the window is about to let go of that. It weighs as much
// of it as the rest of the period, which under a guard begins and ends that much later
// for it; at least 2 ns are left, since the spend came before the boundary and is inside.
func estimated(r algo.Rule, guard time.Duration) int64 {
	left := 2*guard + 2
	if left > r.Span() {
		return r.Limit
	}
	return r.Limit + portion(r.Limit, r.Span()-left, r.Span())
}

// periodsSpent is of how many periods of a fixed rule one trailing window may see all
// that they grant. A spend counts in each period within a guard of it, so the spends of
// two lie on both sides of a boundary, a guard and more before it and a guard after it.
// That may be one boundary, or several where periods between are shorter than the
// window: a February, or a day on which the clock is set forward.
func periodsSpent(spec *algo.Spec, guard time.Duration, now algo.Instant) int {
	apart, window := 2*guard+1, spec.Rule().Span()
	if apart >= window {
		return 1
	}
	most := 2
	for _, near := range unevenly(spec.Rule(), now) {
		var ends []algo.Instant
		for at, end := near.Add(-2*window), near.Add(2*window); at < end; {
			_, next, _ := spec.Period(at)
			ends, at = append(ends, next), next
		}
		for i, first := range ends {
			n, last := 2, first
			for _, b := range ends[i+1:] {
				if b.Sub(first)+apart >= window {
					break
				}
				if b.Sub(last) >= apart {
					n, last = n+1, b
				}
			}
			most = max(most, n)
		}
	}
	return most
}

// unevenly lists instants of the next two years near which periods are not all alike:
// where a month begins, or the zone sets its clock.
func unevenly(r algo.Rule, now algo.Instant) []algo.Instant {
	from := time.Unix(0, int64(now)).UTC()
	until := from.AddDate(2, 0, 0)
	var near []algo.Instant
	if r.Period.Months > 0 {
		for at := from; at.Before(until); at = at.AddDate(0, 1, 0) {
			near = append(near, algo.Instant(at.UnixNano()))
		}
	}
	zone, err := time.LoadLocation(r.Zone)
	if err != nil {
		return near // a rule of such a zone is no rule
	}
	for at := from; ; {
		_, end := at.In(zone).ZoneBounds()
		if end.IsZero() || end.After(until) {
			return near
		}
		near, at = append(near, algo.Instant(end.UnixNano())), end
	}
}
