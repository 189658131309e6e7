package algo

import (
	"cmp"
	"slices"
	"time"
)

// trailing is the behaviour of sliding, concurrent and unlimited rules: each
// token comes back one span after its spend. For a sliding rule that is the
// grown period and the guard, for a concurrent one the guard, and for an
// unlimited one nothing.
//
// A mark at a is back when now >= a + span, so the window that ends at t is
// half-open, (t - span, t].
type trailing struct {
	span time.Duration
	// grid is what marks beyond the exact ones are dated up to multiples of.
	grid time.Duration
}

func newTrailing(span time.Duration) trailing {
	return trailing{span: span, grid: (span + gridMarks - 1) / gridMarks}
}

func (k trailing) begin(*Window) {}

func (k trailing) advance(w *Window, to Instant) {
	switch {
	case w.spent == 0:
	case w.trail != nil:
		w.spent -= w.forget(to, k.span)
	case Mark{At: Instant(w.own)}.back(to, k.span):
		w.spent, w.own = 0, 0
	}
}

// marks gives the marks not forgotten yet. While there is one, it needs no trail:
// its date is the window's own, and its tokens are all that is spent.
func (k trailing) marks(w *Window, room *[1]Mark) []Mark {
	if w.trail != nil || w.spent == 0 {
		return w.trail.live()
	}
	room[0] = Mark{Instant(w.own), w.spent}
	return room[:]
}

func (k trailing) settle(w *Window, n int64, at Instant) {
	if w.seen.Sub(at) >= k.span {
		return
	}
	switch {
	case w.trail != nil:
		w.trail.record(n, at, k.grid)
	case w.spent == 0:
		w.own = int64(at)
	default:
		w.mark(w.spent, Instant(w.own), k.grid)
		w.trail.record(n, at, k.grid)
		w.own = 0
	}
	w.spent += n
}

func (k trailing) beside(w *Window, _ int64) int64 { return w.spent }

// wait walks all that will come back, marks and due together, by rising date,
// until enough has.
func (k trailing) wait(w *Window, n, free int64, due []Due) (Instant, bool) {
	var room [1]Mark
	marks := k.marks(w, &room)
	if len(due) > 0 && len(marks)+len(due) > exactMarks && k.span > 0 {
		marks, due = k.foresee(w, marks, due), nil
	}
	for {
		var next Instant
		switch {
		case len(marks) > 0 && (len(due) == 0 || marks[0].At <= due[0].At):
			next, free, marks = marks[0].At, free+marks[0].N, marks[1:]
		case len(due) > 0:
			next, free, due = due[0].At, free+due[0].N, due[1:]
		default:
			return 0, false
		}
		if free >= n {
			at := next.Add(k.span)
			return at, at < lastInstant
		}
	}
}

// foresee gives the marks there will have been once everything due is settled,
// those that will have come back by then among them. Where there are many, the
// date of a new mark depends on how many are left at that instant.
func (k trailing) foresee(w *Window, marks []Mark, due []Due) []Mark {
	t := trail{marks: slices.Clone(marks)}
	var back []Mark
	for _, d := range due {
		seen := max(d.At, w.seen)
		for _, m := range t.live() {
			if seen.Sub(m.At) < k.span {
				break
			}
			back = append(back, m)
		}
		t.drop(seen, k.span)
		if seen.Sub(d.At) >= k.span {
			back = append(back, Mark(d))
		} else if d.N > 0 {
			t.record(d.N, d.At, k.grid)
		}
	}
	all := append(back, t.live()...)
	slices.SortFunc(all, func(a, b Mark) int { return cmp.Compare(a.At, b.At) })
	return all
}

// restore takes the marks as they are, since one that moved would break a wait
// already told, and trusts their sum over Spent.
func (k trailing) restore(w *Window, st State) {
	var marks []Mark
	for _, m := range st.Marks {
		if m.N > 0 {
			marks = append(marks, m)
			w.spent = bounded(w.spent + min(m.N, unlimited))
		}
	}
	if len(marks) == 1 && marks[0].N == w.spent {
		w.own = int64(marks[0].At)
		return
	}
	byDate := func(a, b Mark) int { return cmp.Compare(a.At, b.At) }
	if !slices.IsSortedFunc(marks, byDate) {
		slices.SortFunc(marks, byDate)
	}
	if len(marks) > 0 {
		w.trail = &trail{marks: marks}
	}
}
