package algo

// Since gives what of the window differs from a copy of it: the numbers, and of the
// marks those that the copy lacks or has with another count, and with a count of 0
// those that are no more. The copy is brought up to now; it begins as the marks of a
// State, or with none.
func (w *Window) Since(now Instant, copied []Mark) (changed State, copy []Mark) {
	w.see(now)
	changed = State{Seen: w.seen, Held: w.held, Spent: w.spent, Own: w.recorded()}
	var room [1]Mark
	live := w.trail.live()
	if k, ok := w.spec.kind.(trailing); ok {
		live = k.marks(w, &room)
	}
	changed.Marks = differing(copied, live)
	if len(live) == 0 {
		return changed, nil
	}
	return changed, append(copied[:0], live...)
}

// differing walks two lists of marks by rising date, and gives what makes the second
// of the first.
func differing(old, live []Mark) (marks []Mark) {
	for len(old) > 0 || len(live) > 0 {
		switch {
		case len(live) == 0 || len(old) > 0 && old[0].At < live[0].At:
			marks = append(marks, Mark{At: old[0].At})
			old = old[1:]
		case len(old) == 0 || live[0].At < old[0].At:
			marks = append(marks, live[0])
			live = live[1:]
		default:
			if old[0] != live[0] {
				marks = append(marks, live[0])
			}
			old, live = old[1:], live[1:]
		}
	}
	return marks
}

// Change makes the state what it was changed to, as Since says.
func (st *State) Change(to State) {
	marks := st.Marks
	*st = to
	st.Marks = nil
	changed := to.Marks
	for len(marks) > 0 || len(changed) > 0 {
		switch {
		case len(changed) == 0 || len(marks) > 0 && marks[0].At < changed[0].At:
			st.Marks = append(st.Marks, marks[0])
			marks = marks[1:]
			continue
		case len(marks) > 0 && marks[0].At == changed[0].At:
			marks = marks[1:]
		}
		if changed[0].N != 0 {
			st.Marks = append(st.Marks, changed[0])
		}
		changed = changed[1:]
	}
}
