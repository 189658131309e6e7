package algo

// What follows is for rules that change while windows live: one that comes has a window
// which knows of what happened before, and one that goes leaves a window behind, which
// counts on and binds nobody.

// Unbound gives the same rule without its limit: windows under it count all that happens
// as before, and everything is always free ([Spec.Max] is 1<<62). A rule that binds
// again takes them up by [Window.Adopt].
func (s *Spec) Unbound() *Spec {
	u := *s
	u.max = unlimited
	return &u
}

// bound says that the spec has a limit.
func (s *Spec) bound() bool { return s.max < unlimited }

// Short says whether less than n would be free at now under a spec that differs from the
// window's only in its limit.
func (w *Window) Short(now Instant, n int64, s *Spec) bool {
	w.see(now)
	return n > s.max-w.held-s.kind.beside(&Window{spec: s, seen: w.seen, spent: w.spent, own: w.own}, w.held)
}

// Hold counts n as held that were taken before the window began. What is beyond the
// limit is debt, as by [Window.Charge]: until that is settled and back, or returned,
// nothing is free. It panics if n is negative.
func (w *Window) Hold(now Instant, n int64) {
	w.see(now)
	if n < 0 {
		panic("algo: hold of a negative number")
	}
	w.held = min(unlimited, w.held+n)
	w.spent = w.spec.kind.beside(w, w.held)
}

// Spends gives what the window remembers at now as spent, by rising instant, none of it
// dated before it happened: what it does not date, now. Of a pace that is the last spend
// alone.
func (w *Window) Spends(now Instant) []Mark {
	st := w.State(now)
	n := st.Spent
	switch k := w.spec.kind.(type) {
	case trailing:
		return st.Marks
	case counter:
		n = st.Own + st.Spent - k.fade(st.Own, st.Seen) // all that both periods counted
	case guardedCounter:
		n = st.Own
	case pace:
		n = min(n, 1)
	}
	if n == 0 {
		return nil
	}
	return []Mark{{w.seen, n}}
}

// Added gives a window that begins at now with what was held and spent before. What is
// held may be more than the limit, and so may what is spent where the rule has a date for
// when it comes back; a bucket or a counter begins without debt of what was spent.
func (s *Spec) Added(now Instant, held int64, spends []Mark) Window {
	w := s.Window(now)
	w.Hold(now, held)
	for _, m := range spends {
		n := m.N
		switch s.kind.(type) {
		case bucket, counter, guardedCounter:
			n = min(n, max(0, s.max-w.held-w.spent))
		case pace:
			n = min(n, 1)
		}
		if n > 0 {
			s.kind.settle(&w, n, min(m.At, now))
		}
	}
	return w
}
