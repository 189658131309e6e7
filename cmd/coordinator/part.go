package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"ration/bus"
	"ration/coordinator"
	"ration/lease"
)

// lookWait is how long the turn loop has to answer a look at it.
const lookWait = time.Second

// part is one partition as this process knows it: whether it leads it, and what it hears
// of it. It is safe for concurrent use.
type part struct {
	n       int
	leader  atomic.Pointer[coordinator.Leader]
	serving atomic.Bool

	coord atomic.Pointer[coordinator.Coordinator] // nil until its state is open
	ears  *bus.Ears                               // nil where nobody else can lead
}

var errNotLeading = errors.New("not leading")

// lead notes that l leads, and gives the function that ends it.
func (p *part) lead(l *coordinator.Leader) (end func()) {
	p.leader.Store(l)
	return func() {
		p.serving.Store(false)
		p.leader.Store(nil)
	}
}

// waits says that the turn loop waits for its mirror, which does not answer.
func (p *part) waits() bool {
	l := p.leader.Load()
	return l != nil && l.MirrorAway()
}

// standsBy gives nil if the partition, which is not served here, would be if its leader
// went, or why not.
func (p *part) standsBy() error {
	coord := p.coord.Load()
	if coord == nil {
		return errors.New("no answer from Redis")
	}
	switch _, _, leads := coord.Known(); {
	case leads:
		return errors.New("it has the seat, and serves nobody until Redis answers")
	case !coord.Well():
		return errors.New("no answer from Redis")
	}
	return nil
}

// alone says why the partition is not served here, where nobody else can.
func (p *part) alone() error {
	if coord := p.coord.Load(); coord != nil {
		if _, _, leads := coord.Known(); leads {
			return errors.New("it has the seat, and serves nobody until its state can be written")
		}
	}
	return errNotLeading
}

// summary asks the turn loop for the totals.
func (p *part) summary(ctx context.Context) (lease.Status, error) {
	return p.look(ctx, (*coordinator.Leader).Summary)
}

// status asks the turn loop for a key, or for all with an empty one.
func (p *part) status(ctx context.Context, key lease.Key) (lease.Status, error) {
	return p.look(ctx, func(l *coordinator.Leader, ctx context.Context) (lease.Status, error) { return l.Status(ctx, key) })
}

func (p *part) look(ctx context.Context, at func(*coordinator.Leader, context.Context) (lease.Status, error)) (lease.Status, error) {
	l := p.leader.Load()
	if l == nil {
		return lease.Status{}, errNotLeading
	}
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	return at(l, ctx)
}
