package worker

import (
	"slices"
	"time"

	"ration/algo"
	"ration/lease"
)

// overspent is what calls used beyond what they had asked for. It is told under an id of
// its own until that is acknowledged: so what a copy tells is told once, whatever became
// of the leases, of who answered for them, or of this holder's incarnation.
type overspent struct {
	lease.Count
	told bool // ever: its id stands for so much from then on
	said bool // and nobody has said yet that it was not heard
}

// overspend notes what a call used beyond its cost.
func (p *Pool) overspend(now time.Duration, tokens int64, units lease.Units) {
	if tokens == 0 && len(units) == 0 {
		return
	}
	last := len(p.overspends) - 1
	if last < 0 || p.overspends[last].told {
		p.overspends = append(p.overspends, overspent{Count: lease.Count{ID: p.ids(), Keys: p.keys}})
		last++
	}
	o := &p.overspends[last]
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
			o.told, o.said = true, true
			counts = append(counts, o.Count)
		}
	}
	return counts
}

// overspendsTold forgets what a report told that has been answered.
func (p *Pool) overspendsTold(counts []lease.Count) {
	p.overspends = slices.DeleteFunc(p.overspends, func(o overspent) bool { return named(counts, o.ID) })
}

// overspendsUntold says that what a report told was not answered, if it told of any.
func (p *Pool) overspendsUntold(counts []lease.Count) (again bool) {
	for i := range p.overspends {
		if o := &p.overspends[i]; named(counts, o.ID) {
			o.said, again = false, true
		}
	}
	return again
}

// overspendsRestart lets the new incarnation tell what nobody has acknowledged, under
// ids of its own. What was heard and not acknowledged is counted twice, which is safe.
func (p *Pool) overspendsRestart() {
	for i := range p.overspends {
		o := &p.overspends[i]
		o.ID, o.told, o.said = p.ids(), false, false
	}
}

func named(counts []lease.Count, id lease.ID) bool {
	return slices.ContainsFunc(counts, func(c lease.Count) bool { return c.ID == id })
}
