package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ration/lease"
)

// Config says what to coordinate. DefaultConfig is complete but for the policy. All
// durations are above 0.
type Config struct {
	// Policy is required. It is in force where the mirror has none; else that one is.
	Policy *lease.Policy
	// Lease holds the ledger's bounds. Unmirrored in it is set by New: it is so
	// where the Mirror is that of DefaultConfig.
	Lease lease.Config
	// Mirror keeps the ledger's copy, Elector the seat.
	Mirror  lease.Mirror
	Elector lease.Elector
	// Seat says how the coordinator campaigns. Available in it is set by New, as the policy
	// says.
	Seat CandidateConfig
	// RenewEvery is how often the leader shows that it lives, and LookEvery how often a
	// standby looks at the seat.
	RenewEvery time.Duration
	LookEvery  time.Duration
	// Hear tells what the network says of the leader of a seat. It does not block. Nil is
	// for a coordinator that can always be asked, and hears nobody.
	Hear func(lease.Seat) Heard
	// Yield names the coordinator to which the leader hands its partition over from now on,
	// or gives "". A leader asks it at each renewal; it does not block. Nil is for one that
	// keeps its partition.
	Yield func() string
	// Log gets what an operator acts on.
	Log *slog.Logger
}

// DefaultConfig gives a coordinator in memory: it leads at once, and a restart
// forgets what was spent.
func DefaultConfig(p *lease.Policy) Config {
	return Config{
		Policy:  p,
		Lease:   lease.DefaultConfig(),
		Mirror:  alone{},
		Elector: alone{},
		Seat: CandidateConfig{
			Partitions: 1,
			TTL:        2 * time.Second,
			Early:      100 * time.Millisecond,
			Lag:        2 * time.Second,
		},
		RenewEvery: 50 * time.Millisecond,
		LookEvery:  10 * time.Millisecond,
		Log:        slog.New(slog.DiscardHandler),
	}
}

// Validate reports everything that is missing or does not fit. It changes
// nothing.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("coordinator: "+format, args...))
		}
	}
	need(c.Policy != nil, "there is no policy")
	need(c.Mirror != nil && c.Elector != nil, "a mirror and an elector are both needed")
	need(c.RenewEvery > 0, "renewal interval %v is not above 0", c.RenewEvery)
	need(c.LookEvery > 0, "interval of looks %v is not above 0", c.LookEvery)
	need(c.Seat.TTL >= 4*c.RenewEvery, "seat TTL %v is under four renewals of %v", c.Seat.TTL, c.RenewEvery)
	need(c.Seat.Early > 0 && c.Seat.Early <= c.Seat.TTL, "early campaigns after %v are not within the seat TTL %v", c.Seat.Early, c.Seat.TTL)
	need(c.Seat.Lag >= 0, "lag %v is negative", c.Seat.Lag)
	need(c.Seat.Partitions > 0, "%d partitions are not above 0", c.Seat.Partitions)
	need(c.Log != nil, "there is no log; use slog.DiscardHandler for none")
	return errors.Join(append(errs, c.Lease.Validate())...)
}

// Coordinator campaigns for the seat of one partition, and leads.
type Coordinator struct {
	config    Config
	base      time.Time
	candidate *Candidate
	policy    atomic.Pointer[InForce]
	number    atomic.Uint64 // see Known
	mirror    atomic.Uint64
	leads     atomic.Bool
	well      atomic.Bool // the last look at the seat had an answer
	agreeing  sync.Once
	agreed    chan struct{}
	before    string // who had the seat that was campaigned for last; empty for nobody
}

// New checks the config and gives a coordinator.
func New(c Config) (*Coordinator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Lease.Unmirrored = c.Mirror == lease.Mirror(alone{})
	c.Seat.Available = c.Policy.Mirror == lease.AvailableMirror
	if c.Hear == nil {
		c.Hear = func(lease.Seat) Heard { return Heard{Connected: true} }
	}
	if c.Yield == nil {
		c.Yield = func() string { return "" }
	}
	made := &Coordinator{config: c, base: time.Now(), candidate: NewCandidate(c.Seat), agreed: make(chan struct{})}
	made.policy.Store(&InForce{Policy: c.Policy})
	return made, nil
}

// Agreed is closed once the mirror is known to be of a cell of as many partitions: then
// nobody can lead another number of them beside it.
func (c *Coordinator) Agreed() <-chan struct{} { return c.agreed }

// Well says that the mirror answered when the coordinator last looked at the seat. It may
// be called from any goroutine.
func (c *Coordinator) Well() bool { return c.well.Load() }

// Known tells the highest epoch that the coordinator has seen, what names its mirror, 0
// if that has no seat, and whether it leads. It may be called from any goroutine.
func (c *Coordinator) Known() (number, mirror uint64, leads bool) {
	return c.number.Load(), c.mirror.Load(), c.leads.Load()
}

// elapsed is the coordinator's own clock.
func (c *Coordinator) elapsed() time.Duration { return time.Since(c.base) }

// Run campaigns, and calls serve with a leader while the seat is won and the mirror
// works; where that is away for a seat TTL, serve is stopped, and called again with the
// same leader when it is back. The context given to serve ends when ctx does, the
// seat is lost or the mirror is away; serve then returns. When the seat is lost the
// leader refuses further calls with lease.ErrStopped. Run
// returns when ctx ends, with nil, or when serve fails by itself, with its
// error, or with what makes it impossible to ever lead: lease.ErrPartitions,
// lease.ErrFormat or lease.ErrRival. Call it once at a time.
func (c *Coordinator) Run(ctx context.Context, serve func(context.Context, *Leader) error) error {
	for {
		seat, err := c.campaign(ctx)
		switch {
		case ctx.Err() != nil:
			if err == nil { // won in the last instant
				c.resign(ctx, seat.Epoch)
			}
			return nil
		case err != nil:
			return fmt.Errorf("coordinator: campaigning: %w", err)
		}
		c.tell(seat)
		c.leads.Store(true)
		err = c.lead(ctx, seat, serve)
		c.leads.Store(false)
		if errors.Is(err, errReformed) || errors.Is(err, lease.ErrPolicy) {
			c.config.Log.Info("leading anew under another policy", "epoch", seat.Epoch.Number)
			continue
		}
		if errors.Is(err, errYielded) {
			c.config.Log.Info("handed over", "epoch", seat.Epoch.Number, "why", err)
			continue
		}
		c.candidate.Deposed(c.elapsed())
		switch {
		case ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)):
			return nil
		case errors.Is(err, lease.ErrFenced), errors.Is(err, errDeaf):
			c.config.Log.Warn("lost the seat", "epoch", seat.Epoch.Number, "error", err)
		default:
			return err
		}
	}
}

// resign gives the seat up, also when ctx has ended.
func (c *Coordinator) resign(ctx context.Context, epoch lease.Epoch) {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := c.config.Elector.Resign(clean, epoch)
	if err != nil && !errors.Is(err, lease.ErrFenced) && !errors.Is(err, lease.ErrLost) {
		c.config.Log.Warn("resigning", "error", err)
	}
}
