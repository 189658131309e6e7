package lease

import (
	"slices"
	"time"

	"ration/algo"
)

// Record is everything that is known of one limited prefix, complete by itself: a
// child that was never loaded is neither forgotten nor held for ever.
type Record struct {
	Key Key
	// Written is the number of the epoch under which it was written last, 0 if there
	// is no record.
	Written uint64
	Windows []WindowRecord
	Batches []Batch
	// Pause is that of the prefix, nil for none. Charges are those that are remembered.
	Pause   *Pause
	Charges []ChargeRecord
	// Damaged says what there is in its place that cannot be read, or is nil. Then
	// nothing is known of the prefix, and it counts as fully spent.
	Damaged error
}

// WindowRecord is the state of a window and the rule it counts. Instants in it are
// calendar time if the rule is a fixed one; all others of a record are ledger time.
type WindowRecord struct {
	Rule  string
	State algo.State
}

// Batch is what leases have that one holder was granted in one turn on the same
// keys. They are recorded together, as one of their prefixes sees them.
type Batch struct {
	// ID is that of the first lease of the batch. With Began it names the batch.
	ID    ID
	Began algo.Instant
	Keys  []Key
	// Leases are those that hold something, by the number in their IDs.
	Leases []LeaseRecord
}

// LeaseRecord is a lease of a batch; Seq is the number in its ID.
type LeaseRecord struct {
	Seq    uint64
	Tokens Part
	Slots  Part
	Units  []UnitPart // by name; nil in a lease of calls alone
}

// Part is the tokens of a lease, or its slots, or what it has of another unit. Of slots, the spent ones are those
// cut.
type Part struct {
	Granted  int64
	Spent    int64
	Returned int64
	Expires  algo.Instant
}

// Change is what a turn has changed of one prefix.
type Change struct {
	Key Key
	// Gone says that the prefix is at rest, equal to one never touched: its record
	// goes.
	Gone bool
	// Whole says that this is all there is: what the mirror has of the prefix goes.
	Whole bool
	// Stale says that the record is still in doubt, as one that was written under the epoch of
	// the number Since.
	Stale bool
	Since uint64
	// Keep is for how long the record can matter, if nothing more becomes of the
	// prefix.
	Keep time.Duration
	// Windows are those that have changed. Of their marks they have those that
	// changed, with a count of 0 where the mark is no more.
	Windows []WindowRecord
	// Batches are those that have changed, without leases where none is left.
	Batches []Batch
	// Paused says that the pause is another: Pause, nil for none.
	Paused bool
	Pause  *Pause
	// Charges are those that have come, and those that are forgotten.
	Charges []ChargeRecord
}

// Empty says that nothing is known of the prefix.
func (r *Record) Empty() bool {
	return len(r.Windows) == 0 && len(r.Batches) == 0 && r.Pause == nil && len(r.Charges) == 0
}

// Clone gives a record that shares nothing that changes with r.
func (r Record) Clone() Record {
	r.Windows, r.Batches, r.Charges = slices.Clone(r.Windows), slices.Clone(r.Batches), slices.Clone(r.Charges)
	for i := range r.Windows {
		r.Windows[i].State.Marks = slices.Clone(r.Windows[i].State.Marks)
	}
	for i := range r.Batches {
		r.Batches[i].Leases = slices.Clone(r.Batches[i].Leases)
	}
	return r
}

// Change makes the record what the turn of that epoch has made of the prefix. It says
// what every mirror does with a change.
func (r *Record) Change(c Change, epoch uint64) {
	if c.Gone || c.Whole {
		*r = Record{Key: c.Key}
	}
	if c.Gone {
		return
	}
	if r.Written = epoch; c.Stale {
		r.Written = c.Since
	}
	for _, w := range c.Windows {
		i := slices.IndexFunc(r.Windows, func(old WindowRecord) bool { return old.Rule == w.Rule })
		if i < 0 {
			i = len(r.Windows)
			r.Windows = append(r.Windows, WindowRecord{Rule: w.Rule})
		}
		r.Windows[i].State.Change(w.State)
	}
	for _, b := range c.Batches {
		i := slices.IndexFunc(r.Batches, func(old Batch) bool { return old.ID == b.ID && old.Began == b.Began })
		switch {
		case len(b.Leases) == 0 && i >= 0:
			r.Batches = slices.Delete(r.Batches, i, i+1)
		case len(b.Leases) == 0:
		case i >= 0:
			r.Batches[i] = b
		default:
			r.Batches = append(r.Batches, b)
		}
	}
	if c.Paused {
		r.Pause = c.Pause
	}
	for _, charge := range c.Charges {
		r.Charges = slices.DeleteFunc(r.Charges, func(old ChargeRecord) bool { return old.ID == charge.ID })
		if charge.Until != 0 {
			r.Charges = append(r.Charges, charge)
		}
	}
}
