package lease

import (
	"container/list"
	"math"
	"time"

	"ration/algo"
)

// waiter is a request that could not be granted when it came. It stands in the
// line of each of its accounts, at the place of its arrival.
type waiter struct {
	req      Request
	holder   *holder
	accounts []*account
	places   []*list.Element // in the lines of accounts, in their order
	first    algo.Instant    // arrival of its first copy
	arrived  algo.Instant    // arrival of its newest copy, which is answered
	ticket   Ticket
	order    uint64
	deadline algo.Instant
	claim    claim
	lease    *lease    // once it is granted
	copies   []Message // that came in the turn of its grant
	parked   *account  // whose pause it waits for, and so it stands in no line
	before   *waiter   // of those, and behind
	behind   *waiter
	alarm    alarm
}

func (w *waiter) name() name { return name{w.holder, w.req.ID.Seq} }

// line is who waits at an account, first come first. What they need may be kept for
// some of them, see claim.
type line struct {
	waiters   *list.List   // of *waiter; nil when nobody ever waited
	keepers   []*waiter    // for each rule whom its tokens or slots are kept for; nil for nobody ever
	slotsOnly int          // waiters that need no tokens
	tokens    int64        // that waiters need
	units     []unitLine   // of those that a rule here counts and somebody needed
	stirred   algo.Instant // when a copy of a request last had it served
	wake      algo.Instant // when a timer will serve it
	alarm     alarm
}

func (n *line) len() int {
	if n.waiters == nil {
		return 0
	}
	return n.waiters.Len()
}

func (l *Ledger) join(w *waiter) {
	w.places = make([]*list.Element, len(w.accounts))
	for i, a := range w.accounts {
		l.retain(a)
		if a.line.waiters == nil {
			a.line.waiters = list.New()
		}
		w.places[i] = a.line.waiters.PushBack(w)
		if a.line.tokens += l.lineShare(w.req.Need.Tokens); w.req.Need.Tokens == 0 {
			a.line.slotsOnly++
		}
		for _, u := range w.req.Need.Units {
			if of := resource(u.Unit); a.counts(of) {
				a.line.unit(of).needed += l.lineShare(u.N)
			}
		}
	}
	l.enter(w)
}

// enter makes w one of those who wait.
func (l *Ledger) enter(w *waiter) {
	l.waiting.Put(w)
	w.holder.highest = max(w.holder.highest, w.req.ID.Seq)
	if w.holder.waiting == nil {
		w.holder.waiting = map[*waiter]struct{}{}
	}
	w.holder.waiting[w] = struct{}{}
	w.holder.tenant.waiters++
}

// lineShare is what a waiter needs, as far as a full line of such can be added
// up.
func (l *Ledger) lineShare(need int64) int64 {
	return min(need, math.MaxInt64/int64(l.config.Line+1))
}

// leave takes w out of every line; everybody behind moves up. Who waits for the end of a
// pause stands in none.
func (l *Ledger) leave(w *waiter) {
	l.waiting.Delete(w.name())
	delete(w.holder.waiting, w)
	if len(w.holder.waiting) == 0 {
		w.holder.waiting = nil
	}
	w.holder.tenant.waiters--
	l.timers.stop(&w.alarm)
	if a := w.parked; a != nil {
		a.acts.parked.remove(w)
		w.parked = nil
		return
	}
	for i, a := range w.accounts {
		l.use(a)
		a.line.waiters.Remove(w.places[i])
		if a.line.tokens -= l.lineShare(w.req.Need.Tokens); w.req.Need.Tokens == 0 {
			a.line.slotsOnly--
		}
		for _, u := range w.req.Need.Units {
			if of := resource(u.Unit); a.counts(of) {
				a.line.unit(of).needed -= l.lineShare(u.N)
			}
		}
		if a.line.forsake(w) {
			l.stir(a)
		}
	}
}

// serve grants to the waiters at a what can be granted now, in order, and sets
// the timer for what passing time will free.
func (l *Ledger) serve(a *account) {
	wake := algo.Instant(math.MaxInt64)
	evaluated := false
	shut := shut{ledger: l, account: a}
	l.unblock(a)
	for e := a.line.front(); e != nil; {
		w := e.Value.(*waiter)
		e = e.Next() // w may leave
		if evaluated {
			noTokens, noSlots := shut.to(w, tokens), shut.to(w, slots)
			if noTokens && (noSlots || a.line.slotsOnly == 0) {
				break // nobody further can be served
			}
			if noTokens && w.req.Need.Tokens > 0 || noSlots && l.needsSlot(a, w) || shut.unitTo(w) {
				continue
			}
		}
		if lacks := l.try(w); lacks != nil {
			evaluated = true
			wake = min(wake, l.wake(w, lacks), w.claim.begins)
		}
	}
	if a.line.len() == 0 {
		a.recalled = nil
		return
	}
	for _, p := range shut.passed {
		wake = min(wake, l.opens(a, p.of, 1, p.first))
	}
	if wake < a.line.wake || !l.now.Before(a.line.wake) {
		a.line.wake = wake
		if wake != math.MaxInt64 {
			l.timers.set(timer{at: wake, account: a})
		}
	}
}

// later is now plus d, or the end of time if d is for ever.
func later(now algo.Instant, d time.Duration) algo.Instant {
	if d == math.MaxInt64 {
		return math.MaxInt64
	}
	return now.Add(d)
}

func (n *line) front() *list.Element {
	if n.waiters == nil {
		return nil
	}
	return n.waiters.Front()
}

// needsSlot says that w cannot be granted without a slot of a.
func (l *Ledger) needsSlot(a *account, w *waiter) bool {
	return a.contract.slots && (w.req.Need.Slots > 0 || a.slots[w.req.ID.Holder] == 0)
}

// try grants w's need if all of it is free everywhere and kept for nobody
// before it; otherwise it says what w lacks, and settles what is kept for w.
func (l *Ledger) try(w *waiter) []lack {
	need, ok := l.needs(w)
	if !ok {
		l.refuse(w, Refusal{Reason: ErrNeedsSlot, Key: w.req.Keys[0]})
		return nil
	}
	lacks := l.lacks(w, need)
	if len(lacks) == 0 {
		l.grant(w, need)
		return nil
	}
	l.claim(w, need, lacks)
	return lacks
}
