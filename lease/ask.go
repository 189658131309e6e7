package lease

import (
	"math"
	"slices"
	"time"

	"ration/algo"
)

// request takes up one copy of a request.
func (l *Ledger) request(m Message) {
	r := m.Request
	h := l.holder(owner{r.ID.Holder, r.Keys[0].Tenant()})
	if h == nil {
		l.turnAway(m, tooManyHolders(r.Keys[0], l.config.Holders))
		return
	}
	sat := h.hear(m.Arrived, r.Sent, l.config.PPM)
	if age := sat + l.now.Sub(m.Arrived); age > l.config.Stale || r.Patience > 0 && age > r.Patience {
		l.stats.Stale++
		l.turn.Dropped = append(l.turn.Dropped, m.Ticket) // nobody waits for it
		return
	}
	if r.ID.Seq <= h.highest && l.again(h, m, sat) {
		return
	}
	l.orders++
	w := l.newWaiter()
	*w = waiter{
		req:      *r,
		holder:   h,
		accounts: l.match(w.accounts[:0], r.Keys),
		first:    m.Arrived,
		stood:    m.Arrived,
		arrived:  m.Arrived,
		ticket:   m.Ticket,
		order:    l.orders,
		deadline: deadline(m.Arrived, r.Patience-sat),
	}
	l.admit(w)
}

// admit grants what a request needs, or lets it wait, or refuses it.
func (l *Ledger) admit(w *waiter) {
	if refusal, unknown := l.classify(w); unknown {
		l.refuse(w, refusal)
		return
	}
	if refusal, refused := l.hopeless(w); refused {
		l.refuse(w, refusal)
		return
	}
	if refusal, beyond := l.beyond(w); beyond {
		l.refuse(w, refusal)
		return
	}
	if a := pausedAmong(w.accounts); a != nil {
		l.hold(w, a)
		return
	}
	l.begins(w)
	if lacks := l.try(w); lacks != nil {
		l.wait(w, lacks)
	}
}

// newWaiter gives a waiter that is free to use, but for the room of its accounts.
func (l *Ledger) newWaiter() *waiter {
	last := len(l.spare) - 1
	if last < 0 {
		return &waiter{}
	}
	w := l.spare[last]
	l.spare[last] = nil
	l.spare = l.spare[:last]
	return w
}

// turnAway refuses a copy without remembering it.
func (l *Ledger) turnAway(m Message, refusal Refusal) {
	l.stats.refused(refusal.Reason)
	l.answer(m.Ticket, Answer{ID: m.Request.ID, Outcome: Refused, Refusal: refusal})
}

// again answers a request of which something is known already, and says whether
// that is so.
func (l *Ledger) again(h *holder, m Message, sat time.Duration) bool {
	r := m.Request
	if a, over := l.recollect(h, r.ID.Seq); over {
		l.answer(m.Ticket, a)
		return true
	}
	id := name{h, r.ID.Seq}
	le, granted := l.leases.Get(id)
	w, waits := l.waiting.Get(id)
	switch {
	case granted && le.asksElse(r), waits && w.asksElse(r):
		l.turnAway(m, Refusal{Reason: ErrBadRequest, Key: r.Keys[0]})
	case granted && le.given:
		l.stats.AnsweredEnded++
		l.answer(m.Ticket, Answer{ID: r.ID, Outcome: Ended})
	case granted && le.asked != nil:
		l.stats.Replayed++
		l.stats.ReplayedAtOnce++
		le.asked.copies = append(le.asked.copies, m) // answered when the grant has all it gets
	case granted:
		l.stats.Replayed++
		l.answer(m.Ticket, l.grantAnswer(le, m.Arrived, 0))
	case waits:
		l.rejoin(w, m, sat)
	case h.over.folded(r.ID.Seq):
		l.stats.AnsweredFolded++
		l.answer(m.Ticket, Answer{ID: r.ID, Outcome: Ended})
	default:
		return false
	}
	return true
}

// asksElse says that r is not what its id asked for before: a holder that uses an
// id twice must not take the answer to one for that to the other.
func (le *lease) asksElse(r *Request) bool {
	for _, u := range r.Need.Units {
		if p := le.part(resource(u.Unit)); p == nil || u.N > p.Granted {
			return true
		}
	}
	return !slices.Equal(le.keys, r.Keys) || r.Need.Tokens > le.tokens.Granted || r.Need.Slots > le.slots.Granted && le.slots.Granted > 0
}

func (w *waiter) asksElse(r *Request) bool {
	return !slices.Equal(w.req.Keys, r.Keys) || !w.req.Need.Equal(r.Need) || !w.req.Want.Equal(r.Want) || w.req.Class != r.Class
}

func deadline(arrived algo.Instant, left time.Duration) algo.Instant {
	if left > math.MaxInt64/4 {
		left = math.MaxInt64 / 4 // for ever
	}
	return arrived.Add(left)
}

