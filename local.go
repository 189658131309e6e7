package ration

import (
	"context"
	"errors"
	"sync"

	"ration/coordinator"
	"ration/lease"
	"ration/worker"
)

// Local limits within this process alone: the same limiters, with no NATS and no
// other process. The policy is the text of a policy file. Its state is forgotten
// on Close. The error says what is wrong with the policy, and where.
//
// In a testing/synctest bubble it runs on the bubble's clock; close it there.
func Local(policy string, opts ...Option) (*Client, error) {
	s := newSettings(opts)
	s.worker.MonotonicOnly = true
	p, err := lease.ParsePolicy("policy", []byte(policy))
	if err != nil {
		return nil, named(err)
	}
	config := coordinator.DefaultConfig(p)
	config.Log = s.worker.Log
	c, err := coordinator.New(config)
	if err != nil {
		return nil, named(err)
	}
	stop, leader := lead(c)
	w, err := worker.New(leader, s.worker)
	if err != nil {
		return nil, named(errors.Join(err, stop()))
	}
	return &Client{worker: w, after: stop}, nil
}

// lead runs a coordinator until stop is called, and gives its leader.
func lead(c *coordinator.Coordinator) (stop func() error, leader *coordinator.Leader) {
	ctx, cancel := context.WithCancel(context.Background())
	leaders := make(chan *coordinator.Leader, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			leaders <- l
			<-ctx.Done()
			return nil
		})
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	return stop, <-leaders // in memory the seat is won at once, and never lost
}
