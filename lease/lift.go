package lease

import (
	"math"
	"time"
)

// A line keeps a share of what it grants for lower classes, while they wait. Each grant to
// a class is credit for those below it that wait here, in the measure of shares (see
// regrows), so that one request of 50 tokens is worth 50 of one. When the credit of a class
// is worth its next request, that is lifted: it goes before all who are not. What a class
// is granted in its own turn counts, too, and its credit ends with its waiting: the share
// is the least that it gets, and no claim for later.
//
// Of a class the first is lifted that lacks nothing at other prefixes, or else the one that
// may have all soonest: one that waits for tomorrow elsewhere could not use it.
//
// By lifting nobody is overtaken for ever: it is a share below one of what a line grants,
// and who was lifted stays before those who are lifted later, until it is served.

// liftScan bounds how many waiters of a class are looked at for one to lift.
const liftScan = 64

// earn gives the classes below that of w their share of what w is granted at a.
func (l *Ledger) earn(a *account, w *waiter) {
	if len(a.line.classes) < 2 {
		return
	}
	of, worth := a.classAt(w), l.regrows(a, w)
	if w.lifted == 0 {
		of.credit = max(0, of.credit-worth)
	}
	below := int64(0)
	for _, c := range a.line.classes {
		if c.rank > of.rank && c.standing > 0 {
			below++
		}
	}
	lower := a.contract.lower
	if below == 0 || lower == 0 {
		return
	}
	share := portion(worth, lower, (100-lower)*below)
	for _, c := range a.line.classes {
		if c.rank > of.rank && c.standing > 0 {
			c.credit = min(c.credit+share, math.MaxInt64/4)
			a.line.owes = true
		}
	}
}

// lift lifts at a whoever the credit of his class is worth.
func (l *Ledger) lift(a *account) {
	if !a.line.owes {
		return
	}
	a.line.owes = false
	for _, c := range a.line.classes {
		for c.credit > c.price && c.standing > 0 {
			w := l.liftable(a, c)
			if w == nil {
				break
			}
			worth := l.regrows(a, w)
			if worth > c.credit {
				c.price = worth
				break
			}
			c.credit -= worth
			l.raise(w, c, worth)
		}
	}
}

// liftable is who of a class at a is to be lifted next; nil if all are.
func (l *Ledger) liftable(a *account, c *class) (best *waiter) {
	soon, seen := time.Duration(0), 0
	for w := range a.line.from(&waiter{rank: c.rank, start: math.MinInt64}) {
		if seen++; seen > liftScan || a.classAt(w) != c {
			break
		}
		need, ok := l.needs(w)
		if !ok {
			continue // it is refused when it is served
		}
		lacks, elsewhere := l.lacks(w, need), false
		for _, k := range lacks {
			elsewhere = elsewhere || k.account != a
		}
		if !elsewhere {
			return w
		}
		if d := soonest(l.now, lacks); best == nil || d < soon {
			best, soon = w, d
		}
	}
	return best
}

// raise lifts w, for as much of its class's credit.
func (l *Ledger) raise(w *waiter, c *class, worth time.Duration) {
	for _, a := range w.accounts {
		a.line.waiters.Delete(w)
	}
	l.lifts++
	w.lifted, w.paid, w.payer = l.lifts, worth, c
	for _, a := range w.accounts {
		a.line.waiters.ReplaceOrInsert(w)
		l.stir(a)
	}
	l.stats.Lifted++
}
