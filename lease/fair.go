package lease

import (
	"maps"
	"math"
	"time"

	"ration/algo"
)

// Within a class the turn goes to the holder that was given least for its demand: by
// start-time fair queueing (Goyal, Vin and Cheng, 1996). A request starts when the one
// before it of the same holder has had its share, or when it arrives. What a holder asks
// for beyond its share starts later and later, and whoever asks for less finds its own
// request to start now. So each holder gets what it asks for up to an equal share, and
// what is left goes to those who ask for more.
//
// The share of a request is what it needs, as the time in which the rule that takes
// longest brings that back, times by how much the line has lately been slower than that,
// times the holders that wait. So starts keep up with ledger time, and those of different
// lines compare, as they have to: requests of one order wait at many lines, and whatever
// holds a line up, a parent, slots or a slow upstream, is measured. Where holders are
// counted that hardly ever wait, starts run ahead; the further, the shorter shares are made.
//
// Nobody who arrives starts before somebody who was granted already: who has not asked for
// long has no claim on what others got meanwhile.

// flow is what a class knows of a holder that waits, or whose share lies ahead.
type flow struct {
	waiting int
	ends    algo.Instant // of the share of its last request
}

const (
	// farthest is how far ahead a share may end.
	farthest = 20 * 365 * 24 * time.Hour
	// ahead is the lead of starts over time at which shares are half as long.
	ahead = 10 * time.Second
	// A measurement forgets half of itself once it is so long and of so many.
	measureMost, measureFor = 64, 8 * time.Second
)

// measure is how fast a class is granted, while somebody of it waits.
type measure struct {
	since   algo.Instant
	granted time.Duration // in the measure of regrows
	n       int64
}

// begins settles the start of a request.
func (l *Ledger) begins(w *waiter) {
	w.start = l.now
	for _, a := range w.accounts {
		if a.line.len() == 0 {
			continue
		}
		c := a.classAt(w)
		w.start = max(w.start, c.started)
		if f := c.flows[w.req.ID.Holder]; f != nil {
			w.start = max(w.start, f.ends)
		}
	}
}

// flowIn notes that w waits in a class, and gives its share there.
func (l *Ledger) flowIn(c *class, a *account, w *waiter) time.Duration {
	worth := l.regrows(a, w)
	if c.flows == nil {
		c.flows = map[Holder]*flow{}
		prior := a.prior(worth)
		c.speed = measure{since: l.now.Add(-prior), granted: prior}
	}
	f := c.flows[w.req.ID.Holder]
	if f == nil {
		f = &flow{}
		c.flows[w.req.ID.Holder] = f
	}
	if f.waiting++; f.waiting == 1 {
		c.active++
	}
	share := portion(worth, int64(l.now.Sub(c.speed.since)), int64(c.speed.granted))
	share = portion(share, int64(c.active), 1)
	share = portion(share, int64(ahead), int64(ahead+max(0, min(c.started.Sub(l.now), farthest))))
	before := max(w.start, f.ends)
	f.ends = min(before.Add(min(share, farthest)), l.now.Add(farthest))
	return f.ends.Sub(before)
}

// flowOut notes that w waits no more. Unless it was granted, what comes next need not wait
// for its share: holders give up many requests that something else has served.
func (l *Ledger) flowOut(c *class, w *waiter, share time.Duration) {
	h := w.req.ID.Holder
	f := c.flows[h]
	if f.waiting--; f.waiting == 0 {
		c.active--
	}
	if !w.served {
		f.ends = f.ends.Add(-share)
	}
	if len(c.flows) > 2*c.active+16 {
		over := max(l.now, c.started)
		maps.DeleteFunc(c.flows, func(_ Holder, f *flow) bool { return f.waiting == 0 && f.ends <= over })
	}
}

// count notes that w of the class is granted something at a.
func (c *class) count(l *Ledger, a *account, w *waiter) {
	c.started = max(c.started, w.start)
	m := &c.speed
	m.granted, m.n = m.granted+min(l.regrows(a, w), farthest), m.n+1
	if elapsed := l.now.Sub(m.since); elapsed > measureFor && m.n > measureMost || m.granted > farthest {
		m.since, m.granted, m.n = l.now.Add(-elapsed/2), max(1, m.granted/2), m.n/2
	}
}

// prior is for how long a measurement begins as if requests had been granted just as fast
// as the rules bring back what they need: no shorter than a window takes to come round, or
// a first wait for that would be taken for a slow line.
func (a *account) prior(worth time.Duration) time.Duration {
	longest := max(time.Second, portion(worth, 8, 1))
	for _, r := range a.contract.rules {
		longest = max(longest, min(2*r.spec.Rule().Span(), 20*time.Second))
	}
	return min(longest, farthest)
}

// regrows is in how long what w needs comes back at a, by the rule that takes longest.
// Nobody knows when slots do, so any time will do that is as long for each.
func (l *Ledger) regrows(a *account, w *waiter) time.Duration {
	longest := time.Duration(1)
	for _, r := range a.contract.rules {
		need := w.req.Need.of(r.of)
		if r.of == slots {
			if l.needsSlot(a, w) {
				longest = max(longest, time.Millisecond*time.Duration(min(max(need, 1), math.MaxInt32)))
			}
			continue
		}
		rule := r.spec.Rule()
		longest = max(longest, portion(rule.Span(), need, max(rule.Limit, 1)))
	}
	return longest
}
