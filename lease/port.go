package lease

import "context"

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

// Mirror keeps a copy of the ledger of one partition that outlives its leader. Each
// call names an epoch, and does nothing unless that has the seat: else it gives
// ErrFenced where another has it, and ErrLost where the mirror has no seat or that of
// an epoch with a lower number: then it has forgotten what it had. After any other
// error it is unknown whether anything was done, and the same may be called again.
type Mirror interface {
	// Load gives the records of keys, in their order. Of a key without one it gives one
	// that is Empty.
	Load(ctx context.Context, e Epoch, keys []Key) ([]Record, error)
	// Keys gives some keys that have records, from where the last call stopped, and
	// where the next call goes on; it begins with "" and has ended with "". A key may be
	// given twice; one whose record comes or goes meanwhile may be left out.
	Keys(ctx context.Context, e Epoch, from string) (keys []Key, next string, err error)
	// Policy gives the policy in force. Its revision is 0 where the mirror has none. It names
	// no epoch, as it changes nothing and who stands by asks too.
	Policy(ctx context.Context) (PolicyRecord, error)
	// Apply records a turn. It applies the turn after the last one, says so again for
	// the last one, and refuses any other with ErrGap.
	Apply(ctx context.Context, t *Turn) error
}

// Elector decides who leads a partition. Its seat is kept in the mirror.
type Elector interface {
	// Look reads the seat.
	Look(ctx context.Context) (Seat, error)
	// Campaign puts next into the place of the seat, if that has not moved since it was
	// seen; else it gives ErrMoved. ErrPartitions says that the cell is divided
	// otherwise than next says, ErrFormat that the mirror is of another format.
	// After any other error it is unknown whether the seat was won: look.
	Campaign(ctx context.Context, seen, next Seat) error
	// Renew shows that the leader lives, with the errors of a Mirror, and ErrPolicy where
	// the mirror has a later policy than the pulse names.
	Renew(ctx context.Context, e Epoch, p Pulse) error
	// Resign gives the seat up so that a standby need not wait, with the errors of a
	// Mirror.
	Resign(ctx context.Context, e Epoch) error
}
