package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ration"
	"ration/cmd/internal/cli"
)

type loadCommand struct {
	demand
	Jobs  int            `short:"j" help:"How many callers there are." default:"4" placeholder:"N"`
	Get   string         `help:"URL to get with each call." placeholder:"URL"`
	Rate  *float64       `help:"Demand in calls a second. Without it each caller calls again at once." placeholder:"R"`
	For   *time.Duration `help:"How long to go on. Without it and --count until it is interrupted." placeholder:"D"`
	Count *int64         `help:"How many calls to make in all. Without it and --for until it is interrupted." placeholder:"N"`
}

// Help is the part of the help below the flags' summary.
func (*loadCommand) Help() string {
	return `Calls as often as the limit allows, until it is interrupted or what --for or --count says is reached, of both the first. One token is one attempt: connections are used once, and no redirect is followed. Stdout says how often each status came. A call that was answered has not failed, whatever the status; 429 means that the upstream saw its limit broken.

Example:

  worker load --key demo --get http://127.0.0.1:8080/ --for 10s

` + cli.Codes
}

func (c *loadCommand) run(ctx context.Context, s cli.Streams) error {
	switch {
	case c.Jobs < 1 || c.Jobs > maxJobs:
		return cli.Misuse("-j %d is not from 1 to %d", c.Jobs, maxJobs)
	case c.Rate != nil && !(*c.Rate > 0 && *c.Rate < 1e12):
		return cli.Misuse("--rate %v is not above 0 and below 1e12; leave it out to call as fast as the limit allows", *c.Rate)
	case c.For != nil && *c.For <= 0:
		return cli.Misuse("--for %v is not above 0; leave it out to go on until it is interrupted", *c.For)
	case c.Count != nil && *c.Count <= 0:
		return cli.Misuse("--count %d is not above 0; leave it out to go on until it is interrupted", *c.Count)
	}
	var get *getter
	if c.Get != "" {
		var err error
		if get, err = newGetter(c.Get); err != nil {
			return err
		}
	}
	return c.session(ctx, s, "load", "call", func(v *shift) error {
		r := &loading{shift: v, pace: newPace(given(c.Rate)), get: get, statuses: map[int]int{}}
		r.left.Store(given(c.Count))
		r.bounded = c.Count != nil
		r.endless = c.Count == nil && c.For == nil
		r.do(c.Jobs, given(c.For))
		return r.report(s)
	})
}

// given is the value of a flag, or 0 where it was left out.
func given[T any](flag *T) (value T) {
	if flag != nil {
		value = *flag
	}
	return value
}

// loading is one run of load.
type loading struct {
	*shift
	pace    *pace
	get     *getter
	bounded bool
	left    atomic.Int64 // calls not begun yet, if bounded

	mu       sync.Mutex
	statuses map[int]int
}

// errOver is the cause of the end that was asked for.
var errOver = errors.New("the time is over")

func (r *loading) do(jobs int, span time.Duration) {
	taking, stop := context.WithCancelCause(r.soft)
	defer stop(nil)
	if span > 0 {
		defer time.AfterFunc(span, func() { stop(errOver) }).Stop()
	}
	var callers sync.WaitGroup
	for range jobs {
		callers.Go(func() {
			for taking.Err() == nil && r.begin() {
				if !r.pace.wait(taking) {
					r.unmade(taking)
					return
				}
				r.one(taking, stop)
			}
		})
	}
	callers.Wait()
	switch {
	case taking.Err() == nil || over(taking):
	case r.bounded:
		r.tally.note(func(t *tallied) { t.unsent += int(max(0, r.left.Load())) })
	case span > 0:
		r.tally.note(func(t *tallied) { t.rest = true })
	}
}

// over says that ctx ended since the time that was asked for is over.
func over(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errOver) }

// unmade counts a call that is not made since taking has ended.
func (r *loading) unmade(taking context.Context) {
	if !r.endless && !over(taking) {
		r.tally.note(func(t *tallied) { t.unsent++ })
	}
}

// begin says whether another call may be made.
func (r *loading) begin() bool { return !r.bounded || r.left.Add(-1) >= 0 }

// one makes one call, when it is its turn.
func (r *loading) one(taking context.Context, stop context.CancelCauseFunc) {
	h, err := r.await(taking)
	switch {
	case err == nil:
		if err := r.call(h); err != nil {
			stop(err)
		}
	case taking.Err() != nil:
		r.unmade(taking)
	case errors.Is(err, errLate):
		r.tally.note(func(t *tallied) { t.late++; t.tardy = err })
	case lasting(err):
		r.refused(err)
		r.tally.note(func(t *tallied) { t.refused++ })
		stop(err)
	default:
		r.tally.note(func(t *tallied) { t.failed++; t.fault = err })
	}
}

// call makes the call that h allows, and gives an error if the run cannot go on.
func (r *loading) call(h *ration.Handle) error {
	began := time.Now()
	r.tally.note(func(t *tallied) { t.running++ })
	failure := r.fetch(h)
	done := sentAt(h) + int64(time.Since(began))
	var broken error
	switch {
	case failure == nil:
		h.Finish()
	case errors.Is(failure, errNeverSent):
		h.Cancel()
	default:
		h.Abandon()
	}
	if !errors.Is(failure, errNeverSent) {
		broken = r.journal.write(entry{keys: r.keys, Cost: r.cost, Units: r.units, Sent: sentAt(h), Done: done})
	}
	r.tally.note(func(t *tallied) {
		t.running--
		t.waited += h.Waited()
		if failure == nil {
			t.done++
		} else {
			t.failed++
			t.fault = failure
		}
		if broken != nil && t.broken == nil {
			t.broken = broken
		}
	})
	return broken
}

func (r *loading) fetch(h *ration.Handle) error {
	if r.get == nil {
		return nil
	}
	status, err := r.get.do(h.Context(), r.hard)
	if err == nil {
		r.mu.Lock()
		r.statuses[status]++
		r.mu.Unlock()
	}
	return err
}

// report writes how often each status came.
func (r *loading) report(s cli.Streams) error {
	for _, status := range slices.Sorted(maps.Keys(r.statuses)) {
		if _, err := fmt.Fprintf(s.Out, "%d\t%d\n", status, r.statuses[status]); err != nil {
			return err
		}
	}
	return nil
}
