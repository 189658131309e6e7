package lease

import (
	"math/bits"
	"slices"
	"time"

	"ration/algo"
)

// grant begins a lease of amount. What it wants beyond is given at the end of
// the turn, when everybody's needs have been seen; but a run begins with all.
func (l *Ledger) grant(w *waiter, amount Amount) {
	w.served = true
	if w.stands {
		for i, a := range w.accounts {
			w.places[i].class.count(l, a, w)
			l.earn(a, w)
		}
		l.leave(w)
	} else if w.class != "" {
		for _, a := range w.accounts {
			l.earn(a, w)
		}
	}
	l.tally(w, true)
	le := &lease{id: w.req.ID, keys: w.req.Keys, holder: w.holder, began: l.now, asked: w, rank: w.rank}
	w.lease = le
	for _, a := range w.accounts {
		le.add(a)
	}
	le.tokens.Expires = l.now.Add(l.config.TokenTTL)
	le.slots.Expires = l.now.Add(l.config.SlotTTL)
	if gap := spacing(w.accounts); gap > 0 && amount.Tokens > 0 {
		amount.Tokens = l.run(w, amount.Tokens, gap)
		le.tokens.Expires = l.now.Add(l.runTTL(amount.Tokens, gap))
		l.stats.Runs++
	}
	for _, u := range w.req.Want.Units {
		le.units = append(le.units, UnitPart{u.Unit, Part{Expires: le.tokens.Expires}})
	}
	l.begin(le)
	l.enlist(le)
	l.give(le, amount)
	l.granted = append(l.granted, w)
}

// give moves an amount from free to held for the lease.
func (l *Ledger) give(le *lease, amount Amount) {
	l.giveOf(le, tokens, amount.Tokens)
	l.giveOf(le, slots, amount.Slots)
	for _, u := range amount.Units {
		l.giveOf(le, resource(u.Unit), u.N)
	}
}

func (l *Ledger) giveOf(le *lease, of resource, n int64) {
	le.part(of).Granted += n
	l.alter(le)
	l.carry(of, n)
	for _, a := range le.accounts {
		a.take(l.now, of, n)
		l.touch(a)
		if of == slots {
			if a.hold(le.id.Holder, n); n > 0 {
				l.stir(a) // another request of this holder may need none now
			}
		}
	}
}

// topUp gives the turn's grants what they want beyond their need, but for what
// those who wait need, and answers them.
func (l *Ledger) topUp() {
	for _, w := range l.granted {
		le := w.lease
		l.give(le, l.extra(w, le))
		l.stats.Granted += le.tokens.Granted
		l.stats.SlotsGranted += le.slots.Granted
		for _, u := range le.units {
			l.stats.UnitsGranted += u.Granted
		}
		l.stats.Leases++
		waited := time.Duration(0)
		if w.places != nil {
			waited = l.now.Sub(w.first) + 1 // above 0: it stood in line
		}
		l.answer(w.ticket, l.grantAnswer(le, w.arrived, waited))
		for _, m := range w.copies {
			l.answer(m.Ticket, l.grantAnswer(le, m.Arrived, waited))
		}
		le.asked = nil
		l.done(w)
		l.turn.begun = append(l.turn.begun, le)
		if le.over() {
			l.endIfOver(le)
			continue
		}
		if at, ok := le.expires(); ok {
			l.timers.set(timer{at: at, lease: le})
		}
	}
	clear(l.granted)
	l.granted = shrunk(l.granted[:0])
}

// done lets a waiter be used again that was granted at once: nothing else knows of
// it.
func (l *Ledger) done(w *waiter) {
	const most = 1024
	if w.places == nil && len(l.spare) < most {
		*w = waiter{accounts: w.accounts}
		clear(w.accounts)
		l.spare = append(l.spare, w)
	}
}

// plenty is the most that is given beyond the need where no rule counts it: more than
// anybody spends in a TTL, and so little that what many leases hold can be added up.
const plenty = 1 << 32

func (l *Ledger) extra(w *waiter, le *lease) Amount {
	more := Amount{
		Tokens: max(0, w.req.Want.Tokens-le.tokens.Granted),
		Slots:  max(0, w.req.Want.Slots-le.slots.Granted),
	}
	concurrent, counted := false, false
	for _, a := range w.accounts {
		concurrent = concurrent || a.contract.slots
		counted = counted || a.counts(tokens)
		free := a.free(l.now, tokens)
		more.Tokens = min(more.Tokens, free, max(0, free-a.line.tokens))
		more.Slots = min(more.Slots, a.free(l.now, slots))
		if a.line.len() > 0 {
			more.Slots = 0 // whoever waits may use one
		}
	}
	switch {
	case !counted:
		more.Tokens = min(more.Tokens, plenty)
	case spacing(w.accounts) > 0:
		more.Tokens = 0 // they would be no run
	}
	if !concurrent {
		more.Slots = 0
	}
	for _, u := range w.req.Want.Units {
		of := resource(u.Unit)
		n := u.N - le.part(of).Granted
		for _, a := range w.accounts {
			n = min(n, a.free(l.now, of)-a.line.needed(of))
		}
		if !slices.ContainsFunc(w.accounts, func(a *account) bool { return a.counts(of) }) {
			n = min(n, plenty)
		}
		if n > 0 {
			more.Units = append(more.Units, UnitAmount{u.Unit, n})
		}
	}
	return more
}

// grantAnswer states a lease to the copy of its request that arrived then.
func (l *Ledger) grantAnswer(le *lease, arrived algo.Instant, waited time.Duration) Answer {
	return Answer{
		ID:       le.id,
		Outcome:  Granted,
		Granted:  Amount{le.tokens.Granted, le.slots.Granted, sumUnits(nil, le.units, func(p *Part) int64 { return p.Granted })},
		TokenTTL: max(0, le.tokens.Expires.Sub(arrived)),
		SlotTTL:  max(0, le.slots.Expires.Sub(arrived)),
		Waited:   waited,
		Terms:    terms(le.accounts, le.rank),
	}
}

// terms is what a holder has to know of the contract of these accounts.
func (w *waiter) terms() Terms { return terms(w.accounts, w.rank) }

func terms(accounts []*account, rank int) Terms {
	t := Terms{Unlimited: true, Window: shortest(accounts, tellWithin), Spacing: spacing(accounts)}
	for _, a := range accounts {
		if bound := a.contract.boundOf(rank); bound >= 0 && (!t.Bounded || bound < t.Line) {
			t.Bounded, t.Line = true, bound
		}
		for _, r := range a.contract.list() {
			if r.of == slots {
				t.Concurrent = true
			} else {
				t.Unlimited = false
			}
		}
	}
	return t
}

// shortest is the least of what the rate rules of the accounts give, also those in shadow,
// 0 if there are none.
func shortest(accounts []*account, of func(algo.Rule) time.Duration) (least time.Duration) {
	for _, a := range accounts {
		for _, r := range a.contract.list() {
			if d := of(r.spec.Rule()); r.of != slots && (least == 0 || d < least) {
				least = d
			}
		}
	}
	return least
}

// tellWithin is the window by which holders divide how often they report: that in
// which what is spent comes back. But a counter has no use for ages: it counts a
// spend only once that is told, and until then the spend is held besides all that
// the period counts. Holders report within a third of this, so a 32nd of a period
// costs about a hundredth of its limit.
func tellWithin(r algo.Rule) time.Duration {
	if r.Kind == algo.Counter {
		return max(1, r.Span()/32)
	}
	return comesBack(r)
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
