package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"ration"
	"ration/bench/measure"
)

const (
	plenty = 1_000_000_000_000

	onePolicy = "limits: [{key: k, rules: [1000000000000/1s]}]"
	twoPolicy = "limits: [{key: k, rules: [1000000000000/1s, 500000000000000/1m]}]"
)

// allow measures a call that finds a live lease, beside one that asks a limiter
// in the same process.
func allow(bounds *measure.Bounds) error {
	one, end, err := limiter(onePolicy)
	if err != nil {
		return err
	}
	defer end()
	two, end, err := limiter(twoPolicy)
	if err != nil {
		return err
	}
	defer end()
	theirs, second := rate.NewLimiter(plenty, plenty), rate.NewLimiter(plenty, plenty)
	chained := func() bool { return theirs.Allow() && second.Allow() }

	const rounds, length = 9, 60 * time.Millisecond
	alone, err := measure.Rounds(rounds, length,
		measure.Case{Name: "rate.Limiter.Allow", Run: serial(theirs.Allow)},
		measure.Case{Name: "two rate.Limiter chained", Run: serial(chained)},
		measure.Case{Name: "Allow", Run: serial(one.Allow)},
		measure.Case{Name: "Allow, two windows", Run: serial(two.Allow)})
	if err != nil {
		return err
	}
	measure.Table(os.Stdout, "one goroutine", alone)
	together, err := measure.Rounds(rounds, length,
		measure.Case{Name: "rate.Limiter.Allow", Run: parallel(theirs.Allow)},
		measure.Case{Name: "Allow", Run: parallel(one.Allow)})
	if err != nil {
		return err
	}
	measure.Table(os.Stdout, fmt.Sprintf("%d goroutines on %d cores", runtime.GOMAXPROCS(0), runtime.NumCPU()), together)

	bounds.AtMost("allow", named(alone, "Allow").Over(named(alone, "rate.Limiter.Allow")), 0.4)
	bounds.AtMost("allow-all-cores", named(together, "Allow").Over(named(together, "rate.Limiter.Allow")), 0.5)
	bounds.AtMost("allow-two-windows", named(alone, "Allow, two windows").Over(named(alone, "two rate.Limiter chained")), 0.25)
	bounds.AtMost("allow-allocations", testing.AllocsPerRun(100_000, func() { one.Allow() }), 0)
	return nil
}

// limiter gives a limiter of a policy, with a live lease.
func limiter(policy string) (*ration.Limiter, func(), error) {
	client, err := ration.Local(policy)
	if err != nil {
		return nil, nil, err
	}
	end := func() { _ = client.Close(context.Background()) }
	l, err := client.Limiter("k")
	if err == nil {
		err = l.Wait(context.Background())
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return l, end, nil
}

// serial calls one after the other. A call that is refused, since a refill is on
// its way, is none: it is made again.
func serial(call func() bool) func(int) error {
	return func(n int) error {
		for range n {
			for !call() {
				runtime.Gosched()
			}
		}
		return nil
	}
}

// parallel shares the calls among as many goroutines as run at once.
func parallel(call func() bool) func(int) error {
	return func(n int) error {
		var g sync.WaitGroup
		share := n/runtime.GOMAXPROCS(0) + 1
		for range runtime.GOMAXPROCS(0) {
			g.Go(func() { _ = serial(call)(share) })
		}
		g.Wait()
		return nil
	}
}
