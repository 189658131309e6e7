package lease

import "slices"

// shut is of which resources nothing is left at an account, as a line is served in
// order: what is shut to one waiter is shut to all behind it, but for keepers.
type shut struct {
	ledger  *Ledger
	account *account
	passed  []passed
}

// passed is a resource for want of which waiters were passed over, and the first of
// them.
type passed struct {
	of    resource
	first *waiter
}

// to says that w can be granted none of a resource: none is free, or what is free is
// kept for somebody before it.
func (s *shut) to(w *waiter, of resource) bool {
	a := s.account
	if a.keeps(of, w) {
		return false
	}
	if slices.ContainsFunc(s.passed, func(p passed) bool { return p.of == of }) {
		return true
	}
	for i, r := range a.contract.rules {
		if r.of != of {
			continue
		}
		if free, _ := s.ledger.allows(a, i, 1, w); !free {
			s.passed = append(s.passed, passed{of, w})
			return true
		}
	}
	return false
}

// unitTo says that w can be granted none of one of the units that it needs.
func (s *shut) unitTo(w *waiter) bool {
	for _, u := range w.req.Need.Units {
		if s.to(w, resource(u.Unit)) {
			return true
		}
	}
	return false
}
