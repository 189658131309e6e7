package worker

import (
	"fmt"
	"time"

	"ration/lease"
)

// State is how far a call has come.
type State uint8

const (
	// Waiting: the call stands in the local line.
	Waiting State = iota + 1
	// Taken: its tokens, and its slot if it needs one, are its own, but not
	// spent yet. Read the clock, then Spend.
	Taken
	// Running: spent; the call may leave.
	Running
	// Done: finished, cancelled, abandoned or settled.
	Done
	// Failed: it got nothing; Err says why.
	Failed
	// Lost: the lease of its slot is lost while it ran; it has to stop.
	Lost
)

func (s State) String() string {
	names := [...]string{"none", "waiting", "taken", "running", "done", "failed", "lost"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Forever is the instant until which a caller without a deadline waits.
const Forever = time.Duration(1<<63 - 1)

// part is what a call has of one lease.
type part struct {
	from *holding
	n    int64
}

// Call is one caller's demand, from asking to the upstream's answer. It belongs
// to its Pool and is as safe for concurrent use as that: not at all.
type Call struct {
	// Owner is whatever the asker wants to find again in Served.
	Owner any

	cost     int64
	more     *more // what it costs besides; nil if nothing
	slot     bool
	resolved bool
	silent   bool // decided within Ask: not told of by Served
	state    State
	err      error

	order uint64
	asked time.Duration
	until time.Duration
	sent  time.Duration

	parts  []part
	inline [1]part
	slotOf *holding

	request    *request
	prev, next *Call
}

// State says how far the call has come.
func (c *Call) State() State { return c.state }

// Err says why the call failed, or nil.
func (c *Call) Err() error { return c.err }

// Cost is how many tokens the call asked for.
func (c *Call) Cost() int64 { return c.cost }

// Units are what else the call asked for.
func (c *Call) Units() lease.Units {
	if c.more == nil {
		return nil
	}
	return c.more.cost
}

// Sent is the holder's elapsed time at which the call was spent: the very
// instant that reports date it with.
func (c *Call) Sent() time.Duration { return c.sent }

// Waited is how long the call took from being asked to being spent.
func (c *Call) Waited() time.Duration { return c.sent - c.asked }

// HasSlot says whether the call holds a slot.
func (c *Call) HasSlot() bool { return c.slotOf != nil }
