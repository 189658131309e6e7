package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"ration/lease"
)

var (
	// errServed says that serve has returned by itself.
	errServed = errors.New("coordinator: served")
	// errDeaf says that the leader cannot be asked.
	errDeaf = errors.New("coordinator: the leader is cut off from those who ask")
	// errYielded says that another coordinator is to lead.
	errYielded = errors.New("coordinator: another coordinator leads fewer partitions")
)

// lead takes turns, shows that it lives, and serves, until ctx ends, the seat is lost,
// or serve returns by itself. At the end the seat is given up.
func (c *Coordinator) lead(ctx context.Context, seat lease.Seat, serve func(context.Context, *Leader) error) error {
	c.config.Log.Debug("leading", "epoch", seat.Epoch.Number)
	p, err := c.force(ctx, seat)
	if err != nil {
		c.resign(ctx, seat.Epoch)
		return err
	}
	l := newLeader(c.config, seat, p)
	defer func() {
		p := l.Policy()
		c.policy.Store(&p)
		c.candidate.Led(c.elapsed(), l.clock.now(), l.Epoch())
		c.resign(ctx, l.Epoch())
	}()
	g, ctx := errgroup.WithContext(ctx)
	turning, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	g.Go(func() error { // until serve has returned, so that its last calls are answered
		err := l.run(turning)
		switch cause := context.Cause(turning); {
		case errors.Is(cause, errServed):
			return nil
		case cause != nil:
			return cause
		}
		return err
	})
	g.Go(func() error { return c.renew(ctx, l) })
	g.Go(func() error {
		err := c.listen(ctx, l)
		if errors.Is(err, lease.ErrFenced) { // not even the last calls are answered
			stop(err)
		}
		return err
	})
	g.Go(func() error {
		defer stop(errServed)
		err := c.serve(ctx, l, serve)
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

// serve lets the leader be asked for as long as its mirror works, again and again.
func (c *Coordinator) serve(ctx context.Context, l *Leader, serve func(context.Context, *Leader) error) error {
	for {
		serving, suspend := context.WithCancel(ctx)
		suspended := l.away.onLong(c.config.Seat.TTL, suspend)
		err := serve(serving, l)
		suspend()
		if !suspended() || ctx.Err() != nil || err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		c.config.Log.Warn("the mirror is away; nobody is served until it works")
		if err := l.away.wait(ctx); err != nil {
			return nil
		}
		c.config.Log.Info("the mirror works again")
	}
}

// renew shows that the leader lives until ctx ends. One that has lost its seat gives up in
// a turn, or wins it back there if that was lost with the mirror's state.
func (c *Coordinator) renew(ctx context.Context, l *Leader) error {
	tick := time.NewTicker(c.config.RenewEvery)
	defer tick.Stop()
	var looked time.Time
	pulse := lease.Pulse{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		epoch := l.Epoch()
		if pulse.Run = ""; time.Since(looked) > time.Second { // a mirror that has lost nothing is whole in its new life
			looked = time.Now()
			pulse.Run = c.running(ctx, l)
		}
		pulse.Beat++
		pulse.Instant, pulse.Wall, pulse.Holders = l.clock.now(), wall(), int(l.holders.Load())
		pulse.Revision = l.revision.Load()
		err := c.within(ctx, func(ctx context.Context) error { return c.config.Elector.Renew(ctx, epoch, pulse) })
		switch {
		case l.Epoch() != epoch: // won anew meanwhile
		case errors.Is(err, lease.ErrPolicy) && l.revision.Load() > pulse.Revision: // its own change has come first
		case errors.Is(err, lease.ErrPolicy):
			return err
		case errors.Is(err, lease.ErrFenced), errors.Is(err, lease.ErrLost): // the next turn finds by whom: it may be its own bid, unheard
			l.poke()
		case err == nil:
			if _, behind := l.Behind(); behind {
				continue // what the mirror lacks would be forgotten
			}
			if to := c.config.Yield(); to != "" {
				return fmt.Errorf("%w: %s", errYielded, to)
			}
		}
	}
}

// running gives the life of the mirror's process if it is another than the seat says, and
// has the last turn: then it has all.
func (c *Coordinator) running(ctx context.Context, l *Leader) (run string) {
	_ = c.within(ctx, func(ctx context.Context) error {
		seat, err := c.config.Elector.Look(ctx)
		if err == nil && seat.Epoch == l.Epoch() && seat.Seq == l.applied.Load() && seat.Run != seat.Running {
			run = seat.Running
		}
		return err
	})
	return run
}

// within gives something that asks the mirror a seat TTL.
func (c *Coordinator) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Seat.TTL)
	defer cancel()
	return do(ctx)
}
