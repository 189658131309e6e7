package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"ration/lease"
)

// Config says what to coordinate. DefaultConfig is complete but for the policy.
type Config struct {
	// Policy is required.
	Policy *lease.Policy
	// Lease holds the ledger's bounds. Unmirrored in it is set by New: it is so
	// where the Mirror is that of DefaultConfig.
	Lease lease.Config
	// Mirror keeps the ledger's copy, Elector the seat.
	Mirror  lease.Mirror
	Elector lease.Elector
	// RenewEvery is how often the leader shows that it lives.
	RenewEvery time.Duration
	// Log gets what an operator acts on.
	Log *slog.Logger
}

// DefaultConfig gives a coordinator in memory: it leads at once, and a restart
// forgets what was spent.
func DefaultConfig(p *lease.Policy) Config {
	return Config{
		Policy:     p,
		Lease:      lease.DefaultConfig(),
		Mirror:     alone{},
		Elector:    alone{},
		RenewEvery: 50 * time.Millisecond,
		Log:        slog.New(slog.DiscardHandler),
	}
}

// Validate reports everything that is missing or does not fit. It changes
// nothing.
func (c Config) Validate() error {
	var errs []error
	if c.Policy == nil {
		errs = append(errs, errors.New("coordinator: there is no policy"))
	}
	if c.Mirror == nil || c.Elector == nil {
		errs = append(errs, errors.New("coordinator: a mirror and an elector are both needed"))
	}
	if c.RenewEvery <= 0 {
		errs = append(errs, fmt.Errorf("coordinator: renewal interval %v is not above 0", c.RenewEvery))
	}
	if c.Log == nil {
		errs = append(errs, errors.New("coordinator: there is no log; use slog.DiscardHandler for none"))
	}
	return errors.Join(append(errs, c.Lease.Validate())...)
}

// Coordinator campaigns and leads.
type Coordinator struct {
	config Config
	clock  clock
}

// New checks the config and gives a coordinator.
func New(c Config) (*Coordinator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Lease.Unmirrored = c.Mirror == lease.Mirror(alone{})
	return &Coordinator{c, startClock()}, nil
}

// Run campaigns, and calls serve with a leader each time the seat is won. The
// context given to serve ends when ctx does or the seat is lost; serve then
// returns, and the leader refuses further calls with lease.ErrStopped. Run
// returns when ctx ends, with nil, or when serve fails by itself, with its
// error. Call it once at a time.
func (c *Coordinator) Run(ctx context.Context, serve func(context.Context, *Leader) error) error {
	for {
		epoch, err := c.config.Elector.Campaign(ctx)
		switch {
		case ctx.Err() != nil:
			if err == nil { // won in the last instant
				c.resign(ctx, epoch)
			}
			return nil
		case err != nil:
			return fmt.Errorf("coordinator: campaigning: %w", err)
		}
		err = c.lead(ctx, epoch, serve)
		if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return nil
		}
		if !errors.Is(err, lease.ErrFenced) {
			return err
		}
		c.config.Log.Warn("lost the seat", "epoch", epoch.Number)
	}
}

// errServed says that serve has returned by itself.
var errServed = errors.New("coordinator: served")

func (c *Coordinator) lead(ctx context.Context, epoch lease.Epoch, serve func(context.Context, *Leader) error) error {
	c.config.Log.Debug("leading", "epoch", epoch.Number)
	l := newLeader(c.config, epoch, c.clock)
	defer c.resign(ctx, epoch)
	g, ctx := errgroup.WithContext(ctx)
	turning, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	g.Go(func() error { // until serve has returned, so that its last calls are answered
		err := l.run(turning)
		if errors.Is(context.Cause(turning), errServed) {
			return nil
		}
		return err
	})
	g.Go(func() error { return c.renew(ctx, epoch) })
	g.Go(func() error {
		defer stop(errServed)
		err := serve(ctx, l)
		if err == nil && ctx.Err() == nil {
			return errServed // ends the renewals
		}
		return err
	})
	if err := g.Wait(); !errors.Is(err, errServed) {
		return err
	}
	return nil
}

// resign gives the seat up, also when ctx has ended.
func (c *Coordinator) resign(ctx context.Context, epoch lease.Epoch) {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := c.config.Elector.Resign(clean, epoch); err != nil && !errors.Is(err, lease.ErrFenced) {
		c.config.Log.Warn("resigning", "err", err)
	}
}

func (c *Coordinator) renew(ctx context.Context, epoch lease.Epoch) error {
	tick := time.NewTicker(c.config.RenewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := c.config.Elector.Renew(ctx, epoch); err != nil {
				return fmt.Errorf("coordinator: renewing: %w", err)
			}
		}
	}
}
