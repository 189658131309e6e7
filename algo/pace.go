package algo

import (
	"math/bits"
	"sort"
	"time"
)

// pace is the behaviour of a rule without a burst: n tokens spent at an instant
// keep everybody, their own holder too, from the next spend for n gaps, where a
// gap is what one token takes to come back, limit in each period, and the guard.
//
// The law has no place for a half: either nobody holds anything and the last spend
// is so long ago that the limit is free, or nothing is free. A take is a run: its
// holder spends it token by token, a gap apart, and until all of it is settled or
// returned nobody else may take, since only its holder knows when the next spend
// may be. What is neither free nor held counts as spent.
//
// The first spend of a run needs no gap of its own: the run was taken when the
// last spend before it was a gap ago, and spends come after their take.
//
// Window.own is the Instant from which the next token may be spent, as far as is
// settled; the first instant there is, if nothing is in the way.
type pace struct {
	limit  int64
	period time.Duration
	guard  time.Duration
}

func newPace(r Rule, a Allowance) pace {
	return pace{limit: r.Limit, period: a.grow(r.Period.Length), guard: a.Guard}
}

// after gives the instant n gaps after t, rounded up once for all n of them, or
// the last instant if it is not before that.
func (k pace) after(t Instant, n int64) Instant {
	if k.limit == 0 {
		return t
	}
	hi, lo := bits.Mul64(uint64(n), uint64(k.period))
	lo, carry := bits.Add64(lo, uint64(k.limit-1), 0)
	hi += carry
	if hi >= uint64(k.limit) {
		return lastInstant
	}
	spaced, _ := bits.Div64(hi, lo, uint64(k.limit))
	hi, lo = bits.Mul64(uint64(n), uint64(k.guard))
	lo, carry = bits.Add64(lo, spaced, 0)
	if hi+carry > 0 || lo > uint64(lastInstant) {
		return lastInstant
	}
	return t.Add(time.Duration(lo))
}

// clear says that nothing spent is in the way at an instant. At the end of time
// something always is.
func (k pace) clear(w *Window, at Instant) bool {
	return at >= Instant(w.own) && Instant(w.own) != lastInstant
}

func (k pace) begin(w *Window) { w.own = int64(firstInstant) }

func (k pace) advance(w *Window, to Instant) {
	if w.held == 0 && k.clear(w, to) {
		w.spent, w.own = 0, int64(firstInstant)
	}
}

func (k pace) beside(w *Window, held int64) int64 {
	switch {
	case held == 0 && k.clear(w, w.seen):
		return 0
	case !w.spec.bound():
		return 1 // for the gap, which is in nobody's way
	}
	return max(0, w.spec.max-held)
}

func (k pace) settle(w *Window, n int64, at Instant) {
	w.own = max(w.own, int64(k.after(at, n)))
	w.spent = k.beside(w, w.held)
}

// charge adds n gaps to those there are, up to limit gaps from now on.
func (k pace) charge(w *Window, n int64, at Instant) int64 {
	from, most := max(at, Instant(w.own)), k.after(w.seen, k.limit)
	n = int64(sort.Search(int(n), func(i int) bool { return k.after(from, int64(i)+1) > most }))
	if n > 0 {
		w.own = int64(k.after(from, n))
		w.spent = k.beside(w, w.held)
	}
	return n
}

// wait goes to the last settlement due, before which something is held, and to the
// end of all gaps.
func (k pace) wait(w *Window, _, _ int64, due []Due) (Instant, bool) {
	at, ready := w.seen, Instant(w.own)
	for _, d := range due {
		if d.N > 0 {
			at, ready = max(at, d.At), max(ready, k.after(d.At, d.N))
		}
	}
	at = max(at, ready)
	return at, at < lastInstant
}

// slow lets what is in the way be so for the gaps of a slower rule, at least for the last
// of them.
func (k pace) slow(w *Window, was pace) {
	longer := k.after(0, 1).Sub(was.after(0, 1))
	if longer > 0 && was.limit > 0 && Instant(w.own) != firstInstant {
		w.own = int64(Instant(w.own).Add(longer))
		w.spent = k.beside(w, w.held)
	}
}

func (k pace) restore(w *Window, st State) {
	w.own = st.Own
	w.spent = k.beside(w, w.held)
}
