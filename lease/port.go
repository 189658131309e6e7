package lease

import "context"

// Epoch counts leaderships of a partition. It is compared for equality only:
// Mark tells apart two epochs of the same number that were won from mirrors
// which did not know of each other.
type Epoch struct {
	Number uint64
	Mark   uint64
}

// Lessor grants leases. The leader implements it in process and the NATS client
// over the network; both are safe for concurrent use.
type Lessor interface {
	// Acquire asks once and waits for the answer to this very copy. An error
	// means that no answer could be had, and that the outcome is unknown: ask
	// again under the same ID, or give the ID up.
	Acquire(ctx context.Context, r Request) (Answer, error)
	// Report tells what was done with leases. An error means that it may or may
	// not have been recorded: say it again.
	Report(ctx context.Context, r Report) (Reply, error)
	// Recalls calls got for each recall addressed to h until ctx ends. Recalls
	// are hints and may be lost.
	Recalls(ctx context.Context, h Holder, got func(Recall)) error
}

// Mirror keeps a copy of a ledger that outlives its leader.
type Mirror interface {
	// Load gives the record of a key, or a zero Record for a key it has none of.
	Load(ctx context.Context, key Key) (Record, error)
	// Apply records a turn, under the epoch it names. It applies the turn after
	// the last one, says so again for the last one, and refuses any other with
	// ErrGap, and any turn of another epoch with ErrFenced. After any other
	// error it is unknown whether the turn is recorded: apply it again.
	Apply(ctx context.Context, t *Turn) error
}

// Elector decides who leads.
type Elector interface {
	// Campaign waits until the seat is won and gives the new epoch, or the
	// error of ctx when that ends first; then the seat is not taken.
	Campaign(ctx context.Context) (Epoch, error)
	// Renew shows that the leader lives. ErrFenced says that the seat is lost.
	Renew(ctx context.Context, e Epoch) error
	// Resign gives the seat up so that a standby need not wait. ErrFenced says
	// that it was lost already.
	Resign(ctx context.Context, e Epoch) error
}
