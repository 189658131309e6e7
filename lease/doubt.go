package lease

import (
	"math"
	"time"

	"ration/algo"
)

// Doubt says which records a mirror cannot be trusted with: it came back empty or
// older than it was, or was another copy from one moment to the next.
type Doubt struct {
	// Epoch is the number of the epoch under which that was found. Records that were
	// written under an earlier one are in doubt, and so is what has no record. With 0
	// nothing is.
	Epoch uint64
	// At is the ledger's instant then.
	At algo.Instant
	// Lag is how much may be missing: what was recorded in the last Lag before.
	// Where the doubt is of a loss, it is all, and Lag is not looked at.
	Lag time.Duration
}

func (d *Doubt) covers(r *Record) bool { return r.Written < d.Epoch }

// Start is what a ledger begins with when its leader has won the seat.
type Start struct {
	// Epoch is the number of the leader's.
	Epoch uint64
	// Instant is where ledger time goes on.
	Instant algo.Instant
	// Dial is how calendar time lies to it.
	Dial Dial
	// Revision is that of the policy, 0 for one that was never in force. Recorded says that
	// the mirror has it; else it is to have it.
	Revision uint64
	Recorded bool
	// Complete says that the mirror has no records that are not in memory.
	Complete bool
	// Lost is of a mirror that has forgotten records: a key in doubt counts as fully
	// spent. Lagged is of one that may lack the latest: a key in doubt is charged
	// with what its tightest rule could have granted in the time.
	Lost   Doubt
	Lagged Doubt
}

// Start lets the ledger begin so. It is called once, before the first turn.
func (l *Ledger) Start(s Start) {
	l.now = max(l.now, s.Instant)
	l.SetDial(s.Dial)
	l.complete = s.Complete || l.config.Unmirrored
	l.epoch, l.lost, l.lagged = s.Epoch, s.Lost, s.Lagged
	l.revision = max(1, s.Revision)
	l.unwritten = !s.Recorded
}

// Lose tells the ledger, whose leader has won the seat again after the mirror has
// lost something, from when on that is so. What the ledger knows it knows; only keys
// that it did not have in memory are in doubt.
func (l *Ledger) Lose(d Doubt) { l.lost = d }

// Trust tells the ledger that nothing of the mirror is in doubt any more.
func (l *Ledger) Trust() { l.lost, l.lagged = Doubt{}, Doubt{} }

// SetComplete tells the ledger that every record of the mirror has been restored.
func (l *Ledger) SetComplete() { l.complete, l.bare = true, nil }

// Complete says that there is no key that the mirror has and the ledger has not.
func (l *Ledger) Complete() bool { return l.complete }

// Longest is for how long a key that is in doubt stays so: the longest that any
// window of the policy remembers, and any lease lives.
func (l *Ledger) Longest() time.Duration {
	var longest time.Duration
	for b := range l.policy.bounds() {
		longest = max(longest, l.lasts(newContract(b, l.config.PPM, &l.dial)))
	}
	return longest
}

// restoreFull opens an account of which nothing is known but that it may have granted
// all that it could until at. Leases may live that nobody remembers: until they have
// expired, what they hold is held.
func (l *Ledger) restoreFull(m Match, at algo.Instant) *account {
	a := l.open(m.Prefix, l.contract(m.Binding))
	l.retain(a)
	l.use(a)
	for i, rule := range a.contract.list() {
		ttl := l.config.TokenTTL
		if rule.of == slots {
			ttl = l.config.SlotTTL
		}
		a.windows[i] = rule.full(l.now, at.Add(ttl))
	}
	l.touch(a)
	l.stats.Doubted++
	return a
}

// unblock lets an account grant again, when ledger time has surely come to what the
// mirror may lack: what came back until then may have been granted, and is charged.
func (l *Ledger) unblock(a *account) {
	if a.blocked == 0 || l.now.Before(a.blocked) {
		return
	}
	a.blocked = 0
	if l.lagged.Epoch == 0 { // all of that has come back since
		l.use(a)
		l.touch(a)
		return
	}
	if ended := l.lagged.At.Add(l.config.TokenTTL) + 1; l.now.Before(ended) && l.uneven(a) {
		a.blocked = ended
		return
	}
	l.chargeBeyond(a)
	l.charge(a)
	l.use(a)
	l.touch(a)
}

// charge takes from an account what leases may hold that the mirror never learned
// of, and what they may have spent. It counts as spent when such leases have expired.
func (l *Ledger) charge(a *account) {
	id := ID{Holder: Holder{Name: "forgotten", Incarnation: l.epoch}, Seq: l.forgotten + 1}
	o := owner{id.Holder, a.key.Tenant()}
	h, known := l.holders.Get(o)
	if !known {
		h = l.meet(o)
	}
	le := &lease{id: id, keys: []Key{a.key}, holder: h, began: l.now}
	le.tokens.Expires = l.lagged.At.Add(l.config.TokenTTL)
	le.slots.Expires = l.lagged.At.Add(l.config.SlotTTL)
	take := Amount{Tokens: l.chargeable(a, tokens), Slots: l.chargeable(a, slots)}
	for _, r := range a.contract.rules {
		if of := r.of; of != tokens && of != slots && le.part(of) == nil {
			le.units = append(le.units, UnitPart{string(of), Part{Expires: le.tokens.Expires}})
			take.Units = take.Units.Plus(string(of), l.chargeable(a, of))
		}
	}
	if take.Zero() {
		return
	}
	l.forgotten++
	le.add(a)
	l.begin(le)
	l.enlist(le)
	l.give(le, take)
	l.stats.Charged++
	l.stats.Adopted += le.tokens.rest()
	l.stats.SlotsAdopted += le.slots.rest()
	for i := range le.units {
		l.stats.UnitsAdopted += le.units[i].rest()
	}
	l.expire(le) // such leases may have ended by now
}

// eachBeyond calls do for each window that may lack more than every window has free: a short one
// has given back some of it since, or is short of it, and a long one remembers all.
func (l *Ledger) eachBeyond(a *account, do func(i int, n int64)) {
	for i, r := range a.contract.rules {
		if r.of == slots {
			continue // a slot is held from all windows for as long
		}
		w, now := a.window(i, l.now)
		if n := min(w.Free(now), l.lacking(a, r.of)) - l.chargeable(a, r.of); n > 0 {
			do(i, n)
		}
	}
}

func (l *Ledger) uneven(a *account) (some bool) {
	l.eachBeyond(a, func(int, int64) { some = true })
	return some
}

// chargeBeyond charges what no lease can hold, which takes the same from all windows. It counts
// as spent now, when all leases that the mirror may lack have expired.
func (l *Ledger) chargeBeyond(a *account) {
	l.eachBeyond(a, func(i int, n int64) {
		at := a.contract.rules[i].dated(l.now, l.now)
		w, now := a.window(i, l.now)
		w.Charge(now, n, at)
	})
}

// chargeable is what the tightest rule of a resource could have granted in the lag, as
// far as it is free.
func (l *Ledger) chargeable(a *account, of resource) int64 {
	if !a.counts(of) {
		return 0
	}
	return min(a.free(l.now, of), l.lacking(a, of))
}

// lacking is what the tightest rule of a resource could have granted in the lag.
func (l *Ledger) lacking(a *account, of resource) int64 {
	n := int64(math.MaxInt64)
	for _, r := range a.contract.rules {
		if r.of == of {
			n = min(n, r.spec.Within(l.lagged.Lag))
		}
	}
	return n
}
