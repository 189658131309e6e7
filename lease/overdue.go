package lease

import "ration/algo"

// setOverdue sets the timer that ends the wait: at the deadline, when it is shed, or when
// the holder has been silent for too long.
func (l *Ledger) setOverdue(w *waiter) {
	_, patient := w.patience()
	l.timers.set(timer{at: min(w.ends(), patient, w.arrived.Add(l.config.Silence)), waiter: w})
}

// ends is when the wait ends: at the deadline, or a little before it in a pause that is not
// known to be over by then.
func (w *waiter) ends() algo.Instant {
	if w.parked == nil {
		return w.deadline
	}
	if p := w.parked.paused(); p != nil && p.Until != 0 && p.Until < w.deadline {
		return w.deadline
	}
	return max(w.arrived, w.deadline.Add(-min(notice, w.req.Patience/10)))
}

// overdue ends a wait whose deadline has passed, that is shed, or whose holder is silent.
func (l *Ledger) overdue(w *waiter) {
	at, patient := w.patience()
	switch {
	case w.parked != nil && w.parked.paused() != nil && !l.now.Before(w.ends()):
		l.refuse(w, w.parked.refusal(l.now))
	case !l.now.Before(w.deadline):
		l.stats.TimedOut++
		l.refuse(w, Refusal{Reason: ErrTimedOut, Key: w.req.Keys[0]})
	case !l.now.Before(patient):
		l.shed(w, l.lacksNow(w), at)
	case l.now.Sub(w.arrived) >= l.config.Silence:
		l.stats.Silent++
		l.leave(w)
		l.answer(w.ticket, Answer{ID: w.req.ID, Outcome: Waiting, Terms: w.terms()})
	}
}
