package algo

import (
	"cmp"
	"slices"
	"time"
)

const (
	// exactMarks is how many spends are remembered to the nanosecond.
	exactMarks = 1024
	// gridMarks is into how many parts a span is cut for the dates of further
	// ones. Their tokens are out for up to one part longer, so use is at least
	// 1 - 1/gridMarks. Dates of live marks lie in (now - span, now + one part],
	// where there are at most gridMarks+1 multiples of a part; so there are
	// never more than MaxMarks.
	gridMarks = 1024
	// MaxMarks is the most spends that a window remembers apart.
	MaxMarks = exactMarks + gridMarks + 1
	// keptMarks is how much room a trail keeps however few marks are left.
	keptMarks = 64
)

// trail is a list of marks, by rising date, that forgets from the front.
//
// Merging marks the obvious way, two neighbours into the later, is no good: the
// lump is carried along by each new mark and never ages while traffic goes on,
// and a mark that moves breaks a wait already told. So a recorded mark stays
// where it is, and what is too many is dated up to a grid when it is recorded.
type trail struct {
	marks []Mark
	head  int
}

// live gives the marks not forgotten yet.
func (t *trail) live() []Mark {
	if t == nil {
		return nil
	}
	return t.marks[t.head:]
}

// forget drops from the window's trail, and the trail with its last mark: of a
// million windows that were used once, few have marks.
func (w *Window) forget(now Instant, span time.Duration) (n int64) {
	if w.trail != nil {
		if n = w.trail.drop(now, span); len(w.trail.live()) == 0 {
			w.trail = nil
		}
	}
	return n
}

// mark records in the window's trail.
func (w *Window) mark(n int64, at Instant, grid time.Duration) {
	if w.trail == nil {
		w.trail = new(trail)
	}
	w.trail.record(n, at, grid)
}

// back says that a mark is a span or more before now: a window is half-open.
func (m Mark) back(now Instant, span time.Duration) bool {
	return now.Sub(m.At) >= span
}

// drop forgets what is dated a span or more before now and gives how many tokens
// that was. Where few are left, so is their room.
func (t *trail) drop(now Instant, span time.Duration) int64 {
	var n int64
	for t.head < len(t.marks) && t.marks[t.head].back(now, span) {
		n += t.marks[t.head].N
		t.head++
	}
	if left := t.live(); n > 0 && cap(t.marks) > keptMarks && len(left) < cap(t.marks)/4 {
		t.marks, t.head = append(make([]Mark, 0, 2*len(left)), left...), 0
	}
	return n
}

// record adds n tokens spent at the instant at, dated up to a multiple of grid
// if there are many marks already.
func (t *trail) record(n int64, at Instant, grid time.Duration) {
	i, found := t.find(at)
	if !found && len(t.marks)-t.head >= exactMarks {
		at = at.up(grid)
		i, found = t.find(at)
	}
	if found {
		t.marks[i].N += n
		return
	}
	// Before the list grows, the room of forgotten marks is used, if it is
	// worth moving the others.
	if len(t.marks) == cap(t.marks) && t.head > len(t.marks)/4 {
		t.marks = t.marks[:copy(t.marks, t.live())]
		i -= t.head
		t.head = 0
	}
	t.marks = slices.Insert(t.marks, i, Mark{at, n})
}

// find gives the place in marks of the mark dated at, or where it would go.
func (t *trail) find(at Instant) (int, bool) {
	if n := len(t.marks); n == t.head || t.marks[n-1].At < at {
		return n, false
	}
	i, found := slices.BinarySearchFunc(t.live(), at, func(m Mark, at Instant) int {
		return cmp.Compare(m.At, at)
	})
	return t.head + i, found
}
