package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/coordinator"
	"ration/lease"
)

type resetCommand struct {
	Clock bool `help:"Let calendar time, which fixed rules go by, take the leader's wall clock at once. It may open a window of a fixed rule twice, or early."`
	cli.Server
	cli.Connection
	cli.Logging
}

// Help is the part of the help below the flags' summary.
func (*resetCommand) Help() string {
	return `Calendar time follows the leader's wall clock by a thousandth where the two are apart and a boundary of a fixed rule lies between, and guards of fixed rules are wider meanwhile; coordinator status tells how far they are apart. With --clock it takes the wall clock at once.

Example:

  coordinator reset --clock

` + cli.Codes
}

func (c *resetCommand) run(ctx context.Context, _ *cli.Invocation, s cli.Streams) error {
	if !c.Clock {
		return cli.Misuse("nothing is to be reset; give --clock to take the wall clock")
	}
	if err := c.Locate(&c.Connection, s); err != nil {
		return err
	}
	config, err := c.Config("coordinator reset", c.Voice(name, s).Log)
	if err != nil {
		return err
	}
	config.Log = nil // a few questions; their failure is the command's
	nc, err := bus.ConnectContext(ctx, c.Nats, config)
	if err != nil {
		return err
	}
	defer nc.Close()
	where := bus.Redacted(nc.ConnectedUrl())
	client := bus.NewClient(nc, bus.ClientConfig{Cell: c.Cell})
	wait := c.ConnectWait + 2*time.Second
	asking, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	body, err := client.Status(asking, "")
	if err != nil {
		return c.failed(err, where)
	}
	d, err := parseDocument(body)
	if err != nil {
		return fmt.Errorf("the coordinator at %s tells no status (%w); see what serves cell %s there", where, err, c.Cell)
	}
	var failures []error
	for n, o := range resetAll(ctx, max(1, d.Divided), wait, client.ResetClock) {
		of := ""
		if d.Divided > 1 {
			of = fmt.Sprintf("partition %d: ", n)
		}
		if o.err != nil {
			failures = append(failures, fmt.Errorf("%s%w", of, c.failed(o.err, where)))
			continue
		}
		fmt.Fprintf(s.Out, "%s%s\n", of, o.reset)
	}
	return errors.Join(failures...)
}

// resetOutcome is what became of the question to one partition.
type resetOutcome struct {
	reset clockReset
	err   error
}

// resetAll asks the leaders of all partitions at once, and gives what became of each: one
// that does not answer takes no time from the others.
func resetAll(ctx context.Context, partitions int, wait time.Duration, ask func(context.Context, int) (json.RawMessage, error)) []resetOutcome {
	all := make([]resetOutcome, partitions)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var asking sync.WaitGroup
	for n := range all {
		asking.Go(func() {
			o := &all[n]
			body, err := ask(ctx, n)
			if err == nil {
				err = json.Unmarshal(body, &o.reset)
			}
			o.err = err
		})
	}
	asking.Wait()
	return all
}

// failed words what became of a question.
func (c *resetCommand) failed(err error, where string) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: the one at %s did not answer in time; whether it took its clock is unknown, so do it again", lease.ErrNoCoordinator, where)
	case errors.Is(err, lease.ErrNoCoordinator):
		return cli.Nobody(where, c.Cell)
	}
	return cli.Foreign(err)
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

// resetClock lets a leader take its wall clock.
func (s *site) resetClock(ctx context.Context, l *coordinator.Leader) (any, error) {
	r, err := l.ResetClock(ctx)
	if err != nil {
		return nil, err
	}
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
