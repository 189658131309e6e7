package ration

import (
	"maps"
	"slices"
	"strings"

	"ration/lease"
)

// Units says what a call costs besides its tokens, by the names of the rules'
// units: under 200000/1m unit=tokens,
//
//	limiter.Acquire(ctx, 1, ration.Units{"tokens": 1200})
//
// takes 1 of every rule that counts calls and 1,200 of every rule that counts
// tokens, all at one instant or nothing. A rule whose unit is not named takes
// nothing, and a unit that no rule counts is not limited. Up to 8 units may be
// named: 1 to 32 of a-z, 0-9, "_" and "-", beginning with a letter. A unit of
// which there are 0 need not be named; below 0 is an error, and so is what no rule
// could grant, above 10^15.
type Units map[string]int64

// CallOption says more of what one call costs. Units is one.
type CallOption interface{ charge(*charge) }

// charge is what a call costs besides its tokens.
type charge struct{ units Units }

func (u Units) charge(c *charge) {
	if c.units == nil && len(u) > 0 {
		c.units = Units{}
	}
	maps.Copy(c.units, u)
}

// charged gives the units of all options; where two name one, the later counts.
// Those of which there are 0 are left out, if bare says so.
func charged(opts []CallOption, bare bool) lease.Units {
	if len(opts) == 0 {
		return nil // before anything is made for them
	}
	var c charge
	for _, o := range opts {
		o.charge(&c)
	}
	if bare {
		return lease.UnitsOf(c.units)
	}
	var units lease.Units
	for unit, n := range c.units {
		units = append(units, lease.UnitAmount{Unit: unit, N: n})
	}
	slices.SortFunc(units, func(a, b lease.UnitAmount) int { return strings.Compare(a.Unit, b.Unit) })
	return units
}
