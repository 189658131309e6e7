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
		take := a.excess(lacksSlots, 0)
		first := len(l.turn.Recalls)
		for _, le := range a.leases {
			ask := l.asksSlots(le, take)
			has := slices.ContainsFunc(lacking, func(of resource) bool { return le.rest(of) > 0 })
			idle := has && l.asksTokens(a, le.id.Holder)
			if ask > 0 || idle {
				l.addRecall(a, first, le.recall(ask))
			}
		}
	}
	l.recallOver()
}

// asksSlots says how many slots to ask of a lease, of what is to be taken of its holder.
func (l *Ledger) asksSlots(le *lease, take map[Holder]int64) int64 {
	ask := min(take[le.id.Holder], le.slots.rest())
	if ask <= 0 || l.now.Sub(le.recalled) < l.config.RecallEvery {
		return 0
	}
	le.recalled = l.now
	take[le.id.Holder] -= ask
	return ask
}

// overMost bounds how many slots beyond a limit are recalled at one time.
const overMost = 1024

// watchOver looks whether more slots of an account are held than its limit is, as there are
// when that was lowered: they are recalled, also if nobody waits, until that is over.
func (l *Ledger) watchOver(a *account) {
	if a.slotsOver() > 0 {
		l.over = append(l.over, a)
	}
}

// slotsOver is by how much the slots that are held exceed the tightest limit.
func (a *account) slotsOver() (over int64) {
	if !a.contract.slots {
		return 0
	}
	for i, r := range a.contract.rules {
		if r.of == slots {
			over = max(over, a.windows[i].Held()-r.spec.Max())
		}
	}
	return over
}

// recallOver recalls what is held beyond lowered limits of slots: idle ones come back at
// once, and those that serve when their calls end.
func (l *Ledger) recallOver() {
	l.over = slices.DeleteFunc(l.over, func(a *account) bool {
		over := min(a.slotsOver(), overMost)
		take := a.excess(nil, over)
		first := len(l.turn.Recalls)
		for _, le := range a.leases {
			if ask := l.asksSlots(le, take); ask > 0 {
				l.stats.RecalledOver += ask
				l.addRecall(a, first, le.recall(ask))
			}
		}
		return over <= 0
	})
	if len(l.over) == 0 {
		l.over = nil
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
// one has. Of those who hold most so many are taken for nobody.
func (a *account) excess(waiting []Holder, nobody int64) map[Holder]int64 {
	take := map[Holder]int64{}
	if len(waiting) == 0 && nobody <= 0 {
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
	if len(shares) == 0 {
		return take
	}
	holdsMost := func() Holder {
		return slices.MaxFunc(shares, func(x, y share) int {
			return cmp.Or(cmp.Compare(has[x.holder], has[y.holder]), cmp.Compare(y.holder.Name, x.holder.Name),
				cmp.Compare(y.holder.Incarnation, x.holder.Incarnation))
		}).holder
	}
	for ; nobody > 0; nobody-- {
		most := holdsMost()
		has[most]--
		take[most]++
	}
	for _, w := range waiting {
		most := holdsMost()
		if most == w || has[most] <= has[w] {
			continue
		}
		has[most]--
		has[w]++
		take[most]++
	}
	return take
}
