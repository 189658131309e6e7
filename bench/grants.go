package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"ration/bench/measure"
	"ration/bench/responder"
	"ration/bus"
	"ration/lease"
)

const (
	outstanding = 256
	patience    = 10 * time.Second
)

// many is how many leases a message asks for where it asks for more than one.
const many = 16

// asker asks the other process, for so many leases in each message, in the names of
// holders that share them, since one may have only so many.
type asker struct {
	nc          *nats.Conn
	leases      int
	outstanding int
	holders     uint64
	first       uint64 // incarnation
	acquire     string // subjects
	tell        string
	echo        string
	seq         *atomic.Uint64
	granted     func(answer []byte) // is told each grant of a pipelined round; nil for nobody
}

// grants measures leases granted over NATS beside an echo of the same bytes.
func grants(bounds *measure.Bounds) error {
	url, end, err := responder.Start(responder.Config{Policy: onePolicy})
	if err != nil {
		return err
	}
	defer end()
	nc, err := bus.Connect(url, bus.ConnectConfig{})
	if err != nil {
		return err
	}
	defer nc.Close()
	var seq atomic.Uint64
	one, err := newAsker(asker{nc: nc, leases: 1, outstanding: outstanding, holders: holders, first: 16, seq: &seq})
	if err != nil {
		return err
	}
	some, err := newAsker(asker{nc: nc, leases: many, outstanding: outstanding, holders: holders, first: 16, seq: &seq})
	if err != nil {
		return err
	}
	for _, a := range []*asker{one, some} {
		fmt.Printf("\na message of %d bytes for %d, and an answer of %s; %d outstanding\n", len(a.body()), a.leases, strings.TrimPrefix(a.echo, "echo."), a.outstanding)
	}
	const rounds, length = 41, 100 * time.Millisecond
	results, err := measure.Rounds(rounds, length,
		measure.Case{Name: "echo, nc.Request", Run: one.requests(one.echo)},
		measure.Case{Name: "grants, nc.Request", Run: one.requests(one.acquire)},
		measure.Case{Name: "echo, pipelined", Run: one.pipelined(one.echo)},
		measure.Case{Name: "grants, pipelined", Run: one.pipelined(one.acquire)})
	if err != nil {
		return err
	}
	// More leases would live than may, but for this and two echoes to a round of
	// grants.
	time.Sleep(lease.DefaultConfig().TokenTTL)
	together, err := measure.Rounds(rounds, length,
		measure.Case{Name: "echo, nc.Request", Run: some.requests(some.echo)},
		measure.Case{Name: "echo, pipelined", Run: some.pipelined(some.echo)},
		measure.Case{Name: "grants, nc.Request", Run: some.requests(some.acquire)})
	if err != nil {
		return err
	}
	measure.Table(os.Stdout, "messages of one lease, between two processes", results)
	measure.Table(os.Stdout, fmt.Sprintf("messages of %d leases; a second has %d times as many grants", many, many), together)
	bounds.AtLeast("grants-of-echo", named(results, "echo, nc.Request").Over(named(results, "grants, nc.Request")), 0.75)
	return nil
}

// newAsker makes sure that it is granted what it asks for, and learns how long
// the answers are that an echo has to give.
func newAsker(a asker) (*asker, error) {
	at := fmt.Sprintf("ration.v1.%s.p.%d.", bus.DefaultCell, bus.Partition("k", 1))
	a.acquire, a.tell = at+"acquire.k", at+"report.k"
	reply, err := a.nc.Request(a.acquire, a.body(), patience)
	if err != nil {
		return nil, err
	}
	if !a.served(a.acquire, reply.Data) {
		return nil, noGrant(reply.Data)
	}
	a.echo = fmt.Sprintf("echo.%d", len(reply.Data))
	return &a, nil
}

// holders is how many share the leases where it does not matter how many.
const holders = 90

// began is when the holders' clocks did.
var began = time.Now()

// sent is what they show, in microseconds.
func sent() int64 { return 1_000_000 + time.Since(began).Microseconds() }

// body asks for one token a lease, each under an id of its own.
func (a *asker) body() []byte {
	body := fmt.Appendf(make([]byte, 0, 128*a.leases), `{"v":1,"sent":"%dus",`, sent())
	if a.leases == 1 {
		return append(append(body, a.request()...), '}')
	}
	body = append(body, `"requests":[`...)
	for i := range a.leases {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(append(append(body, '{'), a.request()...), '}')
	}
	return append(body, "]}"...)
}

func (a *asker) request() []byte {
	n := a.seq.Add(1) + 100_000_000
	return fmt.Appendf(nil, `"id":"bench.%x/%d","keys":["k"],"want":{"tokens":1},"need":{"tokens":1},"patience":"10s"`, a.first+n%a.holders, n)
}

// served counts the grants in an answer; those of an echo it only looks for.
func (a *asker) served(subject string, body []byte) bool {
	return bytes.Count(body, []byte(`"outcome":"granted"`)) == a.leases || subject == a.echo
}

// requests asks n times, from as many goroutines as may be outstanding.
func (a *asker) requests(subject string) func(int) error {
	return func(n int) error {
		var next atomic.Int64
		var g errgroup.Group
		for range a.outstanding {
			g.Go(func() error {
				for next.Add(1) <= int64(n) {
					reply, err := a.nc.Request(subject, a.body(), patience)
					if err != nil {
						return err
					}
					if !a.served(subject, reply.Data) {
						return noGrant(reply.Data)
					}
				}
				return nil
			})
		}
		return g.Wait()
	}
}

func noGrant(body []byte) error { return fmt.Errorf("bench: no grant: %.300s", body) }

// pipelined publishes n requests with one inbox for all replies.
func (a *asker) pipelined(subject string) func(int) error {
	return func(n int) error {
		inbox := a.nc.NewInbox()
		places := make(chan struct{}, a.outstanding)
		failed := make(chan error, 1)
		sub, err := a.nc.Subscribe(inbox, func(m *nats.Msg) {
			if !a.served(subject, m.Data) {
				select {
				case failed <- noGrant(m.Data):
				default:
				}
			} else if a.granted != nil {
				a.granted(m.Data)
			}
			<-places
		})
		if err != nil {
			return err
		}
		defer func() { _ = sub.Unsubscribe() }()
		late := time.NewTimer(time.Minute)
		defer late.Stop()
		for range n + a.outstanding {
			select {
			case places <- struct{}{}:
			case err := <-failed:
				return err
			case <-late.C:
				return fmt.Errorf("bench: %s: replies are missing", subject)
			}
			if n--; n >= 0 {
				if err := a.nc.PublishRequest(subject, inbox, a.body()); err != nil {
					return err
				}
			}
		}
		return nil
	}
}
