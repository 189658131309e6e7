package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ration/bench/measure"
	"ration/bench/responder"
	"ration/bench/server"
	"ration/bus"
)

// lived is how long leases live here: a round of grants is several times as long, so
// that as many end in it as begin, and what is left of one case is over before the
// next has its turn.
const lived = 250 * time.Millisecond

// mirrored measures leases granted by a coordinator that keeps its state in Redis,
// beside one that keeps it in memory. Each is a process of its own.
func mirrored(bounds *measure.Bounds) error {
	r, err := server.StartRedis("--appendonly", "yes", "--appendfsync", "everysec")
	if err != nil {
		return err
	}
	defer r.End()
	var seq atomic.Uint64
	plain, err := connectPair(responder.Config{Policy: onePolicy, TokenTTL: lived}, &seq)
	if err != nil {
		return err
	}
	defer plain.close()
	kept, err := connectPair(responder.Config{Policy: onePolicy, TokenTTL: lived, Redis: r.URL}, &seq)
	if err != nil {
		return err
	}
	defer kept.close()
	const rounds, length = 7, 800 * time.Millisecond
	for _, level := range []struct {
		outstanding int
		bound       float64 // none if 0
	}{{64, 0}, {256, 0.6}, {1024, 0.75}} {
		results, err := measure.Rounds(rounds, length,
			measure.Case{Name: "grants in memory", Run: plain.grants(level.outstanding), Rest: 2 * lived},
			measure.Case{Name: "grants mirrored", Run: kept.grants(level.outstanding), Rest: 2 * lived})
		if err != nil {
			return err
		}
		measure.Table(os.Stdout, fmt.Sprintf("grants to 2 holders, %d outstanding, pipelined", level.outstanding), results)
		name, of := fmt.Sprintf("mirrored-grants-%d", level.outstanding), named(results, "grants in memory")/named(results, "grants mirrored")
		if level.bound == 0 {
			fmt.Printf("%s %.3f of those in memory\n", name, of)
			continue
		}
		bounds.AtLeast(name, of, level.bound)
	}
	return nil
}

// pair is two holders, each with a connection of its own to the same coordinator.
type pair struct {
	holders []*asker
	end     func()
}

func connectPair(config responder.Config, seq *atomic.Uint64) (*pair, error) {
	url, end, err := responder.Start(config)
	if err != nil {
		return nil, err
	}
	p := &pair{end: end}
	for i := range uint64(2) {
		nc, err := bus.Connect(url, bus.ConnectConfig{})
		if err != nil {
			p.close()
			return nil, err
		}
		a, err := newAsker(asker{nc: nc, leases: 1, outstanding: 1, holders: 1, first: 16 + i, seq: seq})
		if err != nil {
			nc.Close()
			p.close()
			return nil, err
		}
		p.holders = append(p.holders, a)
	}
	return p, nil
}

// grants lets each holder have half of what is outstanding, and of the grants.
func (p *pair) grants(outstanding int) func(int) error {
	return func(n int) error {
		var g errgroup.Group
		for _, a := range p.holders {
			half := *a
			half.outstanding = outstanding / len(p.holders)
			g.Go(func() error { return half.pipelined(half.acquire)(n / len(p.holders)) })
		}
		return g.Wait()
	}
}

func (p *pair) close() {
	for _, a := range p.holders {
		a.nc.Close()
	}
	p.end()
}
