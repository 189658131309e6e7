package algo

// fixed is the behaviour of a fixed window: everything spent comes back at the
// boundary of the calendar. What is held counts in each period that it could
// still be spent in, so it is simply not forgotten at a boundary.
//
// Window.own is the Instant at which the period began. It never goes down.
type fixed struct {
	calendar
	clocks Allowance
}

func (k fixed) begin(w *Window) { w.own = int64(k.start(w.seen)) }

func (k fixed) advance(w *Window, to Instant) {
	if start := int64(k.start(to)); start > w.own {
		w.own = start
		w.spent = 0
	}
}

func (k fixed) settle(w *Window, n int64, at Instant) {
	if !k.gone(w, at) {
		w.spent += n
	}
}

// gone says that a spend dated at, and settled now, fell into a period that is
// over. The age of a spend was told by a clock that may run fast, and a spend
// taken for one of the last period would be counted nowhere: so it is dated
// later by what the clock may have added.
func (k fixed) gone(w *Window, at Instant) bool {
	age := max(0, w.seen.Sub(at))
	return at.Add(min(age, k.clocks.share(age))) < Instant(w.own)
}

// wait goes from boundary to boundary. Past one, all is free but what will be
// settled at it or later.
func (k fixed) wait(w *Window, n, free int64, due []Due) (Instant, bool) {
	for len(due) > 0 && k.gone(w, due[0].At) {
		free += due[0].N
		due = due[1:]
	}
	if free >= n {
		return w.seen, true
	}
	free = w.spec.max
	for _, d := range due {
		free -= d.N
	}
	boundary := k.next(w.seen)
	for {
		for len(due) > 0 && due[0].At < boundary {
			free += due[0].N
			due = due[1:]
		}
		if boundary == lastInstant {
			return 0, false
		}
		if free >= n {
			return boundary, true
		}
		boundary = k.next(due[0].At)
	}
}

// restore takes the count alone: the period follows from what was seen.
func (k fixed) restore(w *Window, st State) { w.spent = bounded(st.Spent) }
