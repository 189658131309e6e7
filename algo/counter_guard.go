package algo

import "time"

// guardedCounter is a counter under a guard g. A spend at s may be counted
// upstream as if it were at any instant from s-g to s+g, and so may a call that is
// asked for at t. What a spend weighs goes up with its instant and down with that
// at which it is weighed. So spends are counted in the period that their
// settlement and g later lies in, and weighed as at g earlier than now: no
// upstream that estimates in the same periods weighs them more.
//
// The trail has what each period counts, dated at its start, from the one before
// the period of now-g on; Window.own is the sum of that.
type guardedCounter struct {
	counter
	guard time.Duration
	// grid is up to multiples of what instants are dated that a guard of very
	// many periods reaches, so that marks are few.
	grid time.Duration
}

func newCounter(r Rule, a Allowance) behaviour {
	k := counter{r.Period.Length}
	if a.Guard == 0 {
		return k
	}
	return guardedCounter{k, a.Guard, farGrid(a.Guard, k.period)}
}

// counted gives the start of the period that a settlement at t counts in.
func (k guardedCounter) counted(t Instant) Instant {
	return k.start(t.Add(k.guard).up(k.grid))
}

func (k guardedCounter) advance(w *Window, to Instant) {
	if w.spent == 0 {
		return
	}
	t := to.Add(-k.guard)
	w.own -= w.forget(k.before(k.start(t)), 1)
	w.spent = k.weigh(w, t)
}

// weigh gives what the marks weigh at t, which lies in the period after that of
// the first of them or before.
func (k guardedCounter) weigh(w *Window, t Instant) int64 {
	marks := w.trail.live()
	if len(marks) == 0 || marks[0].At >= k.start(t) {
		return w.own
	}
	return w.own - marks[0].N + k.fade(marks[0].N, t)
}

func (k guardedCounter) settle(w *Window, n int64, _ Instant) {
	w.mark(n, k.counted(w.seen), 1)
	w.own += n
	w.spent += n
}

func (k guardedCounter) wait(w *Window, n, _ int64, due []Due) (Instant, bool) {
	marks := append(make([]Mark, 0, len(w.trail.live())+len(due)), w.trail.live()...)
	for _, d := range due {
		marks = append(marks, Mark{k.counted(max(w.seen, d.At)), d.N})
	}
	at, ok := k.lighter(w.seen.Add(-k.guard), marks, w.spec.max-n)
	at = at.Add(k.guard)
	return max(w.seen, at), ok && at < lastInstant
}

// restore takes the counts of periods, or those of a window from before there was
// a guard.
func (k guardedCounter) restore(w *Window, st State) {
	marks := st.Marks
	if len(marks) == 0 {
		start := k.start(w.seen)
		prev := bounded(st.Own)
		curr := max(0, bounded(st.Spent)-k.fade(prev, w.seen))
		marks = []Mark{{k.before(start), prev}, {start, curr}}
	}
	t := w.seen.Add(-k.guard)
	for _, m := range marks {
		n := min(m.N, bounded(unlimited)-w.own)
		if start := k.start(m.At); n > 0 && start >= k.before(k.start(t)) {
			w.mark(n, start, 1)
			w.own += n
		}
	}
	w.spent = k.weigh(w, t)
}
