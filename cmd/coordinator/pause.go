package main

import (
	"context"
	"fmt"
	"time"

	"ration/algo"
	"ration/cmd/internal/cli"
	"ration/lease"
)

type pauseCommand struct {
	Key string         `arg:"" help:"Key of which nothing is granted, nor of what lies below it. No limit has to name it."`
	For *time.Duration `help:"How long it lasts. Without it until it is resumed." placeholder:"D"`
	doing
}

// Help is the part of the help below the flags' summary.
func (*pauseCommand) Help() string {
	return `Nothing of the key and of what lies below it is granted until it is resumed, or the time is over; a failover changes nothing of that. Leases that live are asked to give back what is idle, and end in their time: 5 s for tokens, and slots with their calls. Who asks waits, and is refused with the reason where the time to wait is over before. Pausing again replaces the time and the reason.

Example:

  coordinator pause acme/prod --reason 'provider incident 4711' --for 30m

` + cli.Codes
}

func (c *pauseCommand) run(ctx context.Context, _ *cli.Invocation, s cli.Streams) error {
	a := lease.Act{Verb: lease.VerbPause, Key: lease.Key(c.Key)}
	if c.For != nil {
		if a.For = *c.For; a.For <= 0 {
			return cli.Misuse("--for %v is not above 0; leave it out for a pause until it is resumed", a.For)
		}
	}
	return c.tell(ctx, s, a, func(done *acted) string {
		lasts := "until it is resumed"
		if a.For > 0 {
			lasts = fmt.Sprintf("for %v", a.For)
		}
		text := fmt.Sprintf("%s is paused %s", cli.Printable(c.Key, 60), lasts)
		if done.Leases > 0 {
			text += fmt.Sprintf("; %s %s on it, and %s in time", cli.Plural(done.Leases, "lease"), verb(done.Leases, "lives", "live"), verb(done.Leases, "ends", "end"))
		}
		return text
	})
}

type resumeCommand struct {
	Key string `arg:"" help:"Key that was paused: itself, not one above or below it."`
	doing
}

// Help is the part of the help below the flags' summary.
func (*resumeCommand) Help() string {
	return `Ends the pause of exactly that key. Who waited for it goes on at once, at the end of each line. coordinator status tells what is paused.

Example:

  coordinator resume acme/prod

` + cli.Codes
}

func (c *resumeCommand) run(ctx context.Context, _ *cli.Invocation, s cli.Streams) error {
	return c.tell(ctx, s, lease.Act{Verb: lease.VerbResume, Key: lease.Key(c.Key)}, func(done *acted) string {
		if done.Pause == nil {
			return fmt.Sprintf("%s was not paused", cli.Printable(c.Key, 60))
		}
		return fmt.Sprintf("%s is resumed; it was paused %s", cli.Printable(c.Key, 60), cli.Printable(done.Pause.String(), 400))
	})
}

// pauseState is a pause as JSON.
type pauseState struct {
	Since  time.Time `json:"since"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Left is in how many nanoseconds it ends; 0 if it has no end.
	Left int64 `json:"left,omitempty"`
}

func newPauseState(p *lease.Pause, now algo.Instant) *pauseState {
	if p == nil {
		return nil
	}
	state := &pauseState{Since: time.Unix(0, int64(p.Since)).UTC(), By: p.By, Reason: p.Reason}
	if p.Until != 0 {
		state.Left = max(1, int64(p.Until.Sub(now)))
	}
	return state
}

// String says since when, by whom and why.
func (p *pauseState) String() string {
	return (&lease.Pause{Since: algo.Instant(p.Since.UnixNano()), By: p.By, Reason: p.Reason}).String()
}

// lines tells of it below its key.
func (p *pauseState) lines() []string {
	first := "  paused since " + p.Since.Format(time.RFC3339)
	if p.By != "" {
		first += " by " + p.By
	}
	if p.Left > 0 {
		first += ", for " + short(time.Duration(p.Left)) + " more"
	}
	if p.Reason == "" {
		return []string{first}
	}
	return []string{first, "  because: " + p.Reason}
}
