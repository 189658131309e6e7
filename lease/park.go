package lease

import "time"

// notice is how long before its deadline somebody is told that it waits for a pause: no
// more than a tenth of its patience.
const notice = 100 * time.Millisecond

// parked is who waits for the end of a pause, first come first.
type parked struct {
	first, last *waiter
	n           int
}

func (p *parked) enter(w *waiter) {
	if w.ahead = p.last; w.ahead == nil {
		p.first = w
	} else {
		w.ahead.behind = w
	}
	p.last = w
	p.n++
}

func (p *parked) remove(w *waiter) {
	if w.ahead == nil {
		p.first = w.behind
	} else {
		w.ahead.behind = w.behind
	}
	if w.behind == nil {
		p.last = w.ahead
	} else {
		w.behind.ahead = w.ahead
	}
	w.ahead, w.behind = nil, nil
	p.n--
}

// hold lets a request wait for the end of a pause, if that can help.
func (l *Ledger) hold(w *waiter, a *account) {
	switch left := w.deadline.Sub(l.now); {
	case w.req.Patience <= 0, left <= 0, a.paused().Until != 0 && a.paused().left(l.now) > left:
		l.refuse(w, a.refusal(l.now))
		return
	case a.acts.parked.n >= l.config.Line: // whatever the line says: they go on in one turn
		l.refuse(w, Refusal{Reason: ErrLineFull, Key: a.key, Pause: a.paused()})
		return
	}
	if refusal, crowded := l.crowded(w); crowded {
		l.refuse(w, refusal)
		return
	}
	l.stats.Parked++
	l.enter(w)
	w.parked = a
	a.acts.parked.enter(w)
	l.setOverdue(w)
}

// repark looks again at a request that waits for a pause, of which a newer copy came.
func (l *Ledger) repark(w *waiter) {
	if p := w.parked.paused(); p != nil && p.Until != 0 && p.left(l.now) > w.deadline.Sub(l.now) {
		l.refuse(w, w.parked.refusal(l.now))
		return
	}
	l.setOverdue(w)
}

// pauseNew lets those wait for the pauses that are new who stood in a line for what they
// pause, and recalls what is held of it. It looks at who waits and at what is held once,
// however many pauses there are: a new leader may have found them all.
func (l *Ledger) pauseNew() {
	if len(l.newPauses) == 0 {
		return
	}
	f := fresh{}
	for i, a := range l.newPauses {
		if l.newPauses[i] = nil; a.paused() != nil { // else resumed at once
			f[a.key] = a
		}
	}
	l.newPauses = l.newPauses[:0]
	if len(f) == 0 {
		return
	}
	for _, w := range l.waitersBelow(f) {
		l.leave(w)
		w.places, w.lifted, w.paid, w.payer, w.claim = nil, 0, 0, nil, claim{} // its class has its credit back
		l.hold(w, f.binds(w.req.Keys))
	}
	for _, le := range l.leasesBelow(f) {
		l.recallPaused(le)
	}
}

// release lets those go on who waited for pauses that are over, at the end of each line.
func (l *Ledger) release() {
	for len(l.resumed) > 0 {
		a := l.resumed[0]
		l.resumed = l.resumed[1:]
		for a.paused() == nil && a.acts != nil && a.acts.parked.n > 0 {
			w := a.acts.parked.first
			l.leave(w)
			l.orders++
			w.order, w.stood = l.orders, l.now
			w.accounts = l.match(w.accounts[:0], w.req.Keys)
			l.admit(w) // it may be refused what it was not then: others have come
		}
	}
	l.resumed = nil
}
