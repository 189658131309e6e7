package lease

import (
	"fmt"
	"slices"
	"strings"

	"ration/algo"
)

// MaxUnits is how many units besides calls one request may name.
const MaxUnits = 8

// UnitAmount is so many of a unit other than calls, such as the tokens of a
// model. Its name is as in a rule: 1 to 32 of a-z, 0-9, "_" and "-", beginning
// with a letter, and not "call".
type UnitAmount struct {
	Unit string
	N    int64
}

// Units are amounts of units besides calls, by rising name, each unit once and
// each amount from 1 to algo.MaxLimit; nil is none. A rule takes of its own unit
// only, so a rule of a unit that is not there takes nothing, and a unit that no
// rule counts is not limited.
type Units []UnitAmount

// UnitsOf gives the units of a map. What is 0 is left out.
func UnitsOf(amounts map[string]int64) Units {
	var units Units
	for unit, n := range amounts {
		if n != 0 {
			units = append(units, UnitAmount{unit, n})
		}
	}
	slices.SortFunc(units, func(a, b UnitAmount) int { return strings.Compare(a.Unit, b.Unit) })
	return units
}

// Of is how many there are of a unit.
func (u Units) Of(unit string) int64 {
	for _, a := range u {
		if a.Unit == unit {
			return a.N
		}
	}
	return 0
}

// Plus gives u with n more of a unit, of which less than 1 may be left: then the
// unit is not there. u may be written over.
func (u Units) Plus(unit string, n int64) Units {
	i, there := slices.BinarySearchFunc(u, unit, func(a UnitAmount, name string) int { return strings.Compare(a.Unit, name) })
	switch {
	case !there && n > 0:
		return slices.Insert(u, i, UnitAmount{unit, n})
	case !there:
		return u
	}
	if u[i].N += n; u[i].N <= 0 {
		return slices.Delete(u, i, i+1)
	}
	return u
}

// Covers says that u has no less of any unit than o.
func (u Units) Covers(o Units) bool {
	for _, a := range o {
		if u.Of(a.Unit) < a.N {
			return false
		}
	}
	return true
}

// String writes them as "1200 tokens, 3 images".
func (u Units) String() string {
	parts := make([]string, len(u))
	for i, a := range u {
		parts[i] = fmt.Sprintf("%d %s", a.N, a.Unit)
	}
	return strings.Join(parts, ", ")
}

// Validate says what is wrong with the units, wrapping ErrBadRequest, or nil.
func (u Units) Validate() error {
	if len(u) > MaxUnits {
		return fmt.Errorf("%w: it names %d units; name at most %d", ErrBadRequest, len(u), MaxUnits)
	}
	for i, a := range u {
		fault := algo.UnitFault(a.Unit)
		switch {
		case fault != "":
			return fmt.Errorf("%w: %s; %s", ErrBadRequest, fault, algo.UnitRemedy)
		case a.Unit == algo.Calls:
			return fmt.Errorf("%w: the unit %q is what tokens count already; leave it out", ErrBadRequest, a.Unit)
		case a.N < 1:
			return fmt.Errorf("%w: %d of unit %q; the least is 1", ErrBadRequest, a.N, a.Unit)
		case a.N > algo.MaxLimit:
			return fmt.Errorf("%w: %d of unit %q; no rule could grant more than %d", ErrBadRequest, a.N, a.Unit, algo.MaxLimit)
		case i > 0 && a.Unit == u[i-1].Unit:
			return fmt.Errorf("%w: the unit %q is named twice; name it once", ErrBadRequest, a.Unit)
		case i > 0 && a.Unit < u[i-1].Unit:
			return fmt.Errorf("%w: the units %q and %q are not in order; order them by name, or use UnitsOf", ErrBadRequest, u[i-1].Unit, a.Unit)
		}
	}
	return nil
}

// UnitPart is what a lease has of one unit besides calls.
type UnitPart struct {
	Unit string
	Part
}

// sumUnits adds a number of each part to u.
func sumUnits(u Units, parts []UnitPart, of func(*Part) int64) Units {
	for i := range parts {
		if n := of(&parts[i].Part); n > 0 {
			u = u.Plus(parts[i].Unit, n)
		}
	}
	return u
}
