package worker

import (
	"math"

	"ration/algo"
	"ration/lease"
)

// How many units besides calls are asked for.

// unitsFor are the units that calls of n tokens cost in all, going by those in
// line, or if none is there by the last ones.
func (p *Pool) unitsFor(n int64) lease.Units {
	if p.line.count > 0 {
		var all lease.Units
		for _, u := range p.line.units {
			all = append(all, lease.UnitAmount{Unit: u.Unit, N: rough(float64(u.N) / float64(p.line.cost) * float64(n))})
		}
		return all
	}
	var all lease.Units
	for i := range p.demand.units {
		u := &p.demand.units[i]
		if per := p.demand.per(u); per > 0 {
			all = all.Plus(u.unit, rough(per*float64(n)))
		}
	}
	return all
}

// rough rounds up, to no more than a rule could grant.
func rough(n float64) int64 {
	if n >= float64(algo.MaxLimit) {
		return algo.MaxLimit
	}
	return int64(math.Ceil(n))
}

// wants are the units to ask for: what is needed, and of more what is not at hand
// or coming, of as many units as one request may name.
func wants(need, more, have lease.Units) lease.Units {
	if len(need) == 0 && len(more) == 0 {
		return nil
	}
	want := append(lease.Units(nil), need...)
	for _, u := range more {
		n := u.N - have.Of(u.Unit) - need.Of(u.Unit)
		if n > 0 && (need.Of(u.Unit) > 0 || len(want) < lease.MaxUnits) {
			want = want.Plus(u.Unit, n)
		}
	}
	return want
}

// plus gives u with the units of o, or without them where sign is -1.
func plus(u, o lease.Units, sign int64) lease.Units {
	for _, a := range o {
		u = u.Plus(a.Unit, sign*a.N)
	}
	return u
}
