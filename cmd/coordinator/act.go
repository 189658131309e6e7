package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"sync"
	"time"

	"ration/algo"
	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/coordinator"
	"ration/lease"
)

// answerWait is how long a leader may take to answer an act, beside --connect-wait.
const answerWait = 2 * time.Second

// doing is what commands have in common that do something to a key.
type doing struct {
	Reason string `help:"Why: for the log, and for refusals where it is a pause." placeholder:"TEXT"`
	By     string `help:"Who does it, for the same. Without it the user's name." placeholder:"NAME"`
	asking
}

// asking is what commands have in common that ask leaders to change something.
type asking struct {
	cli.Server
	cli.Connection
	cli.Logging

	where string // NATS, when it is connected
}

// connected does something with a client of a cell whose status was told.
func (c *asking) connected(ctx context.Context, s cli.Streams, who string, do func(context.Context, *bus.Client, *document) error) error {
	if err := c.Locate(&c.Connection, s); err != nil {
		return err
	}
	config, err := c.Config(who, c.Voice(name, s).Log)
	if err != nil {
		return err
	}
	config.Log = nil // a few questions; their failure is the command's
	nc, err := bus.ConnectContext(ctx, c.Nats, config)
	if err != nil {
		return err
	}
	defer nc.Close()
	c.where = bus.Redacted(nc.ConnectedUrl())
	client := bus.NewClient(nc, bus.ClientConfig{Cell: c.Cell})
	asking, cancel := context.WithTimeout(ctx, c.ConnectWait+answerWait)
	defer cancel()
	body, err := client.Status(asking, "")
	if err != nil {
		return c.failed(err, "", "")
	}
	d, err := parseDocument(body)
	if err != nil {
		return fmt.Errorf("the coordinator at %s tells no status (%w); see what serves cell %s there", c.where, err, c.Cell)
	}
	return do(ctx, bus.NewClient(nc, bus.ClientConfig{Cell: c.Cell, Partitions: min(max(1, d.Divided), bus.MaxPartitions)}), d)
}

// tell has an act done, and says what came of it. It is told again where nobody leads for a
// moment: that changes nothing.
func (c *doing) tell(ctx context.Context, s cli.Streams, a lease.Act, said func(*acted) string) error {
	a.Reason, a.By = c.Reason, c.by()
	if err := a.Validate(); err != nil {
		return &cli.Exit{Code: cli.Misused, Err: err}
	}
	return c.connected(ctx, s, "coordinator "+string(a.Verb), func(ctx context.Context, client *bus.Client, _ *document) error {
		all, err := rounds(ctx, c.ConnectWait+answerWait, func(ctx context.Context) (*acted, error) { return c.ask(ctx, client, a) })
		if err != nil {
			remedy := "do it again"
			if a.Verb == lease.VerbCharge {
				remedy = "do it again with --id " + a.ID + ", so that it counts once"
			}
			return c.failed(err, "it was done", remedy)
		}
		fmt.Fprintln(s.Out, said(all))
		return nil
	})
}

// rounds asks until nothing is left to do, and each time waits as long for the answer: how many
// there are is the number of keys to say.
func rounds(ctx context.Context, wait time.Duration, ask func(context.Context) (*acted, error)) (*acted, error) {
	for reset := 0; ; {
		asking, cancel := context.WithTimeout(ctx, wait)
		one, err := ask(asking)
		cancel()
		if err != nil {
			return nil, err
		}
		one.Reset += reset
		if reset = one.Reset; !one.More {
			return one, nil
		}
	}
}

// ask asks the leader of the key.
func (c *doing) ask(ctx context.Context, client *bus.Client, a lease.Act) (*acted, error) {
	body, err := c.led(ctx, func(ctx context.Context) (json.RawMessage, error) { return client.Act(ctx, a) })
	if err != nil {
		return nil, err
	}
	told := &acted{}
	return told, json.Unmarshal(body, told)
}

