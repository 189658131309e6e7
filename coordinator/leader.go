package coordinator

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"ration/algo"
	"ration/lease"
)

// Leader grants leases from its ledger while it has the seat. It is safe for
// concurrent use.
type Leader struct {
	config  Config
	seat    lease.Seat // as it was won
	clock   clock
	inbox   *inbox
	away    away
	epoch   atomic.Pointer[lease.Epoch]
	applied atomic.Uint64 // the number of the last turn that is recorded
	holders atomic.Int64  // known after it
	stopped chan struct{} // closed when no more turns are taken
	behind  atomic.Pointer[Behind]
	later   atomic.Uint64 // the highest epoch that others were ever heard to have seen
	policy  atomic.Pointer[InForce]
	// revision is that of the policy of the last turn, also while that is not recorded yet.
	revision atomic.Uint64
	mode     lease.MirrorMode // of the policy when it began to lead

	recalls recalls
}

var _ lease.Lessor = (*Leader)(nil)

func newLeader(c Config, seat lease.Seat, p InForce) *Leader {
	l := &Leader{
		mode:    p.Policy.Mirror,
		config:  c,
		seat:    seat,
		clock:   clockFrom(seat.Pulse.Instant),
		inbox:   newInbox(),
		stopped: make(chan struct{}),
	}
	l.epoch.Store(&seat.Epoch)
	l.policy.Store(&p)
	return l
}

// Epoch is that of this leadership. It is another one after the mirror has lost what it
// had, and the leader has written it back.
func (l *Leader) Epoch() lease.Epoch { return *l.epoch.Load() }

// Behind tells how far the mirror is behind what was granted, under a policy that lets
// grants go on without it; false where it is not.
func (l *Leader) Behind() (Behind, bool) {
	if b := l.behind.Load(); b != nil {
		return *b, true
	}
	return Behind{}, false
}

// Spread is the time over which those who waited for the leader before should ask this
// one: so long that it answers all that this may be, 20,000 a second, and a second at
// most, for who waits longer asks again anyhow.
func (l *Leader) Spread() time.Duration {
	return min(time.Second, time.Duration(l.seat.Pulse.Holders)*50*time.Microsecond)
}

// hear gives what is heard of others: of their epochs, all that ever was, since who has led
// meanwhile may be heard no more. While one of them has another mirror nothing is remembered:
// the epoch may be of that.
func (l *Leader) hear() Heard {
	h := l.config.Hear(lease.Seat{Epoch: l.Epoch()})
	if len(h.Rivals) > 0 {
		h.Number = max(h.Number, l.later.Load())
		return h
	}
	for was := l.later.Load(); h.Number != was; was = l.later.Load() {
		if h.Number < was {
			h.Number = was
		} else {
			l.later.CompareAndSwap(was, h.Number)
		}
	}
	return h
}

// poke asks for a turn although nothing has come.
func (l *Leader) poke() { l.inbox.wake() }

// Acquire asks once and waits for the answer, for as long as ctx and the
// request's patience allow. When ctx ends the request stays in line until it is
// given up, asked for again, or its holder has been silent for a while.
func (l *Leader) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	return await(ctx, func(told func(lease.Answer, error)) { l.Begin(r, told) })
}

// Begin is Acquire without the waiting: told is called once with what Acquire
// would give, from any goroutine, also from within Begin. It must not block.
// Whoever begins bounds how many of its requests are under way.
func (l *Leader) Begin(r lease.Request, told func(lease.Answer, error)) {
	if err := r.Validate(); err != nil {
		told(lease.Answer{}, err)
		return
	}
	if r.Patience <= 0 && l.away.lasts(hasty) {
		told(lease.Answer{}, lease.ErrMirrorAway)
		return
	}
	l.inbox.put(envelope{arrived: l.clock.now(), request: r, one: told})
}

// BeginAll takes up the requests of one message in one turn. told is called once,
// as by Begin, when that turn is recorded, with an answer for each in their order. A
// request that has to wait is answered lease.Waiting and keeps its place in the line:
// what becomes of it is the answer to its next copy. An answer without an outcome
// says that a newer copy took its place, or that nobody waits for it. The requests are
// the leader's from here on.
func (l *Leader) BeginAll(rs []lease.Request, told func([]lease.Answer, error)) {
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			told(nil, fmt.Errorf("request %d of %d: %w", i+1, len(rs), err))
			return
		}
	}
	l.inbox.put(envelope{arrived: l.clock.now(), requests: rs, all: told})
}

// Report tells what a holder did, and waits until it is recorded.
func (l *Leader) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	return await(ctx, func(told func(lease.Reply, error)) { l.BeginReport(r, told) })
}

// BeginReport is Report without the waiting: told is called once with what Report
// would give, as by Begin.
func (l *Leader) BeginReport(r lease.Report, told func(lease.Reply, error)) {
	if err := r.Validate(); err != nil {
		told(lease.Reply{}, err)
		return
	}
	l.inbox.put(envelope{arrived: l.clock.now(), report: &r, reply: told})
}

// Look calls f between two turns with the ledger, which is f's until it
// returns.
func (l *Leader) Look(ctx context.Context, f func(now algo.Instant, l *lease.Ledger)) error {
	_, err := await(ctx, func(told func(struct{}, error)) {
		l.inbox.put(envelope{
			look:   f,
			looked: func(err error) { told(struct{}{}, err) },
		})
	})
	return err
}

// Status tells what the ledger holds on a key, or on all with an empty one.
func (l *Leader) Status(ctx context.Context, key lease.Key) (lease.Status, error) {
	var s lease.Status
	if err := l.Look(ctx, func(now algo.Instant, ledger *lease.Ledger) { s = ledger.Status(now, key) }); err != nil {
		return lease.Status{}, err // s may yet be written
	}
	return s, nil
}

// Summary tells the totals of the ledger, and nothing of single keys.
func (l *Leader) Summary(ctx context.Context) (lease.Status, error) {
	var s lease.Status
	if err := l.Look(ctx, func(now algo.Instant, ledger *lease.Ledger) { s = ledger.Summary(now) }); err != nil {
		return lease.Status{}, err // s may yet be written
	}
	return s, nil
}

// await begins something and waits for what is told of it, or for ctx to end.
func await[T any](ctx context.Context, begin func(told func(T, error))) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	type outcome struct {
		got T
		err error
	}
	to := make(chan outcome, 1)
	begin(func(got T, err error) { to <- outcome{got, err} })
	select {
	case o := <-to:
		return o.got, o.err
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}
