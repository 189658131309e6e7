package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ration/algo"
	"ration/lease"
)

// run takes turns until ctx ends or the mirror says that the seat is lost.
func (l *Leader) run(ctx context.Context) error {
	defer close(l.stopped)
	t := turns{
		leader:  l,
		ledger:  lease.NewLedger(l.config.Policy, l.config.Lease),
		answers: map[lease.Ticket]chan<- lease.Answer{},
		replies: map[lease.Ticket]chan<- lease.Reply{},
	}
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-l.inbox:
			t.take(e)
		case <-wake.C:
		}
		t.gather()
		if err := t.step(ctx); err != nil {
			return err
		}
		if at, ok := t.ledger.Next(); ok {
			wake.Reset(max(0, at.Sub(l.clock.now())))
		}
	}
}

// turns is the state of the turn loop. One goroutine owns it.
type turns struct {
	leader  *Leader
	ledger  *lease.Ledger
	seq     uint64
	ticket  lease.Ticket
	in      []lease.Message
	looks   []func(algo.Instant, *lease.Ledger)
	answers map[lease.Ticket]chan<- lease.Answer
	replies map[lease.Ticket]chan<- lease.Reply
}

func (t *turns) take(e envelope) {
	if e.look != nil {
		t.looks = append(t.looks, e.look)
		return
	}
	t.ticket++
	e.message.Ticket = t.ticket
	if e.answer != nil {
		t.answers[t.ticket] = e.answer
	} else {
		t.replies[t.ticket] = e.reply
	}
	t.in = append(t.in, e.message)
}

// gather takes what else has arrived.
func (t *turns) gather() {
	for range inboxSize {
		select {
		case e := <-t.leader.inbox:
			t.take(e)
		default:
			return
		}
	}
}

// step takes a turn: load, read the instant, step the ledger, record, answer.
func (t *turns) step(ctx context.Context) error {
	if err := t.load(ctx); err != nil {
		return err
	}
	now := t.leader.clock.now()
	turn := t.ledger.Turn(now, t.in)
	t.seq++
	turn.Epoch, turn.Seq = t.leader.epoch, t.seq
	clear(t.in)
	t.in = t.in[:0]
	if err := t.apply(ctx, turn); err != nil {
		return err
	}
	t.deliver(turn)
	for _, look := range t.looks {
		look(now, t.ledger)
	}
	clear(t.looks)
	t.looks = t.looks[:0]
	return nil
}

func (t *turns) load(ctx context.Context) error {
	for _, key := range t.ledger.Unloaded(t.in) {
		var r lease.Record
		err := t.retry(ctx, "loading a key", func() (err error) {
			r, err = t.leader.config.Mirror.Load(ctx, key)
			return err
		})
		if err != nil {
			return fmt.Errorf("coordinator: loading %q: %w", key, err)
		}
		t.ledger.Restore(r)
	}
	return nil
}

// apply records the turn. After any error but a lost seat the very same turn
// goes again under the same number: it may have been recorded, and a number
// never serves two turns.
func (t *turns) apply(ctx context.Context, turn *lease.Turn) error {
	err := t.retry(ctx, "recording a turn", func() error { return t.leader.config.Mirror.Apply(ctx, turn) })
	if err != nil {
		return fmt.Errorf("coordinator: recording turn %d: %w", turn.Seq, err)
	}
	return nil
}

// retry calls do until it works, the seat is lost, or ctx ends, and says once a
// second that it does not work.
func (t *turns) retry(ctx context.Context, what string, do func() error) error {
	var told time.Time
	for {
		err := do()
		if err == nil || errors.Is(err, lease.ErrFenced) || errors.Is(err, lease.ErrGap) {
			return err
		}
		if time.Since(told) >= time.Second {
			told = time.Now()
			t.leader.config.Log.Warn("the mirror fails; nothing is answered until it works", "doing", what, "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// deliver sends the answers of a recorded turn. Every channel has room for its
// one answer.
func (t *turns) deliver(turn *lease.Turn) {
	for _, a := range turn.Answers {
		a.Answer.Epoch = turn.Epoch
		if to, ok := t.answers[a.Ticket]; ok {
			delete(t.answers, a.Ticket)
			to <- a.Answer
		}
	}
	for _, r := range turn.Replies {
		r.Reply.Epoch = turn.Epoch
		if to, ok := t.replies[r.Ticket]; ok {
			delete(t.replies, r.Ticket)
			to <- r.Reply
		}
	}
	for _, ticket := range turn.Dropped {
		if to, ok := t.answers[ticket]; ok {
			delete(t.answers, ticket)
			close(to) // reads as an answer without an outcome
		}
	}
	for _, r := range turn.Recalls {
		t.leader.recalls.deliver(r)
	}
}
