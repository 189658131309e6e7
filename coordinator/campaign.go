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
		case errors.Is(err, lease.ErrPartitions), errors.Is(err, lease.ErrFormat), errors.Is(err, lease.ErrRival):
			return lease.Seat{}, err
		case err != nil && time.Since(told) >= time.Second:
			told = time.Now()
			c.config.Log.Warn("the mirror fails; no seat can be won until it works", "error", err)
		}
		if err := pause(ctx, c.config.LookEvery); err != nil {
			return lease.Seat{}, err
		}
	}
}

// pause waits for d, or for ctx to end.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// tell says who led before, and what of that time its leader does not know: whoever looks
// at what is free would wonder.
func (c *Coordinator) tell(s lease.Seat) {
	log := c.config.Log.With("epoch", s.Epoch.Number)
	if c.config.Lease.Unmirrored {
		return // the start says it
	}
	log.Info("won the seat", "after", c.before)
	switch {
	case s.Fresh:
		log.Info("nothing is recorded of before; starting afresh, with every limit free")
	case s.Lost.Epoch == s.Epoch.Number:
		log.Warn("the mirror has lost what it had; a key that nobody remembers counts as fully spent")
	case s.Lagged.Epoch == s.Epoch.Number:
		log.Warn("the mirror was started again; what could have been granted since its last record is charged", "lag", s.Lagged.Lag)
	}
}

// look looks once at the seat, and campaigns if it is time to.
func (c *Coordinator) look(ctx context.Context) (seat lease.Seat, won bool, err error) {
	within, cancel := context.WithTimeout(ctx, c.config.Seat.TTL)
	defer cancel()
	seen, err := c.config.Elector.Look(within)
	c.well.Store(err == nil)
	if err == nil {
		err = c.candidate.Divided(seen)
	}
	if err != nil {
		return seat, false, err
	}
	if seen.Epoch != (lease.Epoch{}) {
		c.agree()
	}
	c.learn(within, seen)
	heard := c.config.Hear(seen)
	next, campaign, won := c.candidate.Watch(c.elapsed(), wall(), seen, heard)
	c.know()
	if err := c.candidate.Rival(c.elapsed(), heard); err != nil {
		return seat, false, err
	}
	if !campaign {
		if won {
			c.candidate.Won(next)
		}
		return next, won, nil
	}
	next.Epoch.Mark = rand.Uint64()
	if next.Mirror == 0 {
		next.Mirror = rand.Uint64() | 1
	}
	c.candidate.Bid(next.Epoch)
	c.before = seen.Name
	switch err := c.config.Elector.Campaign(within, seen, next); {
	case errors.Is(err, lease.ErrMoved):
		return seat, false, nil
	case err != nil:
		return seat, false, err
	}
	c.candidate.Won(next)
	c.know()
	c.agree()
	return next, true, nil
}

// agree notes that the mirror has as many partitions.
func (c *Coordinator) agree() { c.agreeing.Do(func() { close(c.agreed) }) }

// know lets others be told what the candidate knows.
func (c *Coordinator) know() {
	number, mirror := c.candidate.Known()
	c.number.Store(number)
	c.mirror.Store(mirror)
}
