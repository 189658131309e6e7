package lease

import (
	"math"
	"time"

	"ration/algo"
)

// waiter is a request that could not be granted when it came. It stands in the
// line of each of its accounts, see waiter.before.
type waiter struct {
	req      Request
	holder   *holder
	accounts []*account
	class    string // empty where the policy has none
	rank     int    // of the class
	places   []post // in the lines of accounts, in their order; nil for one that never stood there
	stands   bool
	lifted   uint64        // when it was, in the order of that; 0 for not
	start    algo.Instant  // see fair
	served   bool          // it is granted
	payer    *class        // whose credit it was lifted for,
	paid     time.Duration // and how much of that
	first    algo.Instant  // arrival of its first copy
	stood    algo.Instant  // since when it stands in lines: from first on, or since the end of a pause
	arrived  algo.Instant  // arrival of its newest copy, which is answered
	ticket   Ticket
	order    uint64
	deadline algo.Instant
	claim    claim
	lease    *lease    // once it is granted
	copies   []Message // that came in the turn of its grant
	parked   *account  // whose pause it waits for, and so it stands in no line
	ahead    *waiter   // of those, and behind
	behind   *waiter
	alarm    alarm
}

func (w *waiter) name() name { return name{w.holder, w.req.ID.Seq} }

// post is where a waiter stands in a line.
type post struct {
	class  *class
	counts bool // it lacked something there when it came
	share  time.Duration
}

// line is who waits at an account. What they need may be kept for some of them, see
// claim.
type line struct {
	waiters   *queue       // nil when nobody ever waited
	classes   []*class     // by rank
	owes      bool         // some class may have credit for its next request
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

// join lets w stand in line for what it lacks.
func (l *Ledger) join(w *waiter, lacks []lack) {
	w.places, w.stands = make([]post, len(w.accounts)), true
	for i, a := range w.accounts {
		l.retain(a)
		if a.line.waiters == nil {
			a.line.waiters = l.newQueue()
		}
		a.line.waiters.ReplaceOrInsert(w)
		c := a.classAt(w)
		w.places[i] = post{c, lacksAt(lacks, a), l.flowIn(c, a, w)}
		c.tokens += l.lineShare(w.req.Need.Tokens)
		if c.standing++; w.places[i].counts {
			c.counts++
		}
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
	if w.class != "" {
		l.total(w).standing++
	}
}

// lineShare is what a waiter needs, as far as that of all who may wait can be added
// up.
func (l *Ledger) lineShare(need int64) int64 {
	return min(need, math.MaxInt64/int64(l.config.Waiters.All+1))
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
	if w.class != "" {
		l.total(w).standing--
	}
	w.stands = false
	if a := w.parked; a != nil {
		a.acts.parked.remove(w)
		w.parked = nil
		return
	}
	for i, a := range w.accounts {
		l.use(a)
		a.line.waiters.Delete(w)
		w.places[i].class.leave(l, w, w.places[i])
		if a.line.tokens -= l.lineShare(w.req.Need.Tokens); w.req.Need.Tokens == 0 {
			a.line.slotsOnly--
		}
		for _, u := range w.req.Need.Units {
			if of := resource(u.Unit); a.counts(of) {
				a.line.unit(of).needed -= l.lineShare(u.N)
			}
		}
		if a.line.forsake(w) || len(a.line.classes) > 1 { // for a lower class less is kept
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
	l.lift(a)
	for w := range a.line.all() {
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

// needsSlot says that w cannot be granted without a slot of a.
func (l *Ledger) needsSlot(a *account, w *waiter) bool {
	return a.contract.slots && (w.req.Need.Slots > 0 || a.slots[w.req.ID.Holder] == 0)
}

// try grants w's need if all of it is free everywhere and kept for nobody
// before it; otherwise it says what w lacks, and settles what is kept for w.
func (l *Ledger) try(w *waiter) []lack {
	need, ok := l.needs(w)
	if !ok {
		l.refuse(w, w.needsSlot())
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
