package algo

import "time"

// farPeriods is over how many periods a guard may reach before what it reaches
// is told less exactly.
const farPeriods = 256

// fixed is the behaviour of a fixed window: everything spent comes back at the
// boundary of the calendar. What is held counts in each period that it could
// still be spent in, so it is simply not forgotten at a boundary.
//
// Under a guard g, a spend at s may be counted upstream as if it were at any
// instant from s-g to s+g: the call may arrive later than others, and the clock
// whose boundaries count may be ahead or behind. So a spend counts in each period
// that reaches into [s-g, s+g], and a take at t has to fit each period that it
// could be counted in, from the one that t-g lies in on. Say that this oldest
// period in reach is p. Then
//
//   - of the periods from p on, those that a spend counts in are the ones up to
//     the one that s+g lies in: it is settled no earlier than it happened, so s-g
//     lies in p, or earlier;
//   - so p counts all that any later one does, and what fits p fits all;
//   - what is held will be spent now or later, and counts in all.
//
// Hence one sum suffices: spent is what counts in p, each token of it until the
// last period that it reaches is out of reach itself, at the end of that period
// and g. Without a guard p is the period of t, and that is the plain fixed
// window. A guard wider than the period reaches several; nothing changes.
//
// Window.own is the Instant at which p began. It never goes down. With a guard
// the trail has what counts up to each period, dated at its start; without, all
// counts up to p.
type fixed struct {
	calendar
	clocks Allowance
	// grid is up to multiples of what instants are dated that a guard of very
	// many periods reaches, so that marks are few.
	grid time.Duration
}

func newFixed(r Rule, a Allowance) fixed {
	return fixed{newCalendar(r), a, farGrid(a.Guard, r.Span())}
}

// farGrid gives the grid for a guard over such periods: none, if it reaches over
// few.
func farGrid(guard, period time.Duration) time.Duration {
	if guard/farPeriods < period {
		return 1
	}
	return (guard + farPeriods - 1) / farPeriods
}

func (k fixed) begin(w *Window) { w.own = int64(k.oldest(w.seen)) }

// oldest gives when the oldest period began that a take at t may be counted in.
func (k fixed) oldest(t Instant) Instant { return k.start(t.Add(-k.clocks.Guard)) }

func (k fixed) advance(w *Window, to Instant) {
	start := k.oldest(to)
	if int64(start) <= w.own {
		return
	}
	w.own = int64(start)
	if k.clocks.Guard == 0 {
		w.spent = 0
	} else {
		w.spent -= w.forget(start, 1)
	}
}

func (k fixed) settle(w *Window, n int64, at Instant) {
	latest := k.latest(w, at)
	if latest < Instant(w.own) {
		return
	}
	w.spent += n
	if k.clocks.Guard > 0 {
		w.mark(n, k.start(latest), 1)
	}
}

func (k fixed) beside(w *Window, _ int64) int64 { return w.spent }

// latest is the last instant as if at which a spend dated at, and settled now,
// may be counted. The age of a spend was told by a clock that may run fast, and a
// spend taken for one of the last period would be counted nowhere: so it is dated
// later by what the clock may have added.
func (k fixed) latest(w *Window, at Instant) Instant {
	age := max(0, w.seen.Sub(at))
	at = at.Add(min(age, k.clocks.share(age)))
	return at.Add(k.clocks.Guard).up(k.grid)
}

// wait walks all that counts, what is spent and what is due together, by the last
// period it counts in, until enough is out of reach.
func (k fixed) wait(w *Window, n, free int64, due []Due) (Instant, bool) {
	marks := w.trail.live()
	if k.clocks.Guard == 0 {
		marks = []Mark{{Instant(w.own), w.spent}}
	}
	for {
		var last Instant
		if len(due) > 0 {
			last = k.latest(w, due[0].At)
		}
		switch {
		case len(marks) > 0 && (len(due) == 0 || marks[0].At <= last):
			last, free, marks = marks[0].At, free+marks[0].N, marks[1:]
		case len(due) > 0:
			free, due = free+due[0].N, due[1:]
		default:
			return 0, false
		}
		if free < n {
			continue
		}
		if last < Instant(w.own) {
			return w.seen, true
		}
		end := k.next(last)
		at := end.Add(k.clocks.Guard)
		return at, end < lastInstant && at < lastInstant
	}
}

// restore takes the counts of the periods in reach. State.Own tells the guard that
// they were made under. Where the guard is wider now, the spends that a count is of
// reach that much further. None reaches beyond what is in reach at w.seen, where
// those of a window without a guard may all be.
func (k fixed) restore(w *Window, st State) {
	wider := k.clocks.Guard - k.guardOf(st)
	marks, one := st.Marks, [1]Mark{{w.seen, bounded(st.Spent)}}
	if len(marks) == 0 {
		marks = one[:]
	}
	latest := k.latest(w, w.seen)
	for _, m := range marks {
		if wider > 0 {
			m.At = k.next(m.At).Add(wider - 1).up(k.grid)
		}
		start := k.start(min(m.At, latest))
		if n := min(m.N, bounded(unlimited)-w.spent); n > 0 && int64(start) >= w.own {
			w.spent += n
			if k.clocks.Guard > 0 {
				w.mark(n, start, 1)
			}
		}
	}
}

// presume counts as spent what was out of reach under the guard of st, and free, and
// is in reach again: what those periods counted is forgotten. It is out of reach
// when the last of them is.
func (k fixed) presume(w *Window, st State) {
	known := k.start(w.seen.Add(-k.guardOf(st)))
	if free := w.spec.rule.Limit - w.held - w.spent; Instant(w.own) < known && free > 0 {
		w.mark(free, k.start(known-1), 1)
		w.spent += free
	}
}

// guardOf is the guard that the counts of st were made under.
func (k fixed) guardOf(st State) time.Duration { return min(max(0, time.Duration(st.Own)), MaxPeriod) }
