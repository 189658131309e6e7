package lease

import (
	"slices"
	"time"

	"ration/algo"
)

// Windows of fixed rules are given calendar time, all others ledger time. So the
// instants in the state of a fixed window, also in a [Record], are calendar time; a
// lease's are ledger time.

// Clock tells of calendar time, for people.
type Clock struct {
	// Offset is calendar time less ledger time.
	Offset time.Duration
	// Ahead is how far the wall clock was ahead of calendar time when it was last
	// looked at, or behind it if it is negative.
	Ahead time.Duration
	// Wider is how much wider the guards of fixed rules are for that.
	Wider time.Duration
}

// Wall tells what the leader's wall clock shows at now, before a turn. Calendar time
// follows: at once if no boundary of a fixed rule lies between, else by a thousandth
// of passing time, and then the guards of fixed rules are wider meanwhile.
func (l *Ledger) Wall(now, wall algo.Instant) {
	l.dial.start(l.policy)
	if l.dial.look(max(now, l.now), wall, l.now) {
		l.rouse()
	}
}

// ResetClock takes what the wall clock shows at now, whatever lies between: it may
// open a window twice, or early. Where a window was seen later than the clock shows
// now, all that it counts comes back when the period ends that the clock shows.
func (l *Ledger) ResetClock(now, wall algo.Instant) {
	l.dial.start(l.policy)
	l.dial.reset(max(now, l.now), wall)
	l.rouse()
}

// Dial is how calendar time lies to ledger time.
func (l *Ledger) Dial() Dial { return l.dial.Dial }

// SetDial lets calendar time go on from that of the leader before. It comes before
// anything is restored.
func (l *Ledger) SetDial(d Dial) { l.dial = dial{Dial: d, full: l.dial.full} }

// rouse lets every line be served again that waits for time to pass: it may take
// less now.
func (l *Ledger) rouse() {
	for i := range l.timers.heap {
		if a := l.timers.heap[i].account; a != nil {
			l.stir(a)
		}
	}
}

func (d *dial) status() Clock { return Clock{Offset: d.Offset, Ahead: d.ahead, Wider: d.Apart} }

// start finds the boundaries of the fixed rules of a policy.
func (d *dial) start(p *Policy) {
	if d.started {
		return
	}
	d.started = true
	at := map[algo.Rule]int{}
	for b := range p.bounds() {
		for _, c := range newContract(b, 0, d).rules {
			r := c.spec.Rule()
			if r.Kind != algo.Fixed {
				continue
			}
			r.Limit, r.Unit = 0, "" // they have no part in it
			i, known := at[r]
			if !known {
				i, at[r] = len(d.clocks), len(d.clocks)
				d.clocks = append(d.clocks, clock{spec: algo.Compile(r, algo.Allowance{})})
			}
			d.clocks[i].guard = max(d.clocks[i].guard, b.Guard())
		}
	}
}

// under gives the spec of the rule with a guard that is so much wider.
func (r *contractRule) under(apart time.Duration) *algo.Spec {
	if apart == 0 {
		return r.spec
	}
	spec := r.wider[apart]
	if spec == nil {
		a := r.allowance
		a.Guard += apart
		spec = r.compile(r.spec.Rule(), a)
		if r.wider == nil {
			r.wider = map[time.Duration]*algo.Spec{}
		}
		r.wider[apart] = spec
	}
	return spec
}

// window gives the window of a rule, and what it is to take for now. A window of a
// fixed rule comes under another guard here, when it is next looked at; first under
// the widest that was in between.
func (a *account) window(i int, now algo.Instant) (*algo.Window, algo.Instant) {
	w, r := &a.windows[i], a.contract.all[i]
	if r.dial == nil {
		return w, now
	}
	now = r.dial.calendar(now)
	if w.Seen().Sub(now) > max(rewound, 2*r.dial.full) {
		r.rewind(w, now)
	}
	if missed := r.dial.missed(w.Seen()); missed > r.dial.Apart {
		r.makeUp(w, now, missed)
	}
	w.Adopt(now, r.under(r.dial.Apart))
	return w, now
}

