package lease

import (
	"slices"

	"ration/algo"
)

// batchMost is how many leases are recorded together: whatever changes in one, all
// of them are written.
const batchMost = 32

// batch is leases that are recorded together: those of one holder, of one turn and on
// the same keys. An unmirrored ledger has none.
type batch struct {
	id       ID
	began    algo.Instant
	keys     []Key
	turn     int64 // in which it began
	leases   []*lease
	accounts []*account
	changed  bool // in this turn
}

// enlist makes a lease that begins one of a batch, and of what is to be recorded.
func (l *Ledger) enlist(le *lease) {
	if l.config.Unmirrored {
		return
	}
	b := le.holder.batch
	if b == nil || b.turn != l.stats.Turns || len(b.leases) >= batchMost || !slices.Equal(b.keys, le.keys) {
		b = &batch{id: le.id, began: le.began, keys: le.keys, turn: l.stats.Turns, accounts: le.accounts}
		le.holder.batch = b
	}
	b.leases = append(b.leases, le)
	le.batch = b
	l.alter(le)
}

// alter says that a lease has changed.
func (l *Ledger) alter(le *lease) {
	if b := le.batch; b != nil && !b.changed {
		b.changed = true
		l.altered = append(l.altered, b)
	}
}

// delist takes a lease that is over out of its batch.
func (l *Ledger) delist(le *lease) {
	b := le.batch
	if b == nil {
		return
	}
	l.alter(le)
	b.leases = slices.DeleteFunc(b.leases, func(other *lease) bool { return other == le })
	if len(b.leases) == 0 && le.holder.batch == b {
		le.holder.batch = nil
	}
}

// record is what a mirror keeps of a batch.
func (b *batch) record() Batch {
	r := Batch{ID: b.id, Began: b.began, Keys: b.keys, Leases: slices.Grow([]LeaseRecord(nil), len(b.leases))}
	for _, le := range b.leases {
		r.Leases = append(r.Leases, LeaseRecord{
			Seq:    le.id.Seq,
			Tokens: le.tokens,
			Slots:  le.slots.record(),
			Units:  slices.Clone(le.units),
		})
	}
	return r
}

// record is nothing of what was never granted: when that expires is of no account.
func (p Part) record() Part {
	if p.Granted == 0 {
		return Part{}
	}
	return p
}
