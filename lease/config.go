package lease

import (
	"errors"
	"fmt"
	"time"
)

// Config holds the ledger's bounds. DefaultConfig is complete; change what you
// need and Validate. All durations, Line, Keys and bounds are above 0; of a Bound,
// All is at least Each.
type Config struct {
	// TokenTTL is how long a lease's tokens may be spent.
	TokenTTL time.Duration
	// SlotTTL is how long a lease's slots live without a heartbeat.
	SlotTTL time.Duration
	// Stale is the age at which any request is dropped unanswered.
	Stale time.Duration
	// Silence is how long a waiting request stays in line without being asked
	// again. Its holder is told Waiting, and comes back if it lives.
	Silence time.Duration
	// Memory is how long the id of an ended, refused or given-up request is
	// remembered. It is at least twice Stale, so that every copy of it that can
	// still be accepted finds it remembered.
	Memory time.Duration
	// RecallEvery is the least time between two recalls of one lease.
	RecallEvery time.Duration
	// Line is how many requests may wait on one key, or on one prefix of it.
	Line int
	// Keys is how many limited prefixes may be in memory: those of which anything
	// is held or spent, or on which somebody waits.
	Keys int
	// Holders is how many may be known: of one tenant, and in all. They are
	// forgotten when they hold nothing and have been silent for Memory.
	Holders Bound
	// Leases is how many may live: of one holder, and in all.
	Leases Bound
	// Waiters is how many requests may wait: of one holder, and in all.
	Waiters Bound
	// IDs is how many ids that are over are remembered one by one: of one holder,
	// and in all. Beyond it the holder's oldest are remembered by the highest
	// number alone, and ids up to that one count as over.
	IDs Bound
	// Unmirrored says that nobody keeps a copy of the ledger: turns carry no
	// records, and no key has to be loaded.
	Unmirrored bool
	// PPM is by how many millionths two clocks may run apart, both errors
	// together, 0 to 100,000; trailing windows grow by it.
	PPM int64
}

// DefaultConfig gives the defaults. What they admit together fits into 4 GiB.
func DefaultConfig() Config {
	return Config{
		TokenTTL:    5 * time.Second,
		SlotTTL:     10 * time.Second,
		Stale:       30 * time.Second,
		Silence:     5 * time.Second,
		Memory:      time.Minute,
		RecallEvery: time.Second,
		Line:        10_000,
		Keys:        2_000_000,
		Holders:     Bound{Each: 100_000, All: 2_000_000},
		Leases:      Bound{Each: 100_000, All: 1_000_000},
		Waiters:     Bound{Each: 20_000, All: 200_000},
		IDs:         Bound{Each: 65_536, All: 2_000_000},
		PPM:         200,
	}
}

// Validate reports every relation between fields that does not hold. It changes
// nothing.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("lease: "+format, args...))
		}
	}
	need(c.TokenTTL > 0, "token TTL %v is not above 0", c.TokenTTL)
	need(c.SlotTTL > 0, "slot TTL %v is not above 0", c.SlotTTL)
	need(c.Stale > 0, "stale age %v is not above 0", c.Stale)
	need(c.Silence > 0, "silence %v is not above 0", c.Silence)
	need(c.Memory >= 2*c.Stale, "memory %v is under twice the stale age %v", c.Memory, c.Stale)
	need(c.RecallEvery > 0, "recall interval %v is not above 0", c.RecallEvery)
	need(c.Line > 0, "line of %d is not above 0", c.Line)
	need(c.Keys > 0, "bound of %d keys is not above 0", c.Keys)
	for _, b := range []struct {
		what string
		Bound
	}{{"holders", c.Holders}, {"leases", c.Leases}, {"waiters", c.Waiters}, {"ids", c.IDs}} {
		need(b.Each > 0, "bound of %d %s each is not above 0", b.Each, b.what)
		need(b.All >= b.Each, "bound of %d %s in all is below %d each", b.All, b.what, b.Each)
	}
	need(c.PPM >= 0 && c.PPM <= 100_000, "clock allowance %d ppm is not within 0 to 100,000", c.PPM)
	return errors.Join(errs...)
}

// HeartbeatEvery is how often a holder should send a heartbeat: a fifth of the
// shorter TTL.
func (c Config) HeartbeatEvery() time.Duration { return min(c.TokenTTL, c.SlotTTL) / 5 }
