package lease

import "fmt"

// Bound is how many of something there may be: Each of one holder, or where it
// says so of one tenant, and All together. Of All, and of Keys, a tenth is kept
// from any one tenant, so that no tenant shuts the others out.
type Bound struct {
	Each int
	All  int
}

// share is the most of all that one tenant may have.
func share(all int) int { return all - all/10 }

// beyond refuses a request that would pass a bound.
func (l *Ledger) beyond(w *waiter) (Refusal, bool) {
	t, c := w.holder.tenant, l.config
	if refusal, beyond := l.tooManyKeys(w.accounts, t); beyond {
		return refusal, true
	}
	// Who waits will have a lease.
	return over(c.Leases, ErrTooManyLeases, w, "leases",
		w.holder.leases+len(w.holder.waiting), t.leases+t.waiters, l.leases.Len()+l.waiting.Len())
}

// tooManyKeys refuses what would take up more keys than may be in memory.
func (l *Ledger) tooManyKeys(accounts []*account, t *tenant) (Refusal, bool) {
	var fresh []*account
	for _, a := range accounts {
		if !a.kept {
			fresh = append(fresh, a)
		}
	}
	switch n := len(fresh); {
	case n == 0:
	case l.kept+n > l.config.Keys:
		return tooMany(ErrTooManyKeys, fresh[0].key, l.config.Keys, "keys"), true
	case l.tenantKeys.most(t.name)+n > share(l.config.Keys):
		return tooMany(ErrTooManyKeys, fresh[0].key, share(l.config.Keys), "keys of one tenant"), true
	}
	return Refusal{}, false
}

// crowded refuses a request that is one too many to wait.
func (l *Ledger) crowded(w *waiter) (Refusal, bool) {
	return over(l.config.Waiters, ErrTooManyWaiters, w, "waiting requests",
		len(w.holder.waiting), w.holder.tenant.waiters, l.waiting.Len())
}

// over refuses one more where the holder, its tenant or all have what they may.
func over(b Bound, reason error, w *waiter, what string, holders, tenants, all int) (Refusal, bool) {
	key := w.req.Keys[0]
	switch {
	case holders >= b.Each:
		return tooMany(reason, key, b.Each, what+" of one holder"), true
	case tenants >= share(b.All):
		return tooMany(reason, key, share(b.All), what+" of one tenant"), true
	case all >= b.All:
		return tooMany(reason, key, b.All, what), true
	}
	return Refusal{}, false
}

func tooMany(reason error, key Key, most int, what string) Refusal {
	return Refusal{Reason: reason, Key: key, Rule: fmt.Sprintf("at most %d %s", most, what)}
}

func tooManyHolders(key Key, b Bound) Refusal {
	return tooMany(ErrTooManyHolders, key, min(b.Each, share(b.All)), fmt.Sprintf("holders of one tenant, %d in all", b.All))
}
