package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"ration"
	"ration/cmd/internal/cli"
)

type execCommand struct {
	demand
	Jobs    int      `short:"j" help:"How many commands may run at once." default:"1" placeholder:"N"`
	Command []string `arg:"" name:"command" passthrough:"partial" help:"Command and its arguments; {} stands for the line."`
}

// Help is the part of the help below the flags' summary.
func (*execCommand) Help() string {
	return `Reads lines from stdin and runs the command once for each, when the limit allows. {} is replaced by the line in every argument; without {} the line is the last argument. Blank lines are skipped. With -j above 1 output comes in the order in which commands write it, in whole lines. A failed command is counted and the run goes on. Commands die with the worker.

Example:

  worker exec --key demo -j 4 --log run.jsonl -- curl -sS https://example.org/{} < names

` + cli.Codes
}

func (c *execCommand) run(ctx context.Context, s cli.Streams) error {
	if c.Jobs < 1 || c.Jobs > maxJobs {
		return cli.Misuse("-j %d is not from 1 to %d", c.Jobs, maxJobs)
	}
	if len(c.Command) > 0 && c.Command[0] == "--" { // what divides it from the flags
		c.Command = c.Command[1:]
	}
	if len(c.Command) == 0 || c.Command[0] == "" {
		return cli.Misuse("there is no command to run; give one after --")
	}
	return c.session(ctx, s, "exec", "command", func(v *shift) error {
		n, err := openNursery()
		if err != nil {
			return err
		}
		defer n.close()
		r := &execution{shift: v, command: c.Command, jobs: c.Jobs, nursery: n}
		return r.do(s)
	})
}

// maxJobs bounds -j: each is a goroutine at least.
const maxJobs = 100_000

// execution is one run of exec.
type execution struct {
	*shift
	command  []string
	jobs     int
	nursery  *nursery
	out, err io.Writer
	// stop ends the taking of new lines.
	stop context.CancelCauseFunc
}

func (r *execution) do(s cli.Streams) error {
	r.out, r.err = r.screen.Through(s.Out), r.screen.Through(s.Err)
	taking, stop := context.WithCancelCause(r.soft)
	defer stop(nil)
	r.stop = stop
	input := readItems(taking, s.In)
	var jobs sync.WaitGroup
	for range r.jobs {
		jobs.Go(func() {
			for next := range input.out {
				r.one(taking, next)
			}
		})
	}
	jobs.Wait()
	if input.pending != nil {
		r.unsent(*input.pending)
	}
	switch {
	case input.err != nil:
		r.tally.note(func(t *tallied) { t.broken = input.err })
	case !input.all:
		r.tally.note(func(t *tallied) { t.rest = true })
		r.voice.Say("the input after line %d was not read", input.last)
	}
	return nil
}

// one runs the command for one item, when it is its turn.
func (r *execution) one(taking context.Context, it item) {
	h, err := r.await(taking)
	switch {
	case err == nil:
		r.call(h, it)
	case taking.Err() != nil:
		r.unsent(it)
	case errors.Is(err, errLate):
		r.tally.note(func(t *tallied) { t.late++ })
		r.voice.Complain(fmt.Errorf("line %d, %q, was not run: %w", it.number, it.text, err))
	case lasting(err):
		r.refused(err)
		r.unsent(it)
		r.stop(err)
	default:
		r.tally.note(func(t *tallied) { t.failed++ })
		r.voice.Complain(fmt.Errorf("line %d, %q, was not run: %w", it.number, it.text, err))
	}
}

func (r *execution) unsent(it item) {
	r.tally.note(func(t *tallied) { t.unsent++ })
	r.voice.Say("line %d, %q, was not run", it.number, it.text)
}

// call runs the command under h.
func (r *execution) call(h *ration.Handle, it item) {
	began := time.Now()
	c, err := r.nursery.start(arguments(r.command, it.text), r.out, r.err)
	if err != nil {
		h.Cancel()
		r.tally.note(func(t *tallied) { t.failed++ })
		r.voice.Complain(fmt.Errorf("line %d, %q, could not be started: %w", it.number, it.text, err))
		return
	}
	r.tally.note(func(t *tallied) { t.running++; t.waited += h.Waited() })
	code, cut, unsaid := c.wait(h.Context(), r.hard)
	lost := h.Context().Err() != nil && r.hard.Err() == nil
	done := sentAt(h) + int64(time.Since(began))
	if lost {
		r.voice.Complain(fmt.Errorf("line %d, %q, was stopped: %w", it.number, it.text, context.Cause(h.Context())))
	}
	if lost || cut {
		h.Abandon() // the upstream may work on
	} else {
		h.Finish()
	}
	err = r.journal.write(entry{Item: &it.text, keys: r.keys, Cost: r.cost, Units: r.units, Exit: &code, Sent: sentAt(h), Done: done})
	if unsaid != nil {
		err = errors.Join(fmt.Errorf("passing on what line %d printed: %w", it.number, unsaid), err)
	}
	r.tally.note(func(t *tallied) {
		t.running--
		if code == 0 && !lost {
			t.done++
		} else {
			t.failed++
		}
		if err != nil && t.broken == nil {
			t.broken = err
		}
	})
	if err != nil {
		r.stop(err)
	}
}
