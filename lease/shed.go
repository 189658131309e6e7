package lease

import (
	"math"

	"ration/algo"
)

// A line may bound the waiting of all its classes together. By number: who comes when as
// many wait is refused, or takes the place of the last of the lowest class, if that is
// below its own. By time: who has waited so long is refused, and so is at once who is known
// to wait longer. As they are served in their order, it is the lower classes that do.

// sheds is the account at which w is refused by such a bound; nil for none.
func (l *Ledger) sheds(w *waiter, lacks []lack) *account {
	wait := soonest(l.now, lacks)
	for _, a := range w.accounts {
		if !lacksAt(lacks, a) {
			continue
		}
		if a.contract.patient > 0 && wait > a.contract.patient {
			return a
		}
		if a.contract.shed > 0 && a.counted() >= a.contract.shed && a.lowest().rank <= a.classAt(w).rank {
			return a
		}
	}
	return nil
}

// lowest is the lowest class of whom somebody waits for something at a. Somebody does.
func (a *account) lowest() *class {
	for i := len(a.line.classes) - 1; ; i-- {
		if c := a.line.classes[i]; c.counts > 0 {
			return c
		}
	}
}

// shedLower lets those leave whose places w has taken.
func (l *Ledger) shedLower(w *waiter) {
	for i, a := range w.accounts {
		for w.places[i].counts && a.contract.shed > 0 && a.counted() > a.contract.shed {
			last := a.lastOf(a.lowest())
			l.shed(last, l.lacksNow(last), a)
		}
	}
}

// counted is how many wait for something at a.
func (a *account) counted() (n int) {
	for _, c := range a.line.classes {
		n += c.counts
	}
	return n
}

// lastOf is the last of a class that waits for something at a. There is one.
func (a *account) lastOf(c *class) (last *waiter) {
	a.line.waiters.Descend(func(w *waiter) bool {
		for i, p := range w.places {
			if w.accounts[i] == a && p.class == c && p.counts {
				last = w
			}
		}
		return last == nil
	})
	return last
}

// patience is until when w may wait, and the account that says so; nil for none.
func (w *waiter) patience() (at *account, until algo.Instant) {
	until = math.MaxInt64
	if w.parked != nil {
		return nil, until // it stands in no line
	}
	for i, a := range w.accounts {
		if most := a.contract.patient; most > 0 && w.places[i].counts && w.stood.Add(most) < until {
			at, until = a, w.stood.Add(most)
		}
	}
	return at, until
}

// lacksNow is what a waiter lacks.
func (l *Ledger) lacksNow(w *waiter) []lack {
	need, _ := l.needs(w)
	return l.lacks(w, need)
}

// shed refuses w for the bound of a.
func (l *Ledger) shed(w *waiter, lacks []lack, a *account) {
	refusal := l.why(lacks, ErrShed)
	refusal.Wait = max(0, refusal.Wait) // it may lack nothing, and not have been looked at since
	refusal.Key, refusal.Class = a.key, a.classAt(w).name
	l.refuse(w, refusal)
}
