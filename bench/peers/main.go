// Command peers measures leases beside limiters that ask a server at each call:
// redis_rate and a script of several windows over sorted sets, on a Redis that it
// starts, and beside golang.org/x/time/rate, which limits within one process and
// is the floor. It needs redis-server.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"ration"
	"ration/bench/measure"
	"ration/bench/responder"
	"ration/bench/server"
)

// plenty a second, so that nobody is refused: what is measured is the asking.
const (
	plenty = 1_000_000_000
	policy = "limits: [{key: k, rules: [1000000000/1s, 50000000000/1m]}]"
)

func main() {
	responder.Main()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	r, err := server.StartRedis()
	if err != nil {
		return err
	}
	defer r.End()
	url, stop, err := responder.Start(responder.Config{Policy: policy})
	if err != nil {
		return err
	}
	defer stop()
	fleet, err := connect(url, 2)
	if err != nil {
		return err
	}
	defer fleet.close()

	peer := redis_rate.NewLimiter(r.Client)
	limit := redis_rate.Limit{Rate: plenty, Burst: plenty, Period: time.Second}
	byRate := func(ctx context.Context) error {
		got, err := peer.Allow(ctx, "k", limit)
		return refusedUnless(err == nil && got.Allowed == 1, err)
	}
	members := &sets{client: r.Client}
	within := rate.NewLimiter(plenty, plenty)
	inProcess := func(ctx context.Context) error { return within.Wait(ctx) }

	const rounds, length = 5, 400 * time.Millisecond
	for _, callers := range []int{1, 16, 64, 256} {
		each := func(name string, call func(context.Context) error) measure.Case {
			return measure.Case{Name: name, Run: by(callers, call)}
		}
		results, err := measure.Rounds(rounds, length,
			each("redis_rate, one window", byRate),
			each("sorted sets, two windows", members.take),
			each("leases, two windows", fleet.acquire),
			each("x/time/rate, in one process", inProcess))
		if err != nil {
			return err
		}
		measure.Table(os.Stdout, fmt.Sprintf("calls by %d callers", callers), results)
	}
	return nil
}

func refusedUnless(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("peers: a call was refused, where plenty was free")
	}
	return err
}

// by shares n calls among so many callers.
func by(callers int, call func(context.Context) error) func(int) error {
	return func(n int) error {
		var next atomic.Int64
		var g errgroup.Group
		for range callers {
			g.Go(func() error {
				for next.Add(1) <= int64(n) {
					if err := call(context.Background()); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return g.Wait()
	}
}

// fleet is holders of one process, each with a connection of its own.
type fleet struct {
	clients  []*ration.Client
	limiters []*ration.Limiter
	next     atomic.Uint64
}

func connect(url string, holders int) (*fleet, error) {
	f := &fleet{}
	for range holders {
		c, err := ration.Connect(url)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.clients = append(f.clients, c)
		l, err := c.Limiter("k")
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.limiters = append(f.limiters, l)
	}
	return f, nil
}

// acquire makes a call with the next holder and ends it.
func (f *fleet) acquire(ctx context.Context) error {
	h, err := f.limiters[f.next.Add(1)%uint64(len(f.limiters))].Acquire(ctx, 1)
	if err != nil {
		return err
	}
	h.Finish()
	return nil
}

func (f *fleet) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	for _, c := range f.clients {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}
