package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/lease"
)

const (
	// askAgainEvery is how often a coordinator that is just stopping is asked
	// whether it has stopped.
	askAgainEvery = 50 * time.Millisecond
	// asks is into how many questions the wait is divided at least: one that goes to
	// a coordinator that was killed this very moment is never answered.
	asks = 4
)

// alone gives nil if nobody leads the cell on the NATS system at where, or says
// who does: two leaders would each grant the whole limit. Whoever cannot be made
// out within the wait counts as a leader.
func alone(ctx context.Context, asked *bus.Client, connected func() bool, cell, where string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		body, err := ask(ctx, asked, wait/asks)
		switch {
		case err == nil:
			return rival(body, cell, where)
		case errors.Is(err, lease.ErrNoCoordinator) && connected(): // else it is NATS that is away
			return nil
		case errors.Is(err, bus.ErrPermission):
			return fmt.Errorf("asking whether somebody leads cell %s on NATS at %s already: %w", cell, where, err)
		}
		select {
		case <-ctx.Done():
			return unclear(cell, where, err)
		case <-time.After(askAgainEvery):
		}
	}
}

func ask(ctx context.Context, asked *bus.Client, wait time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return asked.Status(ctx, "")
}

// unclear is the error of a start where nobody said whether somebody leads. It is
// none of those that err may be: nothing was found missing.
func unclear(cell, where string, err error) error {
	return &cli.Exit{Code: cli.Failed, Err: fmt.Errorf("whether somebody leads cell %s on NATS at %s already cannot be told (%w); if so stop it, or take another cell with --cell", cell, where, err)}
}

// rival is the error of a start beside the leader that told body.
func rival(body []byte, cell, where string) error {
	leader := "another coordinator"
	if d, err := parseDocument(body); err == nil && d.Leader != "" {
		leader = cli.Printable(d.Leader, 60)
	}
	return fmt.Errorf("%s leads cell %s on NATS at %s already; stop it, or take another cell with --cell", leader, cell, where)
}
