package lease

import (
	"slices"

	"ration/algo"
)

// lack is one thing that a waiter has not: need of a resource at an account.
type lack struct {
	account *account
	of      resource
	need    int64
	kept    bool // for somebody before, who may have to come first
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

// needsSlot refuses w for want of a slot, by the first of its keys that has a
// concurrency rule.
func (w *waiter) needsSlot() Refusal {
	i := slices.IndexFunc(w.req.Keys, func(k Key) bool {
		return slices.ContainsFunc(w.accounts, func(a *account) bool { return a.contract.slots && k.below(a.key) })
	})
	return Refusal{Reason: ErrNeedsSlot, Key: w.req.Keys[i]}
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
	if n == 0 {
		return lacks
	}
	lacking, kept := false, false
	for i, r := range a.contract.rules {
		if r.of != of {
			continue
		}
		free, keeps := l.allows(a, i, n, w)
		lacking, kept = lacking || !free, kept || keeps
	}
	if lacking {
		return append(lacks, lack{a, of, n, kept})
	}
	return lacks
}

// lacksAt says that some of it is lacking at a.
func lacksAt(lacks []lack, a *account) bool {
	return slices.ContainsFunc(lacks, func(k lack) bool { return k.account == a })
}

// wake is the earliest instant at which passing time alone may have cured all
// the lacks of w.
func (l *Ledger) wake(w *waiter, lacks []lack) algo.Instant {
	at := l.now
	for _, k := range lacks {
		at = max(at, l.opens(k.account, k.of, k.need, w))
	}
	return at
}
