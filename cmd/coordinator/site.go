package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"ration/lease"
)

// site is what this process knows of itself: where it is connected, and which partitions
// it leads. It is safe for concurrent use.
type site struct {
	name  string
	cell  string
	state string // where it is kept: memory, disk or redis
	// standsBy says that another one may lead.
	standsBy bool
	policy   *lease.Policy // of the file, when it started
	file     *policyFile
	// connected says that NATS is there now.
	connected func() bool
	// ask asks whoever leads a partition for its status; nil where nobody else can.
	ask      func(ctx context.Context, n int, key lease.Key) ([]byte, error)
	parts    []*part
	stopping atomic.Bool
}

// divide gives the site so many partitions, none of which it leads.
func (s *site) divide(n int) *site {
	for i := range n {
		s.parts = append(s.parts, &part{n: i})
	}
	return s
}

// alive gives nil if the process does its work: while it leads, the turn loops
// answer, or wait for their mirror. A turn loop that waits has the ledger, and goes on
// with it; who would end the process then would forget what the mirror may lack.
func (s *site) alive(ctx context.Context) error {
	if s.stopping.Load() {
		return nil
	}
	for _, p := range s.parts {
		if p.waits() {
			continue
		}
		_, err := p.summary(ctx)
		if err != nil && !p.waits() && !errors.Is(err, errNotLeading) && !errors.Is(err, lease.ErrStopped) {
			return s.of(p, fmt.Errorf("the turn loop does not answer: %w", err))
		}
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
	}
	for _, p := range s.parts {
		var err error
		switch {
		case p.leader.Load() == nil && s.standsBy:
			err = p.standsBy()
		case p.leader.Load() == nil:
			err = p.alone()
		case !p.serving.Load():
			err = errors.New("leading, but not subscribed yet")
		}
		if err != nil {
			return s.of(p, err)
		}
	}
	return nil
}

// of says of which partition an error is, where there are several.
func (s *site) of(p *part, err error) error {
	if len(s.parts) == 1 {
		return err
	}
	return fmt.Errorf("partition %d: %w", p.n, err)
}
