package lease

import (
	"math"

	"ration/algo"
)

// lack is one thing that a waiter has not: need of a resource at an account.
type lack struct {
	account *account
	of      resource
	need    int64
	kept    bool // it may be free, but is kept for an earlier waiter
}

// needs is what w needs now: a holder without a slot needs one, since no rate
// token goes to a holder that could not use it.
func (l *Ledger) needs(w *waiter) (Amount, bool) {
	need := w.req.Need
	concurrent := false
	for _, a := range w.accounts {
		if !a.contract.slots {
			continue
		}
		concurrent = true
		if need.Tokens > 0 && need.Slots == 0 && a.slots[w.req.ID.Holder] == 0 {
			if w.req.Want.Slots == 0 {
				return need, false
			}
			need.Slots = 1
		}
	}
	if !concurrent {
		need.Slots = 0
	}
	return need, true
}

func (l *Ledger) lacks(w *waiter, need Amount) []lack {
	var lacks []lack
	for _, a := range w.accounts {
		lacks = l.lack(lacks, a, w, tokens, need.Tokens)
		lacks = l.lack(lacks, a, w, slots, need.Slots)
		for _, u := range need.Units {
			lacks = l.lack(lacks, a, w, resource(u.Unit), u.N)
		}
	}
	return lacks
}

// lack adds what w lacks of n of a resource at a.
func (l *Ledger) lack(lacks []lack, a *account, w *waiter, of resource, n int64) []lack {
	if n == 0 || !a.counts(of) {
		return lacks
	}
	kept := a.line.kept(of, w)
	if kept || a.free(l.now, of) < n {
		return append(lacks, lack{a, of, n, kept})
	}
	return lacks
}

// wake is the earliest instant at which passing time alone may have cured all
// the lacks. What is held is reckoned to stay held for a token TTL: whatever
// changes it stirs the account anyhow.
func (l *Ledger) wake(lacks []lack) algo.Instant {
	at := l.now + 1
	for _, k := range lacks {
		if k.kept {
			return math.MaxInt64 // the keeper's leaving stirs the account
		}
		d, _ := k.account.wait(l.now, k.of, k.need, k.account.lasting(l.now, k.of, l.config.TokenTTL))
		at = max(at, later(l.now, d))
	}
	return at
}
