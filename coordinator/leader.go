package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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

func newLeader(c Config, epoch lease.Epoch) *Leader {
	return &Leader{
		config:  c,
		epoch:   epoch,
		clock:   startClock(),
		inbox:   make(chan envelope, inboxSize),
		stopped: make(chan struct{}),
	}
}

// clock is ledger time: it starts at the wall clock's and advances with the
// monotonic one, so that no step of the wall clock moves it.
type clock struct {
	base   time.Time
	origin algo.Instant
}

func startClock() clock {
	now := time.Now()
	return clock{now, algo.Instant(now.UnixNano())}
}

func (c clock) now() algo.Instant { return c.origin.Add(time.Since(c.base)) }

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
		err = fmt.Errorf("%w: a newer copy of the request took its place, or it was given up", lease.ErrStopped)
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
		err := retry(ctx, func() (err error) {
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
	err := retry(ctx, func() error { return t.leader.config.Mirror.Apply(ctx, turn) })
	if err != nil {
		return fmt.Errorf("coordinator: recording turn %d: %w", turn.Seq, err)
	}
	return nil
}

// retry calls do until it works, the seat is lost, or ctx ends.
func retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || errors.Is(err, lease.ErrFenced) || errors.Is(err, lease.ErrGap) {
			return err
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

// recalls hands recalls to whoever listens for their holder, or for all.
type recalls struct {
	mu   sync.Mutex
	next int
	to   map[int]func(lease.Recall)
}

// Recalls calls got, which must not block, for each recall addressed to h until
// ctx ends.
func (l *Leader) Recalls(ctx context.Context, h lease.Holder, got func(lease.Recall)) error {
	return l.AllRecalls(ctx, func(r lease.Recall) {
		if r.Holder == h {
			got(r)
		}
	})
}

// AllRecalls calls got, which must not block, for every recall until ctx ends.
func (l *Leader) AllRecalls(ctx context.Context, got func(lease.Recall)) error {
	id := l.recalls.add(got)
	defer l.recalls.remove(id)
	select {
	case <-ctx.Done():
		return nil
	case <-l.stopped:
		return lease.ErrStopped
	}
}

func (r *recalls) add(got func(lease.Recall)) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == nil {
		r.to = map[int]func(lease.Recall){}
	}
	r.next++
	r.to[r.next] = got
	return r.next
}

func (r *recalls) remove(id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.to, id)
}

func (r *recalls) deliver(x lease.Recall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, got := range r.to {
		got(x)
	}
}