// makeUp puts a window under the widest guard that it missed, until now. Where
// calendar time was set back since, within a period, it would miss it again.
func (r *contractRule) makeUp(w *algo.Window, now algo.Instant, missed time.Duration) {
	w.Adopt(now, r.under(missed))
	all := r.dial.Widened
	if last := all[len(all)-1].At; last > now {
		if _, next, _ := r.spec.Period(now); last < next {
			now = last
		}
	}
	w.Free(now)
}

// rewound is by how much calendar time is earlier than a window has seen if it was
// reset, or set back within a period, and that window was not lost and full.
const rewound = time.Minute

// rewind lets a window begin again in the period of now, if it has seen a later one.
func (r *contractRule) rewind(w *algo.Window, now algo.Instant) {
	if _, next, _ := r.spec.Period(now); w.Seen() < next {
		return
	}
	st := w.State(w.Seen())
	st.Seen, st.Marks = now, nil // so all that is spent counts as if it were just now
	*w = r.restore(st)
}

// fresh gives a window that nothing is known of: of what it may have counted before
// guards grew neither.
func (r *contractRule) fresh(now algo.Instant) algo.Window {
	if r.dial == nil {
		return r.spec.Window(now)
	}
	now = r.dial.calendar(now)
	if r.dial.Apart == 0 || len(r.dial.Widened) == 0 {
		return r.spec.Window(now)
	}
	w := r.spec.Window(min(now, r.dial.Widened[len(r.dial.Widened)-1].At))
	w.Adopt(now, r.under(r.dial.Apart))
	w.Free(now)
	return w
}

// restore gives a window that goes on from a record's, under no narrower guard than
// that was: it is narrowed when it is looked at, which is later.
func (r *contractRule) restore(st algo.State) algo.Window {
	if r.dial == nil {
		return r.spec.Restore(st)
	}
	was := min(max(0, time.Duration(st.Own)-r.allowance.Guard), apartMost)
	return r.under(was).Resume(st) // the guard of its own may be wider now
}

// full gives a window of which everything is spent at an instant to come.
func (r *contractRule) full(now, until algo.Instant) algo.Window {
	if r.shadow != nil {
		bound := contractRule{spec: r.shadow, allowance: r.allowance, dial: r.dial}
		w := bound.full(now, until)
		w.Adopt(w.Seen(), r.current())
		return w
	}
	if r.dial == nil {
		return r.spec.Full(now, until)
	}
	return r.under(r.dial.Apart).Full(r.dial.calendar(now), r.dial.latest(now, until))
}

// dated gives what a window of the rule is to take for an instant up to now.
func (r *contractRule) dated(at, now algo.Instant) algo.Instant {
	if r.dial == nil {
		return at
	}
	return r.dial.dated(at, now)
}

// due gives what a window of the rule is to take for what is due.
func (r *contractRule) due(now algo.Instant, due []algo.Due) []algo.Due {
	if r.dial == nil || r.dial.Offset == 0 && r.dial.ahead == 0 {
		return due
	}
	due = slices.Clone(due)
	for i := range due {
		due[i].At = r.dial.latest(now, due[i].At)
	}
	return due
}

// freeAt is Free of a window.
func (a *account) freeAt(i int, now algo.Instant) int64 {
	if a.blocked != 0 {
		return 0
	}
	w, at := a.window(i, now)
	return w.Free(at)
}

// waitAt is Wait of a window: what is due, and how long it takes, are
// ledger time.
func (a *account) waitAt(i int, now algo.Instant, n int64, due []algo.Due) (time.Duration, bool) {
	w, at := a.window(i, now)
	r := a.contract.rules[i]
	d, ok := w.Wait(at, n, r.due(now, due))
	if r.dial != nil {
		d = r.dial.longest(d)
	}
	if a.blocked != 0 {
		d = max(d, a.blocked.Sub(now))
	}
	return d, ok
}
