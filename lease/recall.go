package lease

import (
	"cmp"
	"maps"
	"slices"

	"ration/algo"
)

// recallScan bounds how many waiters of a line a turn looks at for recalls.
const recallScan = 64

// recall asks holders to give back what is idle where others wait for it: tokens
// and units of everybody, slots of whoever holds more than the one who waits. A
// holder is asked for tokens at most once in RecallEvery, and for the slots of a
// lease, since a holder that knows that others wait gives back by itself.
func (l *Ledger) recall() {
	for _, a := range l.accountsInLine() {
		lacking, lacksSlots := l.lackers(a)
		if len(lacking) == 0 && len(lacksSlots) == 0 {
			continue
		}
		take := a.excess(lacksSlots)
		first := len(l.turn.Recalls)
		for _, le := range a.leases {
			holder := le.id.Holder
			ask := min(take[holder], le.slots.rest())
			if l.now.Sub(le.recalled) < l.config.RecallEvery {
				ask = 0
			}
			has := slices.ContainsFunc(lacking, func(of resource) bool { return le.rest(of) > 0 })
			idle := has && l.asksTokens(a, holder)
			if ask == 0 && !idle {
				continue
			}
			if ask > 0 {
				le.recalled = l.now
				take[holder] -= ask
			}
			l.addRecall(a, first, le.recall(ask))
		}
	}
}

// asksTokens says, once in RecallEvery for each holder, that it may be asked for
// tokens.
func (l *Ledger) asksTokens(a *account, h Holder) bool {
	at, asked := a.recalled[h]
	if asked && l.now.Sub(at) < l.config.RecallEvery && at != l.now {
		return false
	}
	if a.recalled == nil {
		a.recalled = map[Holder]algo.Instant{}
	}
	if len(a.recalled) > 2*len(a.leases)+16 { // the line never ends, and holders come and go
		maps.DeleteFunc(a.recalled, func(_ Holder, at algo.Instant) bool { return l.now.Sub(at) >= l.config.RecallEvery })
	}
	a.recalled[h] = l.now
	return true
}

// recall asks for what is idle of the lease, and for so many of its slots.
func (le *lease) recall(n int64) Recall {
	r := Recall{Holder: le.id.Holder, Key: le.keys[0], Slots: n}
	if len(le.keys) > 1 {
		r.More = le.keys[1:]
	}
	return r
}

// same says that two recalls are of the same leases.
func (r *Recall) same(as *Recall) bool {
	return r.Holder == as.Holder && r.Key == as.Key && slices.Equal(r.More, as.More)
}

// addRecall adds to the recalls since first: one for each holder and its keys.
func (l *Ledger) addRecall(a *account, first int, r Recall) {
	for i := range l.turn.Recalls[first:] {
		if have := &l.turn.Recalls[first+i]; have.same(&r) {
			have.Slots += r.Slots
			return
		}
	}
	l.stats.Recalls++
	if a.free(l.now, tokens) > 0 && a.counts(tokens) {
		l.stats.RecalledSome++
	}
	l.turn.Recalls = append(l.turn.Recalls, r)
}

// accountsInLine lists the accounts at which a waiter joined or was looked at
// this turn.
func (l *Ledger) accountsInLine() []*account {
	var found []*account
	for _, a := range l.served {
		if a.line.len() > 0 {
			found = append(found, a)
		}
	}
	l.served = l.served[:0]
	return found
}

// lackers says what but slots waiters lack at a, and whose lack slots.
func (l *Ledger) lackers(a *account) (lacking []resource, lacksSlots []Holder) {
	freeTokens, freeSlots := a.free(l.now, tokens), a.free(l.now, slots)
	seen := 0
	for w := range a.line.all() {
		if seen++; seen > recallScan {
			break
		}
		if w.req.Need.Tokens > freeTokens && !slices.Contains(lacking, tokens) {
			lacking = append(lacking, tokens)
		}
		for _, u := range w.req.Need.Units {
			if of := resource(u.Unit); u.N > a.free(l.now, of) && !slices.Contains(lacking, of) {
				lacking = append(lacking, of)
			}
		}
		if l.needsSlot(a, w) && max(w.req.Need.Slots, 1) > freeSlots {
			lacksSlots = append(lacksSlots, w.req.ID.Holder)
		}
	}
	return lacking, lacksSlots
}

// excess says how many slots to ask of each holder, so that those who wait come
// to as many: each time of whoever holds most, if that is more than the waiting
// one has.
func (a *account) excess(waiting []Holder) map[Holder]int64 {
	take := map[Holder]int64{}
	if len(waiting) == 0 {
		return take
	}
	type share struct {
		holder Holder
		n      int64
	}
	shares := make([]share, 0, len(a.slots))
	has := make(map[Holder]int64, len(a.slots))
	for h, n := range a.slots {
		shares = append(shares, share{h, n})
		has[h] = n
	}
	for _, w := range waiting {
		if len(shares) == 0 {
			break
		}
		most := slices.MaxFunc(shares, func(x, y share) int {
			return cmp.Or(cmp.Compare(has[x.holder], has[y.holder]), cmp.Compare(y.holder.Name, x.holder.Name),
				cmp.Compare(y.holder.Incarnation, x.holder.Incarnation))
		}).holder
		if most == w || has[most] <= has[w] {
			continue
		}
		has[most]--
		has[w]++
		take[most]++
	}
	return take
}
