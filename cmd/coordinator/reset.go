package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/coordinator"
	"ration/lease"
)

type resetCommand struct {
	Key   string `arg:"" optional:"" help:"Key of which, and of all below it, what was spent is forgotten."`
	Clock bool   `help:"Let calendar time, which fixed rules go by, take the leader's wall clock at once. It may open a window of a fixed rule twice, or early."`
	doing
}

// Help is the part of the help below the flags' summary.
func (*resetCommand) Help() string {
	return `With a key it forgets what was spent there and below, and nothing that is held or that was spent above. A window may see more than its limit then: it is for when the upstream has forgotten, too. While the leader loads what it has taken over, it waits.

Calendar time follows the leader's wall clock by a thousandth where the two are apart and a boundary of a fixed rule lies between, and guards of fixed rules are wider meanwhile; coordinator status tells how far they are apart. With --clock it takes the wall clock at once.

Example:

  coordinator reset acme/prod
  coordinator reset --clock

` + cli.Codes
}

func (c *resetCommand) run(ctx context.Context, _ *cli.Invocation, s cli.Streams) error {
	switch {
	case c.Clock && (c.Key != "" || c.Reason != ""):
		return cli.Misuse("--clock resets the clock alone; leave the key and the reason out")
	case !c.Clock && c.Key == "":
		return cli.Misuse("nothing is to be reset; name a key, or give --clock to take the wall clock")
	case c.Clock:
		return c.resetClock(ctx, s)
	}
	return c.tell(ctx, s, lease.Act{Verb: lease.VerbReset, Key: lease.Key(c.Key)}, func(a *acted) string {
		if a.Reset == 0 {
			return fmt.Sprintf("nothing was spent of %s or below", cli.Printable(c.Key, 60))
		}
		return fmt.Sprintf("what was spent is forgotten of %s at %s and below", cli.Plural(a.Reset, "limited key"), cli.Printable(c.Key, 60))
	})
}

// resetClock lets the leader of each partition take its wall clock.
func (c *resetCommand) resetClock(ctx context.Context, s cli.Streams) error {
	return c.connected(ctx, s, "coordinator reset", func(ctx context.Context, client *bus.Client, d *document) error {
		return each[clockReset](ctx, &c.asking, s.Out, d, "it took its clock", "do it again", client.ResetClock)
	})
}

// clockReset is what a leader answers that has taken its wall clock.
type clockReset struct {
	V      int    `json:"v"`
	Leader string `json:"leader"`
	// Moved is by how many nanoseconds calendar time was set forward, or back if negative.
	Moved int64 `json:"moved"`
	// Wider is how much wider the guards of fixed rules were before.
	Wider int64 `json:"wider"`
}

// resetClock lets a leader take its wall clock, and logs it.
func (s *site) resetClock(ctx context.Context, l *coordinator.Leader, log *slog.Logger) (any, error) {
	r, err := l.ResetClock(ctx)
	if err != nil {
		return nil, err
	}
	log.Info("an operator acts", "verb", lease.VerbReset, "clock", true, "moved", r.Moved, "wider", r.Wider)
	return clockReset{V: bus.Format, Leader: s.name, Moved: int64(r.Moved), Wider: int64(r.Wider)}, nil
}

func (r clockReset) String() string {
	moved, way := time.Duration(r.Moved), "forward"
	if moved < 0 {
		moved, way = -moved, "back"
	}
	who := cli.Printable(r.Leader, 60)
	if moved < time.Millisecond {
		return fmt.Sprintf("calendar time is the wall clock of %s; they were not apart", who)
	}
	return fmt.Sprintf("calendar time is the wall clock of %s: set %s by %v, and guards of fixed rules are no longer %v wider; a window of a fixed rule may open twice, or early",
		who, way, moved.Round(time.Millisecond), time.Duration(r.Wider))
}