// rejoin lets a newer copy take the place of the one that waits: it is the one
// to answer.
func (l *Ledger) rejoin(w *waiter, m Message, sat time.Duration) {
	if m.Arrived.Before(w.arrived) {
		l.turn.Dropped = append(l.turn.Dropped, m.Ticket)
		return
	}
	l.stats.Rejoined++
	l.turn.Dropped = append(l.turn.Dropped, w.ticket)
	w.ticket, w.arrived = m.Ticket, m.Arrived
	w.deadline = deadline(m.Arrived, m.Request.Patience-sat)
	if w.parked != nil {
		l.repark(w)
		return
	}
	if need, ok := l.needs(w); ok { // else it is refused when it is served
		lacks := l.lacks(w, need)
		if soonest(l.now, lacks) > w.deadline.Sub(l.now) {
			l.refuse(w, l.why(lacks, ErrTooLate))
			return
		}
		for _, k := range lacks { // a recall may have been lost
			l.stirAgain(k.account)
		}
		if len(lacks) == 0 { // nobody may have looked at it since it came to lack nothing
			for _, a := range w.accounts {
				l.stirAgain(a)
			}
		}
	}
	l.setOverdue(w)
}

// stirAgain stirs an account because a copy of a waiting request came, but not for
// every copy.
func (l *Ledger) stirAgain(a *account) {
	if l.now.Sub(a.line.stirred) >= l.config.RecallEvery {
		a.line.stirred = l.now
		l.stir(a)
	}
}

// hopeless refuses what no waiting could help.
func (l *Ledger) hopeless(w *waiter) (Refusal, bool) {
	if l.policy.Unknown == RefuseUnknown {
		for _, k := range w.req.Keys {
			if !slices.ContainsFunc(w.accounts, func(a *account) bool { return a.contract.named && k.below(a.key) }) {
				return Refusal{Reason: ErrUnknownKey, Key: k}, true
			}
		}
	}
	need, ok := l.needs(w)
	if !ok {
		return w.needsSlot(), true
	}
	for _, a := range w.accounts {
		if rule, never := a.never(need); never {
			refusal := Refusal{Reason: ErrNever}
			refusal.bind(a, rule)
			return refusal, true
		}
	}
	return Refusal{}, false
}

// wait lets a request that lacks something stand in line, if that can help.
func (l *Ledger) wait(w *waiter, lacks []lack) {
	left := w.deadline.Sub(l.now)
	if w.req.Patience <= 0 || left <= 0 {
		l.unclaim(w)
		l.refuse(w, l.why(lacks, ErrLimit))
		return
	}
	if soonest := soonest(l.now, lacks); soonest > left {
		l.unclaim(w)
		l.refuse(w, l.why(lacks, ErrTooLate))
		return
	}
	for _, a := range w.accounts {
		c := a.classAt(w)
		if _, full := l.full(a, c); full && lacksAt(lacks, a) {
			l.unclaim(w)
			refusal := l.why(lacks, ErrLineFull)
			refusal.Key, refusal.Class = a.key, c.name
			l.refuse(w, refusal)
			return
		}
	}
	if refusal, crowded := l.crowded(w); crowded {
		l.unclaim(w)
		l.refuse(w, refusal)
		return
	}
	if a := l.sheds(w, lacks); a != nil {
		l.unclaim(w)
		l.shed(w, lacks, a)
		return
	}
	if w.places == nil {
		l.stats.Waited++ // for the first time
	}
	l.join(w, lacks)
	l.shedLower(w)
	l.setOverdue(w)
	for _, k := range lacks {
		l.stir(k.account) // to set its timer, and to recall
	}
}

// unclaim undoes what try settled for a request that will not wait.
func (l *Ledger) unclaim(w *waiter) {
	for _, a := range w.accounts {
		a.line.forsake(w)
	}
}

// soonest is when all lacks may be cured if all that is held came back now.
func soonest(now algo.Instant, lacks []lack) time.Duration {
	var d time.Duration
	for _, k := range lacks {
		wait, _ := k.account.wait(now, k.of, k.need, nil)
		d = max(d, wait)
	}
	return d
}

// why says which rule binds longest, and how long waiting surely takes: what is
// held is reckoned as spent at its expiry.
func (l *Ledger) why(lacks []lack, reason error) Refusal {
	refusal := Refusal{Reason: reason, Wait: -1}
	for _, k := range lacks {
		d, rule := k.account.wait(l.now, k.of, k.need, k.account.due(k.of))
		if rule == nil { // free, but kept for somebody before
			rule = k.account.first(k.of)
		}
		if d > refusal.Wait {
			refusal.Wait = d
			refusal.bind(k.account, rule)
		}
	}
	return refusal
}

// bind names the rule that refuses.
func (r *Refusal) bind(a *account, rule *contractRule) {
	r.Key, r.Rule, r.Plan, r.Quota = a.key, rule.text, rule.plan, rule.quota()
}

func (a *account) first(of resource) *contractRule {
	i := slices.IndexFunc(a.contract.rules, func(r *contractRule) bool { return r.of == of })
	return a.contract.rules[i]
}

// refuse answers that nothing was taken, and remembers it: a copy of the same
// request gets the same answer.
func (l *Ledger) refuse(w *waiter, refusal Refusal) {
	if w.stands || w.parked != nil {
		l.leave(w)
	}
	l.tally(w, false)
	if refusal.Wait > 0 && refusal.Wait != math.MaxInt64 {
		refusal.Wait += l.now.Sub(w.arrived) // it counts from the arrival
	}
	a := Answer{ID: w.req.ID, Outcome: Refused, Terms: w.terms(), Refusal: refusal}
	l.stats.refused(refusal.Reason)
	l.remember(w.holder, w.req.ID.Seq, &refused{a.Terms, a.Refusal})
	l.answer(w.ticket, a)
}

func (l *Ledger) answer(t Ticket, a Answer) {
	l.turn.Answers = append(l.turn.Answers, Answered{t, a})
}
