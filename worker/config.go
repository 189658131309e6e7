package worker

import (
	"fmt"
	"time"
)

// PoolConfig is how a pool behaves. DefaultPoolConfig is complete.
type PoolConfig struct {
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
