package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"ration/cmd/internal/cli"
	"ration/coordinator"
	"ration/lease"
)

// lookWait is how long the turn loop has to answer a look at it.
const lookWait = time.Second

// site is what this process knows of itself: where it is connected, and whether
// it leads. It is safe for concurrent use.
type site struct {
	name  string
	cell  string
	state string // where it is kept: memory, disk or redis
	// standsBy says that another one may lead.
	standsBy bool
	policy   *lease.Policy
	// connected says that NATS is there now.
	connected func() bool
	leader    atomic.Pointer[coordinator.Leader]
	serving   atomic.Bool
	stopping  atomic.Bool
}

// lead notes that l leads, and gives the function that ends it.
func (s *site) lead(l *coordinator.Leader) (end func()) {
	s.leader.Store(l)
	return func() {
		s.serving.Store(false)
		s.leader.Store(nil)
	}
}

// alive gives nil if the process does its work: while it leads, the turn loop
// answers.
func (s *site) alive(ctx context.Context) error {
	if s.stopping.Load() {
		return nil
	}
	if _, err := s.summary(ctx); err != nil && !errors.Is(err, errNotLeading) {
		return fmt.Errorf("the turn loop does not answer: %w", err)
	}
	return nil
}

// ready gives nil if requests are answered here now, or would be if the leader went,
// or why not.
func (s *site) ready() error {
	switch {
	case s.stopping.Load():
		return errors.New("it is stopping")
	case !s.connected():
		return errors.New("not connected to NATS; trying again")
	case s.leader.Load() == nil && s.standsBy:
		return nil // it is ready to take over
	case s.leader.Load() == nil:
		return errNotLeading
	case !s.serving.Load():
		return errors.New("leading, but not subscribed yet")
	}
	return nil
}

var errNotLeading = errors.New("not leading")

// summary asks the turn loop for the totals.
func (s *site) summary(ctx context.Context) (lease.Status, error) {
	return s.look(ctx, (*coordinator.Leader).Summary)
}

// status asks the turn loop for a key, or for all with an empty one.
func (s *site) status(ctx context.Context, key lease.Key) (lease.Status, error) {
	return s.look(ctx, func(l *coordinator.Leader, ctx context.Context) (lease.Status, error) { return l.Status(ctx, key) })
}

func (s *site) look(ctx context.Context, at func(*coordinator.Leader, context.Context) (lease.Status, error)) (lease.Status, error) {
	l := s.leader.Load()
	if l == nil {
		return lease.Status{}, errNotLeading
	}
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	return at(l, ctx)
}

// document gives the status as it goes out over NATS.
func (s *site) document(ctx context.Context, key lease.Key) (any, error) {
	l := s.leader.Load()
	if l == nil {
		return nil, lease.ErrStopped
	}
	status, err := s.status(ctx, key)
	if err != nil {
		return nil, err
	}
	d := newDocument(status)
	d.Cell = s.cell
	d.Leader = s.name
	d.Version = cli.Version()
	d.State = s.state
	d.Unknown = key != "" && s.policy.Unknown == lease.RefuseUnknown && len(s.policy.Match(key)) == 0
	d.Partitions = []partition{{N: 0, Leader: s.name, Epoch: l.Epoch().Number}}
	return d, nil
}
