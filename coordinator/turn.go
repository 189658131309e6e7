package coordinator

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"ration/algo"
	"ration/lease"
)

// run takes turns until ctx ends or the mirror says that the seat is lost.
func (l *Leader) run(ctx context.Context) error {
	defer close(l.stopped)
	p := l.Policy()
	t := turns{
		leader:  l,
		mirror:  mirror{leader: l},
		ledger:  lease.NewLedger(p.Policy, l.config.Lease),
		waiting: map[lease.Ticket]func(lease.Answer, error){},
	}
	t.mirror.course = NewCourse(l.seat, t.ledger, p.Revision)
	_, revision := t.ledger.Policy()
	l.revision.Store(revision)
	l.policy.Store(&InForce{p.Policy, revision})
	asking, follows, end := t.mirror.begin(ctx)
	defer end()
	defer t.stop()
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errServed) { // else another leads
				t.finish(asking)
			}
			return ctx.Err()
		case follow := <-follows:
			if err := follow(); err != nil {
				return err
			}
		case <-l.inbox.some:
			runtime.Gosched() // who is about to ask comes into this turn too
		case <-wake.C:
		}
		t.gather()
		if err := t.step(asking); err != nil {
			return err
		}
		if err := t.mirror.loadSome(asking, t.ledger); err != nil && !errors.Is(err, errAway) {
			return err
		}
		if at, ok := t.next(); ok {
			wake.Reset(max(0, at.Sub(l.clock.now())))
		}
	}
}

// turns is the state of the turn loop. One goroutine owns it.
type turns struct {
	leader *Leader
	mirror mirror
	ledger *lease.Ledger
	ticket lease.Ticket // the last one given

	// Of this turn: what came, the messages in it and where each came from.
	// The ticket of in[i] is first+i.
	came  []envelope
	first lease.Ticket
	in    []lease.Message
	from  []route

	// early is changes that wait until all that the mirror has is loaded.
	early []envelope

	reforms reforms

	// waiting is who asked in an earlier turn and has no answer yet.
	waiting map[lease.Ticket]func(lease.Answer, error)
}

// route is the way back of an answer: its envelope, and its place among those that
// are told together.
type route struct {
	envelope, place int
	answered        bool
}

// gather takes all that has arrived, but for changes that come too early.
func (t *turns) gather() {
	t.came = t.leader.inbox.take(t.came)
	if t.mirror.course.Loaded() {
		t.came, t.early = append(t.came, t.early...), nil
	} else {
		t.came = slices.DeleteFunc(t.came, func(e envelope) bool {
			if e.whole {
				t.early = append(t.early, e)
			}
			return e.whole
		})
	}
	t.reforms.gather(t.came)
	t.number()
}

// number gives each message that came a ticket.
func (t *turns) number() {
	t.first = t.ticket + 1
	clear(t.in)
	t.in, t.from = t.in[:0], t.from[:0]
	for i := range t.came {
		e := &t.came[i]
		switch {
		case e.one != nil:
			t.add(lease.Message{Arrived: e.arrived, Request: &e.request}, route{envelope: i})
		case e.report != nil:
			t.add(lease.Message{Arrived: e.arrived, Report: e.report}, route{envelope: i})
		case e.all != nil:
			e.answers = make([]lease.Answer, len(e.requests))
			for j := range e.requests {
				if e.unknown != nil && e.unknown[j] {
					continue
				}
				t.add(lease.Message{Arrived: e.arrived, Request: &e.requests[j]}, route{envelope: i, place: j})
			}
		}
	}
}

func (t *turns) add(m lease.Message, from route) {
	t.ticket++
	m.Ticket = t.ticket
	t.in, t.from = append(t.in, m), append(t.from, from)
}

// about gives the keys that changes are about.
func (t *turns) about() (keys []lease.Key) {
	for i := range t.came {
		if e := &t.came[i]; e.about != "" {
			keys = append(keys, e.about)
		}
	}
	return keys
}

// stop tells all who wait that no more turns are taken.
func (t *turns) stop() {
	rest := append(t.leader.inbox.close(), t.early...)
	t.reforms.fail(lease.ErrStopped)
	for i := range t.came {
		if t.came[i].policy == nil { // else it is among the reforms, or was
			t.came[i].fail(lease.ErrStopped)
		}
	}
	for i := range rest {
		rest[i].fail(lease.ErrStopped)
	}
	for _, told := range t.waiting {
		told(lease.Answer{}, lease.ErrStopped)
	}
}

// step takes a turn: load, read the instant, step the ledger, record, answer.
func (t *turns) step(ctx context.Context) error {
	t.reform()
	switch err := t.mirror.load(ctx, t.ledger, t.ledger.Unloaded(t.in, t.about()...)); {
	case errors.Is(err, errAway):
		t.withhold()
	case err != nil:
		return err
	}
	for i := range t.came {
		if e := &t.came[i]; e.change != nil && !t.mirror.away() {
			e.change(t.ledger)
		}
	}
	t.ledger.Wall(t.leader.clock.read())
	turn := t.ledger.Turn(t.leader.clock.now(), t.in)
	if err := t.mirror.record(ctx, t.ledger, turn); err != nil {
		return err
	}
	t.deliver(turn)
	return t.reformed()
}

// next is when a turn is wanted without a message.
func (t *turns) next() (algo.Instant, bool) {
	if len(t.early) > 0 && t.mirror.course.Loaded() {
		return t.leader.clock.now(), true
	}
	at, ok := t.ledger.Next()
	if len(t.reforms.waiting) > 0 && t.mirror.even() {
		return t.leader.clock.now(), true
	}
	if again, busy := t.mirror.next(); busy && (!ok || again.Before(at)) {
		return again, true
	}
	return at, ok
}
