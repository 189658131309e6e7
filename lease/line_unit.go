package lease

import "slices"

// unitLine is what a line has to do with one unit besides calls.
type unitLine struct {
	unit   resource
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
