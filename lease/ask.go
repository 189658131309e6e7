package lease

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"ration/algo"
)

// request takes up one copy of a request.
func (l *Ledger) request(m Message) {
	r := m.Request
	sat := l.hear(r.ID.Holder, m.Arrived, r.Sent)
	if age := sat + l.now.Sub(m.Arrived); age > l.config.Stale || r.Patience > 0 && age > r.Patience {
		l.stats.Stale++
		l.turn.Dropped = append(l.turn.Dropped, m.Ticket) // nobody waits for it
		return
	}
	if e := l.ended.byID[r.ID]; e != nil {
		l.stats.AnsweredEnded++
		l.answer(m.Ticket, e.answer)
		return
	}
	if le := l.leases[r.ID]; le != nil {
		l.stats.Replayed++
		if slices.ContainsFunc(l.granted, func(w *waiter) bool { return w.req.ID == r.ID }) {
			l.stats.ReplayedAtOnce++
			l.copies = append(l.copies, m) // answered when the grant has all it gets
			return
		}
		l.answer(m.Ticket, l.grantAnswer(le, m.Arrived, 0))
		return
	}
	if w := l.waiting[r.ID]; w != nil {
		l.rejoin(w, m, sat)
		return
	}
	l.orders++
	w := &waiter{
		req:      *r,
		accounts: l.match(r.Keys),
		first:    m.Arrived,
		arrived:  m.Arrived,
		ticket:   m.Ticket,
		order:    l.orders,
		deadline: deadline(m.Arrived, r.Patience-sat),
	}
	if refusal, refused := l.hopeless(w); refused {
		l.refuse(w, refusal)
		return
	}
	if lacks := l.try(w); lacks != nil {
		l.wait(w, lacks)
	}
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
	if need, ok := l.needs(w); ok { // else it is refused when it is served
		lacks := l.lacks(w, need)
		if soonest(l.now, lacks) > w.deadline.Sub(l.now) {
			l.refuse(w, l.why(lacks, ErrTooLate))
			return
		}
		for _, k := range lacks { // a recall may have been lost
			if line := &k.account.line; l.now.Sub(line.stirred) >= l.config.RecallEvery {
				line.stirred = l.now
				l.stir(k.account)
			}
		}
	}
	l.setOverdue(w)
}

// hopeless refuses what no waiting could help.
func (l *Ledger) hopeless(w *waiter) (Refusal, bool) {
	if len(w.accounts) == 0 && l.policy.Unknown == RefuseUnknown {
		return Refusal{Reason: ErrUnknownKey, Key: w.req.Keys[0]}, true
	}
	need, ok := l.needs(w)
	if !ok {
		return Refusal{Reason: ErrNeedsSlot, Key: w.req.Keys[0]}, true
	}
	for _, a := range w.accounts {
		if rule, never := a.never(need); never {
			return Refusal{Reason: ErrNever, Key: a.key, Rule: rule.text}, true
		}
	}
	return Refusal{}, false
}

// wait lets a request that lacks something stand in line, if that can help.
func (l *Ledger) wait(w *waiter, lacks []lack) {
	left := w.deadline.Sub(l.now)
	if w.req.Patience <= 0 || left <= 0 {
		l.unkeep(w)
		l.refuse(w, l.why(lacks, ErrLimit))
		return
	}
	if soonest := soonest(l.now, lacks); soonest > left {
		l.unkeep(w)
		l.refuse(w, l.why(lacks, ErrTooLate))
		return
	}
	for _, a := range w.accounts {
		if a.line.len() >= l.config.Line {
			l.unkeep(w)
			refusal := l.why(lacks, ErrLineFull)
			refusal.Key = a.key
			l.refuse(w, refusal)
			return
		}
	}
	l.stats.Waited++
	l.join(w)
	l.setOverdue(w)
	for _, k := range lacks {
		l.stir(k.account) // to set its timer, and to recall
	}
}

// unkeep undoes what try settled for a request that will not wait.
func (l *Ledger) unkeep(w *waiter) {
	for _, a := range w.accounts {
		for of := range a.line.keepers {
			if a.line.keepers[of] == w {
				a.line.keepers[of] = nil
			}
		}
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
			refusal.Wait, refusal.Key, refusal.Rule = d, k.account.key, rule.text
		}
	}
	return refusal
}

func (a *account) first(of resource) *contractRule {
	i := slices.IndexFunc(a.contract.rules, func(r *contractRule) bool { return r.of == of })
	return a.contract.rules[i]
}

// setOverdue sets the timer that ends the wait: at the deadline, or when the
// holder has been silent for too long.
func (l *Ledger) setOverdue(w *waiter) {
	l.timers.set(timer{at: min(w.deadline, w.arrived.Add(l.config.Silence)), waiter: w})
}

// overdue ends a wait whose deadline has passed, or whose holder is silent.
func (l *Ledger) overdue(w *waiter) {
	switch {
	case l.waiting[w.req.ID] != w:
		// granted or gone
	case !l.now.Before(w.deadline):
		l.stats.TimedOut++
		l.refuse(w, Refusal{Reason: ErrTimedOut, Key: w.req.Keys[0]})
	case l.now.Sub(w.arrived) >= l.config.Silence:
		l.stats.Silent++
		l.leave(w)
		l.answer(w.ticket, Answer{ID: w.req.ID, Outcome: Waiting, Terms: terms(w.accounts)})
	}
}

