package coordinator

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"ration/lease"
)

// campaign looks at the seat until it is won, and gives it; or the error of ctx, or
// one that no waiting helps.
func (c *Coordinator) campaign(ctx context.Context) (lease.Seat, error) {
	var told time.Time
	for {
		seat, won, err := c.look(ctx)
		switch {
		case won:
			return seat, nil
		case ctx.Err() != nil:
			return lease.Seat{}, ctx.Err()
		case errors.Is(err, lease.ErrPartitions), errors.Is(err, lease.ErrFormat):
			return lease.Seat{}, err
		case err != nil && time.Since(told) >= time.Second:
			told = time.Now()
			c.config.Log.Warn("the mirror fails; nobody can lead until it works", "error", err)
		}
		select {
		case <-ctx.Done():
			return lease.Seat{}, ctx.Err()
		case <-time.After(c.config.LookEvery):
		}
	}
}

// look looks once at the seat, and campaigns if it is time to.
func (c *Coordinator) look(ctx context.Context) (seat lease.Seat, won bool, err error) {
	within, cancel := context.WithTimeout(ctx, c.config.Seat.TTL)
	defer cancel()
	seen, err := c.config.Elector.Look(within)
	if err != nil {
		return seat, false, err
	}
	next, campaign, won := c.candidate.Watch(c.elapsed(), wall(), seen, c.config.Hear(seen))
	if !campaign {
		return next, won, nil
	}
	next.Epoch.Mark = rand.Uint64()
	c.candidate.Bid(next.Epoch)
	switch err := c.config.Elector.Campaign(within, seen, next); {
	case errors.Is(err, lease.ErrMoved):
		return seat, false, nil
	case err != nil:
		return seat, false, err
	}
	return next, true, nil
}
