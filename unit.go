package ration

import (
	"maps"
	"slices"
	"strings"

	"ration/lease"
	"ration/worker"
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

// Class says of which class a call is, as one of the policy's lines has it:
//
//	limiter.Acquire(ctx, 1, ration.Class("premium"))
//
// waits before calls of lower classes. Where a plan has a class, no call of its keys is of a
// higher one. Calls of two classes do not share what the process holds. Without it a call
// is of the class of WithClass, or else of the highest that a plan allows, or the
// lowest there is. A class that no line has is refused.
type Class string

// CallOption says more of one call. Units and Class are some.
type CallOption interface{ charge(*charge) }

// charge is what options say.
type charge struct {
	units   Units
	class   string
	classed bool
}

func (c Class) charge(of *charge) { of.class, of.classed = string(c), true }

func (u Units) charge(c *charge) {
	if c.units == nil && len(u) > 0 {
		c.units = Units{}
	}
	maps.Copy(c.units, u)
}

// in gives the limiter and the units that the options say.
func (l *Limiter) in(opts []CallOption) (*worker.Limiter, lease.Units) {
	if len(opts) == 0 {
		return l.inner, nil // before anything is made for them
	}
	c := gathered(opts)
	if c.classed {
		return l.inner.In(c.class), c.amounts(true)
	}
	return l.inner, c.amounts(true)
}

// gathered is what all options say; where two say the same, the later counts.
func gathered(opts []CallOption) (c charge) {
	for _, o := range opts {
		o.charge(&c)
	}
	return c
}

// amounts gives the units. Those of which there are 0 are left out, if bare says so.
func (c *charge) amounts(bare bool) lease.Units {
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
