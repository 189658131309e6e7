package worker

import "ration/lease"

// line is where local callers wait, first come first served. A caller that
// leaves from the middle costs no more than one that leaves from the front.
type line struct {
	head, tail *Call
	count      int
	cost       int64
	units      lease.Units
}

// insert puts c where its order of asking belongs: at the end for a new call,
// near the front for one whose lease ran out before it was spent.
func (l *line) insert(c *Call) {
	after := l.tail
	for after != nil && after.order > c.order {
		after = after.prev
	}
	c.prev = after
	if after == nil {
		c.next, l.head = l.head, c
	} else {
		c.next, after.next = after.next, c
	}
	if c.next == nil {
		l.tail = c
	} else {
		c.next.prev = c
	}
	l.count++
	l.cost += c.cost
	l.units = plus(l.units, c.Units(), 1)
}

func (l *line) remove(c *Call) {
	if c.prev == nil {
		l.head = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.tail = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	l.count--
	l.cost -= c.cost
	l.units = plus(l.units, c.Units(), -1)
}

// trim refuses the last of the callers who wait, where more do than the policy's line has
// places: the lessor sees their requests, and not those who stand behind them.
func (p *Pool) trim() {
	for p.known && p.terms.Bounded && p.line.count > p.terms.Line {
		p.fail(p.line.tail, &RefusedError{lease.Refusal{Reason: lease.ErrLineFull, Key: p.keys[0], Class: p.cfg.Class}})
	}
}
