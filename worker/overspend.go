package worker

import (
	"slices"
	"time"

	"ration/algo"
	"ration/lease"
)

// overspent is what calls of a lease used beyond what they had asked for. It is told
// until it is acknowledged, also when nothing else of the lease is left.
type overspent struct {
	lease.Count
	said bool
}

// overspend notes what a call used beyond its cost.
func (p *Pool) overspend(now time.Duration, c *Call, tokens int64, units lease.Units) {
	if tokens == 0 && len(units) == 0 {
		return
	}
	i := slices.IndexFunc(p.overspends, func(o overspent) bool { return o.ID == c.lease })
	if i < 0 {
		i = len(p.overspends)
		p.overspends = append(p.overspends, overspent{Count: lease.Count{ID: c.lease, Keys: p.keys}})
	}
	o := &p.overspends[i]
	o.said = false
	o.Over = min(o.Over+tokens, algo.MaxLimit)
	p.books.Overspent += tokens
	for _, u := range units {
		o.OverUnits = o.OverUnits.Plus(u.Unit, min(u.N, algo.MaxLimit-o.OverUnits.Of(u.Unit)))
		p.books.UnitsOverspent += u.N
	}
	p.dueBy(now)
}

// tellOverspends adds to counts what has to be told of overspends.
func (p *Pool) tellOverspends(counts []lease.Count, heartbeat bool) []lease.Count {
	for i := range p.overspends {
		if o := &p.overspends[i]; heartbeat || !o.said {
			o.said = true
			told := o.Count
			told.OverUnits = slices.Clone(o.OverUnits)
			counts = append(counts, told)
		}
	}
	return counts
}

// overspendsTold forgets what a report told that has been answered.
func (p *Pool) overspendsTold(counts []lease.Count) {
	for i := range counts {
		c := &counts[i]
		p.overspends = slices.DeleteFunc(p.overspends, func(o overspent) bool {
			return o.ID == c.ID && c.Over >= o.Over && c.OverUnits.Covers(o.OverUnits)
		})
	}
}

// overspendsUntold says that what a report told was not answered, if it told of any.
func (p *Pool) overspendsUntold(counts []lease.Count) (again bool) {
	for i := range p.overspends {
		o := &p.overspends[i]
		if slices.ContainsFunc(counts, func(c lease.Count) bool { return c.ID == o.ID }) {
			o.said, again = false, true
		}
	}
	return again
}
