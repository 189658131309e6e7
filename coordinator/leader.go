package coordinator

import (
	"context"

	"ration/algo"
	"ration/lease"
)

// Leader grants leases from its ledger while it has the seat. It is safe for
// concurrent use.
type Leader struct {
	config  Config
	epoch   lease.Epoch
	clock   clock
	inbox   chan envelope
	stopped chan struct{} // closed when no more turns are taken

	recalls recalls
}

var _ lease.Lessor = (*Leader)(nil)

// envelope is what the turn loop takes in: a message and the way back of its
// answer, or a question about the ledger.
type envelope struct {
	message lease.Message
	answer  chan<- lease.Answer
	reply   chan<- lease.Reply
	look    func(now algo.Instant, l *lease.Ledger)
}

// inboxSize bounds the messages that gather while a turn is recorded; senders
// wait beyond it.
const inboxSize = 4096

func newLeader(c Config, epoch lease.Epoch, at clock) *Leader {
	return &Leader{
		config:  c,
		epoch:   epoch,
		clock:   at,
		inbox:   make(chan envelope, inboxSize),
		stopped: make(chan struct{}),
	}
}

// Epoch is that of this leadership.
func (l *Leader) Epoch() lease.Epoch { return l.epoch }

// Acquire asks once and waits for the answer, for as long as ctx and the
// request's patience allow. When ctx ends the request stays in line until it is
// given up, asked for again, or its holder has been silent for a while.
func (l *Leader) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	if err := r.Validate(); err != nil {
		return lease.Answer{}, err
	}
	answer := make(chan lease.Answer, 1)
	m := lease.Message{Arrived: l.clock.now(), Request: &r}
	if err := l.send(ctx, envelope{message: m, answer: answer}); err != nil {
		return lease.Answer{}, err
	}
	a, err := await(ctx, l, answer)
	if err == nil && a.Outcome == 0 {
		err = lease.ErrSuperseded
	}
	return a, err
}

// Report tells what a holder did, and waits until it is recorded.
func (l *Leader) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	if err := r.Validate(); err != nil {
		return lease.Reply{}, err
	}
	reply := make(chan lease.Reply, 1)
	m := lease.Message{Arrived: l.clock.now(), Report: &r}
	if err := l.send(ctx, envelope{message: m, reply: reply}); err != nil {
		return lease.Reply{}, err
	}
	return await(ctx, l, reply)
}

// Look calls f between two turns with the ledger, which is f's until it
// returns.
func (l *Leader) Look(ctx context.Context, f func(now algo.Instant, l *lease.Ledger)) error {
	done := make(chan struct{}, 1)
	look := func(now algo.Instant, ledger *lease.Ledger) {
		f(now, ledger)
		done <- struct{}{}
	}
	if err := l.send(ctx, envelope{look: look}); err != nil {
		return err
	}
	_, err := await(ctx, l, done)
	return err
}

// Status tells what the ledger holds on a key, or on all with an empty one.
func (l *Leader) Status(ctx context.Context, key lease.Key) (lease.Status, error) {
	var s lease.Status
	err := l.Look(ctx, func(now algo.Instant, ledger *lease.Ledger) { s = ledger.Status(now, key) })
	return s, err
}

// Summary tells the totals of the ledger, and nothing of single keys.
func (l *Leader) Summary(ctx context.Context) (lease.Status, error) {
	var s lease.Status
	err := l.Look(ctx, func(now algo.Instant, ledger *lease.Ledger) { s = ledger.Summary(now) })
	return s, err
}

func (l *Leader) send(ctx context.Context, e envelope) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-l.stopped:
		return lease.ErrStopped
	default:
	}
	select {
	case l.inbox <- e:
		return nil
	case <-l.stopped:
		return lease.ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

func await[T any](ctx context.Context, l *Leader, from <-chan T) (T, error) {
	var zero T
	select {
	case got := <-from:
		return got, nil
	case <-ctx.Done():
		return zero, ctx.Err()
	case <-l.stopped:
		select {
		case got := <-from: // it was answered just before
			return got, nil
		default:
			return zero, lease.ErrStopped
		}
	}
}
