package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/lease"
)

type statusCommand struct {
	Key  string `arg:"" optional:"" help:"Key to show, with its prefixes and what lies below it. Without it all keys."`
	JSON bool   `name:"json" help:"Print JSON."`
	cli.Server
	cli.Connection
	cli.Logging
}

// Help is the part of the help below the flags' summary.
func (*statusCommand) Help() string {
	return `Shows each window (free + held + spent = limit), who holds what, how many wait, and who leads. NO_COLOR turns colour off.

Example:

  coordinator status acme/search

` + cli.Codes
}

func (c *statusCommand) run(ctx context.Context, _ *cli.Invocation, s cli.Streams) error {
	if c.Key != "" {
		if _, err := lease.ParseKey(c.Key); err != nil {
			return err
		}
	}
	if err := c.Locate(&c.Connection, s); err != nil {
		return err
	}
	config, err := c.Config("coordinator status", c.Voice(name, s).Log)
	if err != nil {
		return err
	}
	config.Log = nil // one question; its failure is the command's
	nc, err := bus.ConnectContext(ctx, c.Nats, config)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, c.ConnectWait+500*time.Millisecond)
	defer cancel()
	body, err := c.ask(ctx, bus.NewClient(nc, bus.ClientConfig{Cell: c.Cell}))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: the one at %s did not tell its status in time; give it more with --connect-wait",
			lease.ErrNoCoordinator, bus.Redacted(nc.ConnectedUrl()))
	case errors.Is(err, lease.ErrNoCoordinator):
		return fmt.Errorf("%w; one that waits for Redis says so when it is asked by coordinator healthcheck", cli.Nobody(bus.Redacted(nc.ConnectedUrl()), c.Cell))
	case err != nil:
		return cli.Foreign(err)
	}
	d, err := parseDocument(body)
	if err == nil && d.V != bus.Format {
		err = cli.Foreign(fmt.Errorf("%w: the coordinator at %s tells its status in format %d, this side speaks %d",
			lease.ErrFormat, bus.Redacted(nc.ConnectedUrl()), d.V, bus.Format))
	}
	switch {
	case errors.Is(err, lease.ErrFormat):
		return err
	case err != nil:
		return fmt.Errorf("the coordinator at %s tells no status (%w); see what serves cell %s there", bus.Redacted(nc.ConnectedUrl()), err, c.Cell)
	case c.JSON:
		_, err = fmt.Fprintf(s.Out, "%s\n", body)
	case c.lacking(d) == nil:
		_, err = s.Out.Write(drawing{width: cli.Width(s.Out), colour: cli.Coloured(s.Out, s)}.draw(d, c.Key))
	}
	if err != nil {
		return err
	}
	return c.lacking(d)
}

// ask asks again, where nobody leads, for as long as a takeover takes.
func (c *statusCommand) ask(ctx context.Context, client *bus.Client) (body []byte, err error) {
	const takeover, pause = 500 * time.Millisecond, 20 * time.Millisecond
	for until := time.Now().Add(min(takeover, c.ConnectWait)); ; {
		body, err = client.Status(ctx, lease.Key(c.Key))
		if !errors.Is(err, lease.ErrNoCoordinator) || time.Now().After(until) {
			return body, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// lacking is the error of a key of whose partition nothing is known.
func (c *statusCommand) lacking(d *document) error {
	if c.Key == "" || len(d.Partitions) != 1 || d.Partitions[0].Problem == "" {
		return nil
	}
	p := d.Partitions[0]
	return fmt.Errorf("%w: %s is of partition %d of %d of cell %s: %s; see coordinator status",
		lease.ErrNoCoordinator, cli.Printable(c.Key, 60), p.N, d.Divided, d.Cell, cli.Printable(p.Problem, 200))
}