// grant begins a lease of amount. What it wants beyond is given at the end of
// the turn, when everybody's needs have been seen.
func (l *Ledger) grant(w *waiter, amount Amount) {
	if w.places != nil {
		l.leave(w)
	}
	le := &lease{id: w.req.ID, keys: w.req.Keys, accounts: w.accounts, began: l.now}
	le.tokens.Expires = l.now.Add(l.config.TokenTTL)
	le.slots.Expires = l.now.Add(l.config.SlotTTL)
	l.leases[le.id] = le
	for _, a := range le.accounts {
		a.leases = append(a.leases, le)
	}
	l.give(le, amount)
	l.granted = append(l.granted, w)
}

// give moves an amount from free to held for the lease.
func (l *Ledger) give(le *lease, amount Amount) {
	for of := range resource(resources) {
		n := amount.of(of)
		le.part(of).Granted += n
		for _, a := range le.accounts {
			a.take(l.now, of, n)
			if of == slots && n > 0 && a.slots != nil {
				a.slots[le.id.Holder] += n
			}
			l.touch(a)
		}
	}
}

// topUp gives the turn's grants what they want beyond their need, but for what
// those who wait need, and answers them.
func (l *Ledger) topUp() {
	for _, w := range l.granted {
		le := l.leases[w.req.ID]
		l.give(le, l.extra(w, le))
		l.stats.Granted += le.tokens.Granted
		l.stats.SlotsGranted += le.slots.Granted
		l.stats.Leases++
		waited := time.Duration(0)
		if w.places != nil {
			waited = l.now.Sub(w.first) + 1 // above 0: it stood in line
		}
		l.answer(w.ticket, l.grantAnswer(le, w.arrived, waited))
		for _, m := range l.copies {
			if m.Request.ID == le.id {
				l.answer(m.Ticket, l.grantAnswer(le, m.Arrived, waited))
			}
		}
		if le.over() {
			l.endIfOver(le)
			continue
		}
		if at, ok := le.expires(); ok {
			l.timers.set(timer{at: at, lease: le})
		}
	}
	l.granted, l.copies = l.granted[:0], nil
}

func (l *Ledger) extra(w *waiter, le *lease) Amount {
	more := Amount{
		Tokens: max(0, w.req.Want.Tokens-le.tokens.Granted),
		Slots:  max(0, w.req.Want.Slots-le.slots.Granted),
	}
	concurrent := false
	for _, a := range w.accounts {
		concurrent = concurrent || a.slots != nil
		free := a.free(l.now, tokens)
		more.Tokens = min(more.Tokens, free, max(0, free-a.line.tokens))
		more.Slots = min(more.Slots, a.free(l.now, slots))
		if a.line.len() > 0 {
			more.Slots = 0 // whoever waits may use one
		}
	}
	if !concurrent {
		more.Slots = 0
	}
	return more
}

// grantAnswer states a lease to the copy of its request that arrived then.
func (l *Ledger) grantAnswer(le *lease, arrived algo.Instant, waited time.Duration) Answer {
	return Answer{
		ID:       le.id,
		Outcome:  Granted,
		Granted:  Amount{Tokens: le.tokens.Granted, Slots: le.slots.Granted},
		TokenTTL: max(0, le.tokens.Expires.Sub(arrived)),
		SlotTTL:  max(0, le.slots.Expires.Sub(arrived)),
		Waited:   waited,
		Terms:    terms(le.accounts),
	}
}

// refuse answers that nothing was taken, and remembers it: a copy of the same
// request gets the same answer.
func (l *Ledger) refuse(w *waiter, refusal Refusal) {
	if w.places != nil {
		l.leave(w)
	}
	if refusal.Wait > 0 && refusal.Wait != math.MaxInt64 {
		refusal.Wait += l.now.Sub(w.arrived) // it counts from the arrival
	}
	a := Answer{ID: w.req.ID, Outcome: Refused, Terms: terms(w.accounts), Refusal: refusal}
	l.stats.refused(refusal.Reason)
	l.remember(w.req.ID, a)
	l.answer(w.ticket, a)
}

func (l *Ledger) answer(t Ticket, a Answer) {
	l.turn.Answers = append(l.turn.Answers, Answered{t, a})
}

// terms is what a holder has to know of the contract of these accounts.
func terms(accounts []*account) Terms {
	t := Terms{Unlimited: true}
	for _, a := range accounts {
		for _, r := range a.contract.rules {
			if r.of == slots {
				t.Concurrent = true
				continue
			}
			t.Unlimited = false
			if back := comesBack(r.spec.Rule()); t.Window == 0 || back < t.Window {
				t.Window = back
			}
		}
	}
	return t
}

// comesBack is in how long all that a rule has comes back once it is spent: its
// period, but of a small bucket only what that takes to fill.
func comesBack(r algo.Rule) time.Duration {
	if r.Kind != algo.Bucket || r.Burst >= r.Limit {
		return r.Span()
	}
	hi, lo := bits.Mul64(uint64(r.Burst), uint64(r.Span()))
	fill, _ := bits.Div64(hi, lo, uint64(r.Limit)) // below the period, as burst is below limit
	return max(1, time.Duration(fill))
}