// led asks until somebody leads, for as long as a takeover takes.
func (c *asking) led(ctx context.Context, ask func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	const takeover, pause = time.Second, 20 * time.Millisecond
	for until := time.Now().Add(min(takeover, c.ConnectWait)); ; {
		body, err := ask(ctx)
		if !errors.Is(err, lease.ErrNoCoordinator) && !errors.Is(err, lease.ErrStopped) || time.Now().After(until) {
			return body, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// outcome is what became of the question to one partition.
type outcome[T any] struct {
	told T
	err  error
}

// askAll asks the leaders of all partitions at once, and gives what became of each: one
// that does not answer takes no time from the others.
func askAll[T any](ctx context.Context, partitions int, wait time.Duration, ask func(context.Context, int) (json.RawMessage, error)) []outcome[T] {
	all := make([]outcome[T], partitions)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var asking sync.WaitGroup
	for n := range all {
		asking.Go(func() {
			o := &all[n]
			body, err := ask(ctx, n)
			if err == nil {
				err = json.Unmarshal(body, &o.told)
			}
			o.err = err
		})
	}
	asking.Wait()
	return all
}

// each has the leaders of all partitions do something, and says what came of each. Where one
// fails, whether it was done is unknown, and there is a remedy.
func each[T fmt.Stringer](ctx context.Context, c *asking, out io.Writer, d *document, whether, remedy string, ask func(context.Context, int) (json.RawMessage, error)) error {
	var failures []error
	for n, o := range askAll[T](ctx, max(1, d.Divided), c.ConnectWait+answerWait, ask) {
		of := ""
		if d.Divided > 1 {
			of = fmt.Sprintf("partition %d: ", n)
		}
		if o.err != nil {
			failures = append(failures, fmt.Errorf("%s%w", of, c.failed(o.err, whether, remedy)))
			continue
		}
		fmt.Fprintf(out, "%s%s\n", of, o.told)
	}
	return errors.Join(failures...)
}

// by is who does it.
func (c *doing) by() string {
	if c.By != "" {
		return c.By
	}
	u, err := user.Current()
	if err != nil || (&lease.Act{Verb: lease.VerbResume, Key: "k", By: u.Username}).Validate() != nil {
		return ""
	}
	return u.Username
}

// failed words what became of a question. Whether what it asks for was done is unknown then,
// unless it was refused: nobody answers may be after somebody was told, and did not answer. An
// empty whether is of a question that changes nothing.
func (c *asking) failed(err error, whether, remedy string) error {
	late := errors.Is(err, context.DeadlineExceeded)
	unknown := whether != "" && !refused(err)
	switch {
	case late && unknown:
		err = fmt.Errorf("%w: the one at %s did not answer in time", lease.ErrNoCoordinator, c.where)
	case late:
		err = fmt.Errorf("%w: the one at %s did not answer in time; give it more with --connect-wait", lease.ErrNoCoordinator, c.where)
	case errors.Is(err, lease.ErrNoCoordinator):
		err = cli.Nobody(c.where, c.Cell)
	default:
		err = cli.Foreign(err)
	}
	if unknown {
		return fmt.Errorf("%w; whether %s is unknown, so %s", err, whether, remedy)
	}
	return err
}

// refused says that a leader, or NATS, has said no, so that nothing was done.
func refused(err error) bool {
	for _, no := range [...]error{
		lease.ErrBadRequest, lease.ErrBadKey, lease.ErrUnknownKey, lease.ErrTooManyKeys,
		lease.ErrFormat, lease.ErrPartition, lease.ErrForbidden,
	} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// acted is what a leader answers to an act.
type acted struct {
	V      int    `json:"v"`
	Leader string `json:"leader"`
	// Pause is that which is in force, or has ended.
	Pause  *pauseState `json:"pause,omitempty"`
	Leases int         `json:"leases,omitempty"`
	Keys   []keyState  `json:"keys,omitempty"`
	Again  bool        `json:"again,omitempty"`
	Reset  int         `json:"reset,omitempty"`
	More   bool        `json:"more,omitempty"`
}

// act does what an operator asks of a key in a partition that is led here, and logs it.
func (s *site) act(ctx context.Context, l *coordinator.Leader, a lease.Act, log *slog.Logger) (any, error) {
	done, err := l.Act(ctx, a)
	if err != nil {
		return nil, err
	}
	all := acted{V: bus.Format, Leader: s.name, Leases: done.Leases, Again: done.Again, Reset: done.Reset, More: done.More}
	if done.Pause != nil {
		all.Pause = newPauseState(done.Pause, 0)
		all.Pause.Left = int64(a.For)
	}
	for _, k := range done.Keys {
		all.Keys = append(all.Keys, newKeyState(k, 0))
	}
	log.Info("an operator acts", append([]any{"verb", a.Verb, "key", cli.Printable(string(a.Key), 200), "by", a.By, "reason", a.Reason}, details(a, done)...)...)
	return all, nil
}

// details is what the log has of an act besides who did it to what, and why.
func details(a lease.Act, done lease.Acted) (list []any) {
	switch a.Verb {
	case lease.VerbPause:
		if a.For > 0 {
			list = append(list, "for", a.For)
		}
		list = append(list, "leases", done.Leases)
	case lease.VerbResume:
		list = append(list, "paused", done.Pause != nil)
	case lease.VerbCharge:
		unit := a.Unit
		if unit == "" {
			unit = algo.Calls
		}
		list = append(list, "n", a.N, "unit", unit, "age", a.Age, "id", a.ID, "again", done.Again)
	case lease.VerbReset:
		list = append(list, "reset", done.Reset, "more", done.More)
	}
	return list
}
