package lease

// branch is a node of the tree of all patterns of a policy: what may follow
// one beginning of a pattern.
type branch struct {
	literal map[string]*branch
	named   *branch
	// bound is that of the patterns which end here, if any.
	bound Binding
}

// plant gives the branch at which a pattern of these segments ends.
func (b *branch) plant(segments []segment) *branch {
	for _, s := range segments {
		b = b.grow(s)
	}
	return b
}

// grow gives the branch that s leads to.
func (b *branch) grow(s segment) *branch {
	if s.named {
		if b.named == nil {
			b.named = new(branch)
		}
		return b.named
	}
	child := b.literal[s.literal]
	if child == nil {
		if b.literal == nil {
			b.literal = map[string]*branch{}
		}
		child = new(branch)
		b.literal[s.literal] = child
	}
	return child
}

// descend goes one segment down from each branch. The branches reached are
// appended to next, which changes places with here, and the limit and the plan are
// the first that end on one of them. If here was ordered from the most literal to the
// least, so is what comes out: a branch's own descendants stay together, and of
// them the literal one goes first.
func descend(here, next []*branch, segment string) (reached, spare []*branch, bound Binding) {
	if segment == "" {
		return nil, here, Binding{} // not a valid key: a name stands for a segment that is there
	}
	for _, b := range here {
		for _, child := range [...]*branch{b.literal[segment], b.named} {
			if child == nil {
				continue
			}
			if bound.Limit == nil {
				bound.Limit = child.bound.Limit
			}
			if bound.Plan == nil {
				bound.Plan = child.bound.Plan
			}
			next = append(next, child)
		}
	}
	return next, here, bound
}
