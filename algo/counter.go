package algo

import (
	"math/bits"
	"time"
)

// counter is the behaviour of a sliding counter: periods start at multiples of
// their length since the Unix epoch, and what counts at an instant is what this
// period counted and, of what the one before did, the part that would still be in
// the trailing window if it had been spent evenly. That is prev*(1-progress)+curr,
// rounded up.
//
// It is an estimate, and so no hard bound on a trailing window: that may see up
// to twice the limit, less one, when the period before spent late what the
// estimate takes for even. It is one against an upstream that estimates alike.
//
// When a spend was settled, not when it happened, is what counts. A token weighs 1
// until the end of the period that it is counted in and less and less in the
// next; so counting it in a later period than it was spent in weighs it as much or
// more, at each instant, and no age, however wrong, can make it less.
//
// Window.own is what the period before counted. What this one did is what is
// spent less the part of that.
type counter struct {
	period time.Duration
}

func (k counter) begin(*Window) {}

func (k counter) advance(w *Window, to Instant) {
	if w.spent == 0 {
		return
	}
	elapsed := to.Sub(w.seen)
	if elapsed >= 2*k.period {
		w.spent, w.own = 0, 0
		return
	}
	curr := w.spent - k.fade(w.own, w.seen)
	switch (w.seen.phase(k.period, 0) + elapsed) / k.period {
	case 0:
	case 1:
		w.own, curr = curr, 0
	default:
		w.own, curr = 0, 0
	}
	w.spent = curr + k.fade(w.own, to)
}

func (k counter) settle(w *Window, n int64, _ Instant) { w.spent += n }

func (k counter) beside(w *Window, _ int64) int64 { return w.spent }

// fade is how much of the n tokens of the period before counts at t, rounded up.
func (k counter) fade(n int64, t Instant) int64 {
	if n == 0 {
		return 0
	}
	part, rest := muldiv(n, int64(k.period-t.phase(k.period, 0)), int64(k.period))
	if rest > 0 {
		part++
	}
	return part
}

// muldiv is a*b/c and what is left over, where none is negative and either a or b
// is at most c.
func muldiv(a, b, c int64) (quo, rest int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(hi, lo, uint64(c))
	return int64(q), int64(r)
}

func (k counter) start(t Instant) Instant { return t.Add(-t.phase(k.period, 0)) }

// before gives when the period before the one that starts at start did. At the
// first instant there is none, and it gives that.
func (k counter) before(start Instant) Instant { return k.start(start.Add(-1)) }

func (k counter) wait(w *Window, n, _ int64, due []Due) (Instant, bool) {
	marks := k.marks(w, len(due))
	for _, d := range due {
		marks = append(marks, Mark{k.start(max(w.seen, d.At)), d.N})
	}
	return k.lighter(w.seen, marks, w.spec.max-n)
}

// marks gives what the periods counted, with room for some more.
func (k counter) marks(w *Window, room int) []Mark {
	start := k.start(w.seen)
	return append(make([]Mark, 0, 2+room),
		Mark{k.before(start), w.own},
		Mark{start, w.spent - k.fade(w.own, w.seen)})
}

// lighter gives the first instant at or after now at which the marks, each of
// which says that a period counts so many in the end, weigh no more than most.
// They are in order and the latest that are over by now weigh less and less,
// those after them in full.
func (k counter) lighter(now Instant, marks []Mark, most int64) (Instant, bool) {
	var full int64
	for _, m := range marks {
		full += m.N
	}
	for start := k.start(now); start < lastInstant; {
		var fading int64
		before := k.before(start)
		for len(marks) > 0 && marks[0].At < start {
			full -= marks[0].N
			if marks[0].At == before {
				fading += marks[0].N
			}
			marks = marks[1:]
		}
		if at, ok := k.faded(max(now, start), start, fading, most-full); ok {
			return at, at < lastInstant
		}
		// When nothing fades, nothing becomes lighter until the next mark does.
		if fading == 0 && len(marks) > 0 {
			start = marks[0].At
		}
		start = start.Add(k.period - start.phase(k.period, 0))
	}
	return 0, false
}

// faded gives the first instant from on, in the period that starts at start, at
// which no more than most is left of n tokens of the period before: the progress
// has to be so large that n*(period-progress) <= most*period.
func (k counter) faded(from, start Instant, n, most int64) (Instant, bool) {
	switch {
	case most < 0:
		return 0, false
	case most >= n:
		return from, true
	}
	left, _ := muldiv(most, int64(k.period), n)
	if left == 0 {
		return 0, false
	}
	return max(from, start.Add(k.period-time.Duration(left))), true
}

// restore reads the counts of periods that a window under a guard kept as marks.
func (k counter) restore(w *Window, st State) {
	if len(st.Marks) == 0 {
		w.own = bounded(st.Own)
		w.spent = max(bounded(st.Spent), k.fade(w.own, w.seen))
		return
	}
	start := k.start(w.seen)
	var curr int64
	for _, m := range st.Marks {
		n := max(0, m.N)
		switch at := k.start(m.At); {
		case at >= start:
			curr = bounded(curr + bounded(n))
		case at == k.before(start):
			w.own = bounded(w.own + bounded(n))
		}
	}
	w.spent = bounded(curr + k.fade(w.own, w.seen))
	if w.spent == 0 {
		w.own = 0
	}
}
