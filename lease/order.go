package lease

import (
	"cmp"
	"iter"

	"github.com/google/btree"
)

// All who wait stand in one order, the same in every line: who goes before another goes
// before it wherever both stand. From that follows that nobody waits for ever for one who
// waits for him, however many lines they share.
//
// What a waiter needs is kept for it from those behind it alone. So of all waiters the
// first is kept from nothing: what it lacks is held or spent, and that comes back by
// time, at an expiry or by a recall; no other waiter has to move for it. It is granted, or
// its wait ends, and then the next is the first. Two who keep something from each other
// would each be before the other.
//
// The order is: those who were lifted, in the order of that (see lift); then by class;
// within a class by start (see fair), and then by arrival. It changes by arrivals, by
// departures and by lifting, which moves a waiter in all of its lines at once, to behind
// those that were lifted before. And nobody is overtaken for ever within its class: a start
// never changes, and nobody who arrives after that instant starts before it. Higher classes
// overtake a lower one for as long as they come, but for the share that a line keeps for it.
func (w *waiter) before(o *waiter) bool {
	switch {
	case w.lifted != o.lifted:
		return o.lifted == 0 || w.lifted != 0 && w.lifted < o.lifted
	case w.rank != o.rank:
		return w.rank < o.rank
	}
	return cmp.Or(cmp.Compare(w.start, o.start), cmp.Compare(w.order, o.order)) < 0
}

// queue is the waiters of a line in their order.
type queue = btree.BTreeG[*waiter]

const queueDegree = 16

func (l *Ledger) newQueue() *queue {
	return btree.NewWithFreeListG(queueDegree, (*waiter).before, l.nodes)
}

// all gives the waiters in their order. They may leave meanwhile; none may come or change
// its place.
func (n *line) all() iter.Seq[*waiter] { return n.from(nil) }

// from begins behind a waiter, or at the front for nil.
func (n *line) from(last *waiter) iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		if n.waiters == nil {
			return
		}
		var room [64]*waiter
		for most := 4; ; most = min(4*most, len(room)) { // who serves a line hardly ever goes far
			next := room[:0]
			take := func(w *waiter) bool {
				if w != last {
					next = append(next, w)
				}
				return len(next) < most
			}
			if last == nil {
				n.waiters.Ascend(take)
			} else {
				n.waiters.AscendGreaterOrEqual(last, take)
			}
			for _, w := range next {
				if w.stands && !yield(w) {
					return
				}
			}
			if len(next) < most {
				return
			}
			last = next[most-1]
		}
	}
}
