package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"ration/bench/measure"
	"ration/bench/responder"
	"ration/bus"
)

const (
	outstanding = 256
	patience    = 10 * time.Second
)

// asker asks the other process.
type asker struct {
	nc      *nats.Conn
	acquire string // subject
	echo    string // subject
	seq     atomic.Uint64
	failed  atomic.Pointer[error]
}

// grants measures leases granted over NATS beside an echo of the same bytes.
func grants(bounds *measure.Bounds) error {
	url, end, err := responder.Start(onePolicy)
	if err != nil {
		return err
	}
	defer end()
	nc, err := bus.Connect(url, bus.ConnectConfig{})
	if err != nil {
		return err
	}
	defer nc.Close()
	a := &asker{nc: nc, acquire: fmt.Sprintf("ration.v1.default.p.%d.acquire.k", bus.Partition("k", 1))}
	reply, err := nc.Request(a.acquire, a.body(), patience)
	if err != nil {
		return err
	}
	if err := granted(reply.Data); err != nil {
		return err
	}
	a.echo = fmt.Sprintf("echo.%d", len(reply.Data))
	fmt.Printf("\na request of %d bytes and an answer of %d; %d outstanding\n", len(a.body()), len(reply.Data), outstanding)

	const rounds, length = 7, 500 * time.Millisecond
	results := measure.Rounds(rounds, length,
		measure.Case{Name: "echo, nc.Request", Run: a.requests(a.echo)},
		measure.Case{Name: "grants, nc.Request", Run: a.requests(a.acquire)},
		measure.Case{Name: "echo, pipelined", Run: a.pipelined(a.echo)},
		measure.Case{Name: "grants, pipelined", Run: a.pipelined(a.acquire)})
	if err := a.failed.Load(); err != nil {
		return *err
	}
	measure.Table(os.Stdout, "leases over NATS, two processes", results)
	bounds.AtLeast("grants-of-echo", named(results, "echo, nc.Request")/named(results, "grants, nc.Request"), 0.75)
	return nil
}

// holders share the leases, since one may have only so many.
const holders = 90

// body is a request for one token, under an id of its own.
func (a *asker) body() []byte {
	n := a.seq.Add(1) + 100_000_000
	return fmt.Appendf(nil, `{"v":1,"id":"bench.%x/%d","keys":["k"],"want":{"tokens":1},"need":{"tokens":1},"sent":"1ms","patience":"10s"}`,
		16+n%holders, n)
}

// granted says what is wrong with an answer.
func granted(body []byte) error {
	var answer struct {
		Outcome string `json:"outcome"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Outcome != "granted" {
		return fmt.Errorf("bench: no grant: %s", body)
	}
	return nil
}

// served looks for a grant in an answer; that of an echo it only looks through.
func (a *asker) served(subject string, body []byte) bool {
	return bytes.Contains(body, []byte(`"outcome":"granted"`)) || subject == a.echo
}

func (a *asker) fail(err error) { a.failed.CompareAndSwap(nil, &err) }

// requests asks n times, from as many goroutines as may be outstanding.
func (a *asker) requests(subject string) func(int) {
	return func(n int) {
		var next atomic.Int64
		var g sync.WaitGroup
		for range outstanding {
			g.Go(func() {
				for next.Add(1) <= int64(n) {
					reply, err := a.nc.Request(subject, a.body(), patience)
					if err == nil && !a.served(subject, reply.Data) {
						err = fmt.Errorf("bench: no grant: %s", reply.Data)
					}
					if err != nil {
						a.fail(err)
						return
					}
				}
			})
		}
		g.Wait()
	}
}

// pipelined publishes n requests with one inbox for all replies.
func (a *asker) pipelined(subject string) func(int) {
	return func(n int) {
		inbox := a.nc.NewInbox()
		places := make(chan struct{}, outstanding)
		sub, err := a.nc.Subscribe(inbox, func(m *nats.Msg) {
			if !a.served(subject, m.Data) {
				a.fail(fmt.Errorf("bench: no grant: %s", m.Data))
			}
			<-places
		})
		if err != nil {
			a.fail(err)
			return
		}
		late := time.NewTimer(time.Minute)
		defer late.Stop()
		for range n + outstanding {
			select {
			case places <- struct{}{}:
			case <-late.C:
				a.fail(fmt.Errorf("bench: %s: replies are missing", subject))
				return
			}
			if n--; n >= 0 {
				if err := a.nc.PublishRequest(subject, inbox, a.body()); err != nil {
					a.fail(err)
					return
				}
			}
		}
		_ = sub.Unsubscribe()
	}
}
