package lease

import (
	"container/list"
	"math"
	"slices"
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
	lease    *lease    // once it is granted
	copies   []Message // that came in the turn of its grant
	alarm    alarm
}

func (w *waiter) name() name { return name{w.holder, w.req.ID.Seq} }

// line is who waits at an account, first come first. A keeper is a waiter that
// lacks nothing but one resource of this account: what becomes free of it is
// kept for that waiter, so that a large request is not overtaken for ever, and
// a request that lacks something elsewhere holds nobody back.
type line struct {
	waiters   *list.List   // of *waiter; nil when nobody ever waited
	keepers   [2]*waiter   // of tokens and of slots
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

// kept says that the resource is kept for somebody before w.
func (n *line) kept(of resource, w *waiter) bool {
	k := n.keeper(of)
	return k != nil && k != w && k.order < w.order
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

// leave takes w out of every line; everybody behind moves up.
func (l *Ledger) leave(w *waiter) {
	l.waiting.Delete(w.name())
	delete(w.holder.waiting, w)
	if len(w.holder.waiting) == 0 {
		w.holder.waiting = nil
	}
	w.holder.tenant.waiters--
	l.timers.stop(&w.alarm)
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
	evaluated, skipped, slotless := 0, false, false
	var without []resource // units for want of which waiters were passed over
	for e := a.line.front(); e != nil; {
		w := e.Value.(*waiter)
		e = e.Next() // w may leave
		if evaluated > 0 {
			noTokens, noSlots := a.shut(l.now, tokens, w), a.shut(l.now, slots, w)
			skipped, slotless = skipped || noTokens, slotless || noSlots
			if noTokens && (noSlots || a.line.slotsOnly == 0) {
				break // nobody further can be served
			}
			if noTokens && w.req.Need.Tokens > 0 || noSlots && l.needsSlot(a, w) || a.shutUnit(l.now, w, &without) {
				continue
			}
		}
		if lacks := l.try(w); lacks != nil {
			evaluated++
			wake = min(wake, l.wake(lacks))
		}
	}
	if a.line.len() == 0 {
		a.recalled = nil
		return
	}
	if skipped {
		wake = min(wake, l.opens(a, tokens))
	}
	if slotless {
		wake = min(wake, l.opens(a, slots))
	}
	for _, of := range without {
		wake = min(wake, l.opens(a, of))
	}
	if wake < a.line.wake || !l.now.Before(a.line.wake) {
		a.line.wake = wake
		if wake != math.MaxInt64 {
			l.timers.set(timer{at: wake, account: a})
		}
	}
}

// opens is when one of a resource of which none is free may be.
func (l *Ledger) opens(a *account, of resource) algo.Instant {
	if a.free(l.now, of) > 0 {
		return math.MaxInt64
	}
	d, _ := a.wait(l.now, of, 1, a.lasting(l.now, of, l.config.TokenTTL))
	return later(l.now, d)
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

// shut says that w, which is not the first in line, cannot be granted any of the
// resource at a: none is free, or it is kept for somebody before w.
func (a *account) shut(now algo.Instant, of resource, w *waiter) bool {
	return a.line.keeper(of) != w && (a.line.kept(of, w) || a.free(now, of) == 0)
}

// needsSlot says that w cannot be granted without a slot of a.
func (l *Ledger) needsSlot(a *account, w *waiter) bool {
	return a.contract.slots && (w.req.Need.Slots > 0 || a.slots[w.req.ID.Holder] == 0)
}

// try grants w's need if all of it is free everywhere and kept for nobody
// before it; otherwise it says what w lacks. It settles for whom w holds back
// others.
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
	first := l.leads(w, lacks)
	firstInCalls := first && slices.ContainsFunc(lacks, func(k lack) bool { return k.of == tokens })
	for _, a := range w.accounts {
		l.keep(a, tokens, w, lacks, firstInCalls && a.counts(tokens))
		l.keep(a, slots, w, lacks, false)
		for _, u := range need.Units {
			if of := resource(u.Unit); a.counts(of) {
				l.keep(a, of, w, lacks, first)
			}
		}
	}
	return lacks
}

// keep makes w the keeper of a resource at a, or no longer: it is if it lacks
// nothing else, or if it is first for it.
func (l *Ledger) keep(a *account, of resource, w *waiter, lacks []lack, first bool) {
	alone := first || len(lacks) == 1 && lacks[0].account == a && lacks[0].of == of && !lacks[0].kept
	k := a.line.keeper(of)
	switch {
	case alone && (k == nil || w.order < k.order):
		*a.line.place(of) = w
	case !alone && k == w:
		*a.line.place(of) = nil
		l.stir(a)
	}
}

// leads says that w heads all its lines, lacks nothing but tokens and units, and
// will have them within the shortest window. Then what it lacks, and its units, are
// kept for it everywhere: else those who lack at one place only would overtake it
// for ever.
func (l *Ledger) leads(w *waiter, lacks []lack) bool {
	if w.places == nil {
		return false
	}
	for i, a := range w.accounts {
		if a.line.front() != w.places[i] {
			return false
		}
	}
	for _, k := range lacks {
		if k.of == slots {
			return false
		}
	}
	return l.wake(lacks).Sub(l.now) <= shortest(w.accounts, comesBack)
}
