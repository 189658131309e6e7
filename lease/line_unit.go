package lease

import (
	"slices"

	"ration/algo"
)

// unitLine is what a line has to do with one unit besides calls.
type unitLine struct {
	unit   resource
	keeper *waiter
	needed int64 // that waiters need
}

// unit finds or makes what the line knows of a unit.
func (n *line) unit(of resource) *unitLine {
	i := slices.IndexFunc(n.units, func(u unitLine) bool { return u.unit == of })
	if i < 0 {
		i = len(n.units)
		n.units = append(n.units, unitLine{unit: of})
	}
	return &n.units[i]
}

// needed is how many of a unit the waiters need.
func (n *line) needed(of resource) int64 {
	for i := range n.units {
		if n.units[i].unit == of {
			return n.units[i].needed
		}
	}
	return 0
}

// keeper is for whom a resource is kept, or nil.
func (n *line) keeper(of resource) *waiter {
	switch of {
	case tokens:
		return n.keepers[0]
	case slots:
		return n.keepers[1]
	}
	for i := range n.units {
		if n.units[i].unit == of {
			return n.units[i].keeper
		}
	}
	return nil
}

// place is where the keeper of a resource stands.
func (n *line) place(of resource) **waiter {
	switch of {
	case tokens:
		return &n.keepers[0]
	case slots:
		return &n.keepers[1]
	}
	return &n.unit(of).keeper
}

// forsake lets w keep nothing any more, and says whether it kept anything.
func (n *line) forsake(w *waiter) (kept bool) {
	for i := range n.keepers {
		if n.keepers[i] == w {
			n.keepers[i], kept = nil, true
		}
	}
	for i := range n.units {
		if n.units[i].keeper == w {
			n.units[i].keeper, kept = nil, true
		}
	}
	return kept
}

// shutUnit says that w, which is not the first in line, cannot be granted one of
// the units it needs at a, and adds that unit to without.
func (a *account) shutUnit(now algo.Instant, w *waiter, without *[]resource) bool {
	for _, u := range w.req.Need.Units {
		of := resource(u.Unit)
		if !a.counts(of) || !a.shut(now, of, w) {
			continue
		}
		if !slices.Contains(*without, of) {
			*without = append(*without, of)
		}
		return true
	}
	return false
}
