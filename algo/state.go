package algo

// Mark says that N tokens were spent at the instant At, or a little before it.
type Mark struct {
	At Instant
	N  int64
}

// State is all that a window remembers, besides its rule. A window restored from
// it answers as the first would have, bit for bit.
type State struct {
	// Seen is the latest instant the window has seen.
	Seen Instant
	// Held and Spent are counts of tokens.
	Held  int64
	Spent int64
	// Own is what only the kind can read: for a fixed window the guard that its
	// counts were made under, in nanoseconds; for a bucket
	// what it has refilled of the next token, in nanoseconds times limit; for a
	// counter what the period before counted, under a guard the sum of its marks;
	// for a pace the Instant from which it is free again, if nothing is held; and 0
	// for the others.
	Own int64
	// Marks are, by rising instant, the spends that a sliding or concurrent window
	// remembers one by one, together Spent. A fixed window or a counter under a
	// guard has one for each period that something counts in, dated at its start:
	// what counts up to that one, or in it. There are at most 2,049.
	Marks []Mark
}

// State copies out what the window remembers at now.
func (w *Window) State(now Instant) State {
	w.see(now)
	st := State{Seen: w.seen, Held: w.held, Spent: w.spent, Own: w.recorded()}
	if k, ok := w.spec.kind.(trailing); ok {
		var room [1]Mark
		st.Marks = append([]Mark(nil), k.marks(w, &room)...)
	} else {
		st.Marks = append([]Mark(nil), w.trail.live()...)
	}
	return st
}

// recorded is what State.Own says.
func (w *Window) recorded() int64 {
	switch k := w.spec.kind.(type) {
	case trailing:
		return 0
	case fixed:
		return int64(k.clocks.Guard)
	}
	return w.own
}

// Restore gives a window that goes on from st. The rule may have another limit
// or burst, or another allowance, than the one st was under: what is held and
// spent stays, and while that is more than the limit nothing is free. Numbers
// that State never gives are mended: negative counts are taken as 0, too large
// ones as the largest.
func (s *Spec) Restore(st State) Window {
	w := s.Window(st.Seen)
	w.held = min(max(0, st.Held), unlimited)
	s.kind.restore(&w, st)
	return w
}

// Resume is Restore for a window whose guard is another because it was found that
// clocks differ: if a fixed window is under a wider guard than st was, spends of
// periods that st has forgotten may count now. So while one of these is in reach,
// all that is free counts as spent.
func (s *Spec) Resume(st State) Window {
	w := s.Restore(st)
	if k, ok := s.kind.(fixed); ok {
		k.presume(&w, st)
	}
	return w
}

// Adopt lets the window go on under another spec, as [Spec.Resume] would: from what it
// saw last, but from now if the guard of a fixed window is narrower, since until now
// what counts in a period to come does so still. A pace that is slower now is so from its
// last spend on. It does nothing if that is its spec already.
func (w *Window) Adopt(now Instant, s *Spec) {
	if w.spec == s {
		return
	}
	was := w.spec.kind
	if k, ok := s.kind.(fixed); ok && k.clocks.Guard < was.(fixed).clocks.Guard {
		w.see(now)
	}
	*w = s.Resume(w.State(w.seen))
	if k, ok := s.kind.(pace); ok {
		k.slow(w, was.(pace))
	}
}

// bounded takes a count of spent tokens into its range; with the most that can
// be held it still fits an int64.
func bounded(spent int64) int64 { return min(max(0, spent), unlimited-1) }
