package worker

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"ration/lease"
)

// Config is how a worker behaves. DefaultConfig is complete.
type Config struct {
	// Name is the holder's name, by which people know it. The default is the
	// host's name and the process's number.
	Name string
	// Pool is how each pool behaves.
	Pool PoolConfig
	// Heartbeat is how often the leases held are named, which renews slots.
	Heartbeat time.Duration
	// SendTimeout is how long a report waits for its reply.
	SendTimeout time.Duration
	// MaxCounts is how many leases one report names at most.
	MaxCounts int
	// PauseLimit is how late a timer may ring before the process is taken to
	// have been stopped for so long that it begins a new incarnation. It
	// should be the lessor's slot TTL.
	PauseLimit time.Duration
	// Park is how long a pool that holds and wants nothing stays in memory.
	Park time.Duration
	// MonotonicOnly leaves the boot-time clock alone. It is for a lessor in the
	// same process, whose clock stands still while the machine is suspended.
	MonotonicOnly bool
	// Seed makes the spread of what is asked again repeatable; 0 draws one.
	Seed uint64
	// Log gets what an operator acts on.
	Log *slog.Logger
}

// DefaultConfig gives the defaults.
func DefaultConfig() Config {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return Config{
		Name:        fmt.Sprintf("%s-%d", host, os.Getpid()),
		Pool:        DefaultPoolConfig(),
		Heartbeat:   time.Second,
		SendTimeout: time.Second,
		MaxCounts:   512,
		PauseLimit:  10 * time.Second,
		Park:        time.Minute,
		Log:         slog.New(slog.DiscardHandler),
	}
}

// Validate says which relation does not hold, with both values. It changes
// nothing.
func (c Config) Validate() error {
	switch {
	case c.Name == "":
		return fmt.Errorf("worker: Name is empty; give one that people will know")
	case c.Heartbeat <= 0 || c.SendTimeout <= 0 || c.Park <= 0:
		return fmt.Errorf("worker: Heartbeat is %s, SendTimeout %s and Park %s; all have to be above 0", c.Heartbeat, c.SendTimeout, c.Park)
	case c.PauseLimit <= 2*c.Heartbeat:
		return fmt.Errorf("worker: PauseLimit is %s; it has to be above two heartbeats of %s", c.PauseLimit, c.Heartbeat)
	case c.MaxCounts < 1:
		return fmt.Errorf("worker: MaxCounts is %d; the least is 1", c.MaxCounts)
	case c.Log == nil:
		return fmt.Errorf("worker: Log is nil; use slog.DiscardHandler for none")
	}
	return c.Pool.Validate()
}

// PoolConfig is how a pool behaves. DefaultPoolConfig is complete.
type PoolConfig struct {
	// Class is which class of the lines its requests stand in, see lease.Request; of a
	// worker, that of callers who name none.
	Class string
	// AskAgain is how long an unanswered copy of a request is waited for
	// before the next copy goes.
	AskAgain time.Duration
	// IdleAfter is how long tokens stay at hand without a spend.
	IdleAfter time.Duration
	// AllowIdle is the same for what an Allow did not find, and was fetched for
	// the next one: who asks from time to time has to find it one day.
	AllowIdle time.Duration
	// SlotLinger is how long a slot that nobody local wants is kept for the
	// next local caller; it goes back at once where others wait.
	SlotLinger time.Duration
	// Batch is how much demand one lease should serve while nobody else wants
	// the limit, and MaxBatch the most tokens that are asked for at once.
	Batch    time.Duration
	MaxBatch int64
	// MaxInFlight is how many requests may be under way at once.
	MaxInFlight int
	// Calm is for how long after a grant that waited, or a recall, the limit
	// is taken to be contended.
	Calm time.Duration
	// Patience is how long a request of a caller without a deadline says that it
	// waits; each copy begins it anew. It is above any wait that could work, since
	// a lessor refuses at once what would take longer.
	Patience time.Duration
	// Coalesce is how long a report that is wanted at once may wait for company.
	Coalesce time.Duration
	// BackoffMin and BackoffMax bound the pause after a failure; the pause is
	// drawn between 0 and a bound that doubles from one to the other.
	BackoffMin time.Duration
	BackoffMax time.Duration
	// MaxPoints is how many points of a lease wait to be acknowledged before
	// neighbours are merged, at the later date.
	MaxPoints int
}

// DefaultPoolConfig gives the defaults.
func DefaultPoolConfig() PoolConfig {
	return PoolConfig{
		AskAgain:    time.Second,
		IdleAfter:   250 * time.Millisecond,
		AllowIdle:   2 * time.Second,
		SlotLinger:  2 * time.Millisecond,
		Batch:       100 * time.Millisecond,
		MaxBatch:    1 << 20,
		MaxInFlight: 32,
		Calm:        time.Second,
		Patience:    366 * 24 * time.Hour,
		Coalesce:    time.Millisecond,
		BackoffMin:  25 * time.Millisecond,
		BackoffMax:  250 * time.Millisecond,
		MaxPoints:   64,
	}
}

// Validate says which relation does not hold, with both values. It changes
// nothing.
func (c PoolConfig) Validate() error {
	for _, least := range []struct {
		name string
		d    time.Duration
	}{
		{"AskAgain", c.AskAgain}, {"IdleAfter", c.IdleAfter}, {"Batch", c.Batch},
		{"Patience", c.Patience}, {"BackoffMin", c.BackoffMin},
	} {
		if least.d <= 0 {
			return fmt.Errorf("worker: %s is %s; it has to be above 0", least.name, least.d)
		}
	}
	if fault := lease.ClassFault(c.Class); fault != "" && c.Class != "" {
		return fmt.Errorf("worker: %s; %s", fault, lease.ClassRemedy)
	}
	switch {
	case c.AllowIdle < c.IdleAfter:
		return fmt.Errorf("worker: AllowIdle is %s, below IdleAfter, %s", c.AllowIdle, c.IdleAfter)
	case c.SlotLinger < 0 || c.Calm < 0 || c.Coalesce < 0:
		return fmt.Errorf("worker: SlotLinger is %s, Calm %s and Coalesce %s; none may be below 0", c.SlotLinger, c.Calm, c.Coalesce)
	case c.BackoffMax < c.BackoffMin:
		return fmt.Errorf("worker: BackoffMax is %s, below BackoffMin, %s", c.BackoffMax, c.BackoffMin)
	case c.Patience < c.AskAgain:
		return fmt.Errorf("worker: Patience is %s, below AskAgain, %s: requests would leave the line between two copies", c.Patience, c.AskAgain)
	case c.MaxBatch < 1 || c.MaxInFlight < 1 || c.MaxPoints < 2:
		return fmt.Errorf("worker: MaxBatch is %d, MaxInFlight %d and MaxPoints %d; at least 1, 1 and 2 are needed", c.MaxBatch, c.MaxInFlight, c.MaxPoints)
	}
	return nil
}
