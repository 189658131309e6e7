package main

import (
	"bytes"
	"context"
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

// mirrored measures leases granted by a coordinator that keeps its state in Redis,
// beside one that keeps it in memory. Each is a process of its own. The holders tell
// what they spent, as holders do: so as many leases end as begin.
func mirrored(bounds *measure.Bounds) error {
	r, err := server.StartRedis("--appendonly", "yes", "--appendfsync", "everysec")
	if err != nil {
		return err
	}
	defer r.End()
	plain, err := connectPair(responder.Config{Policy: onePolicy})
	if err != nil {
		return err
	}
	defer plain.close()
	kept, err := connectPair(responder.Config{Policy: onePolicy, Redis: r.URL})
	if err != nil {
		return err
	}
	defer kept.close()
	const rounds, length = 11, 500 * time.Millisecond
	for _, level := range []struct {
		outstanding int
		bound       float64 // none if 0
	}{{64, 0}, {256, 0.6}, {1024, 0.75}} {
		before, err := turnsOf(r, kept)
		if err != nil {
			return err
		}
		results, err := measure.Rounds(rounds, length,
			measure.Case{Name: "grants in memory", Run: plain.grants(level.outstanding)},
			measure.Case{Name: "grants mirrored", Run: kept.grants(level.outstanding)})
		if err != nil {
			return err
		}
		measure.Table(os.Stdout, fmt.Sprintf("leases to 2 holders, granted and spent, %d outstanding, pipelined", level.outstanding), results)
		after, err := turnsOf(r, kept)
		if err != nil {
			return err
		}
		fmt.Printf("  %.0f grants a script, on which Redis spends %.0f us\n", (after.grants-before.grants)/(after.scripts-before.scripts),
			(after.micros-before.micros)/(after.scripts-before.scripts))
		name, of := fmt.Sprintf("mirrored-grants-%d", level.outstanding), named(results, "grants in memory").Over(named(results, "grants mirrored"))
		if level.bound == 0 {
			fmt.Printf("%s %.3f of those in memory\n", name, of)
			continue
		}
		bounds.AtLeast(name, of, level.bound)
	}
	return nil
}

// turned is how many grants were asked for and how many scripts were run, and for how
// long.
type turned struct{ grants, scripts, micros float64 }

func turnsOf(r *server.Redis, p *pair) (turned, error) {
	stats, err := r.Stats(context.Background())
	if err != nil {
		return turned{}, err
	}
	s := stats["evalsha"]
	return turned{float64(p.seq.Load()), float64(s.Calls), float64(s.Spent.Microseconds())}, nil
}

// pair is two holders, each with a connection of its own to the same coordinator.
type pair struct {
	holders []*asker
	seq     atomic.Uint64
	end     func()
}

func connectPair(config responder.Config) (*pair, error) {
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
		a, err := newAsker(asker{nc: nc, leases: 1, outstanding: 1, holders: 1, first: 16 + i, seq: &p.seq})
		if err != nil {
			nc.Close()
			p.close()
			return nil, err
		}
		p.holders = append(p.holders, a)
	}
	return p, nil
}

func (p *pair) close() {
	for _, a := range p.holders {
		a.nc.Close()
	}
	p.end()
}

// grants lets each holder have half of what is outstanding, and of the grants.
func (p *pair) grants(outstanding int) func(int) error {
	return func(n int) error {
		var g errgroup.Group
		for _, a := range p.holders {
			half := *a
			half.outstanding = outstanding / len(p.holders)
			g.Go(func() error { return half.spend(n / len(p.holders)) })
		}
		return g.Wait()
	}
}

// spend has n leases granted, and tells that they are spent.
func (a *asker) spend(n int) error {
	granted, all := make(chan []byte, 4*a.outstanding), make(chan struct{})
	a.granted = func(answer []byte) { granted <- idIn(answer) }
	var g errgroup.Group
	g.Go(func() error {
		defer close(all)
		return a.pipelined(a.acquire)(n)
	})
	g.Go(func() (failed error) {
		for {
			select {
			case id := <-granted:
				if failed == nil { // else the grants come to their end
					failed = a.report(id, granted)
				}
			case <-all:
				if len(granted) == 0 {
					return failed
				}
			}
		}
	})
	return g.Wait()
}

// idIn finds the id in an answer.
func idIn(answer []byte) []byte {
	_, rest, _ := bytes.Cut(answer, []byte(`"id":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return id
}

// reported is how many leases a report tells of at most.
const reported = 256

// report tells that a lease is spent, and those that have been granted besides.
func (a *asker) report(id []byte, granted <-chan []byte) error {
	body := fmt.Appendf(make([]byte, 0, 80*reported), `{"v":1,"holder":"bench.%x","sent":"%dus","counts":[`, a.first, sent())
	for n := 0; ; n++ {
		body = fmt.Appendf(body, `{"id":"%s","keys":["k"],"points":[{"count":1,"age":"0us"}]}`, id)
		if n == reported || len(granted) == 0 {
			break
		}
		body = append(body, ',')
		id = <-granted
	}
	reply, err := a.nc.Request(a.tell, append(body, "]}"...), patience)
	if err == nil && bytes.Contains(reply.Data, []byte(`"error":{`)) {
		err = fmt.Errorf("bench: a report is not taken: %.300s", reply.Data)
	}
	return err
}
