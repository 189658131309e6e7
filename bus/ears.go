package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// EarsConfig says what a coordinator listens for. All but ID must be given.
type EarsConfig struct {
	Cell      string
	Partition int
	// ID is of this life of the coordinator, and the same in all partitions; a random one
	// if empty.
	ID string
	// Name is what operators call this coordinator.
	Name string
	// Known tells what it knows of the seat, for others. It does not block.
	Known func() Known
	// Every is how often the leader is asked whether it is there.
	Every time.Duration
}

// Known is what a coordinator knows of the seat: the highest epoch that it has seen,
// what names the mirror, 0 if that has no seat, whether it leads itself, and whether it
// asks the leader to hand the partition over.
type Known struct {
	Number uint64
	Mirror uint64
	Leads  bool
	Claims bool
}

// Heard is what Ears hear.
type Heard struct {
	// Connected says that what is sent arrives, and that those who answer have had the
	// time to.
	Connected bool
	// Silent says that NATS answers that no leader listens, Served that the leader of the
	// epoch does.
	Silent bool
	Served bool
	// Others are the coordinators of the cell that answer besides.
	Others []Other
}

// Other is another coordinator, as it says itself.
type Other struct {
	ID   string
	Name string
	Known
}

// Ears ask over NATS, again and again, whether a partition has a leader, and which
// coordinators there are. They are safe for concurrent use.
type Ears struct {
	nc    *nats.Conn
	cfg   EarsConfig
	inbox string
	subs  []*nats.Subscription
	stop  chan struct{}
	done  sync.WaitGroup

	mu     sync.Mutex
	began  time.Time
	any    time.Time // the coordinator heard itself
	silent time.Time // NATS said that nobody listens
	served time.Time // a leader answered:
	epoch  lease.Epoch
	others map[string]heardOther
}

type heardOther struct {
	Other
	at time.Time
}

const (
	// earsMemory is for how long what was heard holds.
	earsMemory = 250 * time.Millisecond
	// helloEvery is how often others are asked for, helloMemory for how long one that
	// answered is there, and helloWait how long they have for the first answer.
	helloEvery  = 500 * time.Millisecond
	helloMemory = 1500 * time.Millisecond
	helloWait   = 200 * time.Millisecond
)

// helloMessage is what a coordinator says of itself.
type helloMessage struct {
	V      int    `json:"v"`
	ID     string `json:"id"`
	Name   string `json:"name"`
	Number uint64 `json:"epoch,string"`
	Mirror uint64 `json:"mirror,string"`
	Leads  bool   `json:"leads"`
	Claims bool   `json:"claims"`
}

// pingMessage is what a leader answers.
type pingMessage struct {
	V      int    `json:"v"`
	Number uint64 `json:"epoch,string"`
	Mark   uint64 `json:"mark,string"`
	// Spread is, in an announcement, the time over which those who waited for another
	// leader should ask this one, drawing a moment of it each.
	Spread string `json:"spread,omitempty"`
}

func pingSubject(cell string, n int) string  { return partitionSubject(cell, n) + ".ping" }
func leadsSubject(cell string, n int) string { return partitionSubject(cell, n) + ".leads" }
func helloSubject(cell string, n int) string { return root + cell + ".hello." + strconv.Itoa(n) }

// Listen begins to listen, until Close is called. The connection outlives it.
func Listen(nc *nats.Conn, cfg EarsConfig) (*Ears, error) {
	if cfg.Cell == "" {
		cfg.Cell = DefaultCell
	}
	if err := errors.Join(checkCell(cfg.Cell), checkPartitions(cfg.Partition+1)); err != nil {
		return nil, err
	}
	if cfg.ID == "" {
		cfg.ID = strconv.FormatUint(rand.Uint64(), 36)
	}
	e := &Ears{
		nc: nc, cfg: cfg, inbox: nc.NewInbox(),
		stop: make(chan struct{}), began: time.Now(), others: map[string]heardOther{},
	}
	for subject, hear := range map[string]nats.MsgHandler{
		e.inbox + ".ping":                     e.pong,
		e.inbox + ".hello":                    e.answered,
		e.inbox + ".echo":                     e.echo,
		helloSubject(cfg.Cell, cfg.Partition): e.asked,
	} {
		sub, err := nc.Subscribe(subject, hear)
		if err != nil {
			e.unsubscribe()
			return nil, fmt.Errorf("bus: listening on %s: %w", subject, err)
		}
		e.subs = append(e.subs, sub)
	}
	e.done.Go(e.ask)
	return e, nil
}

// Close ends the listening.
func (e *Ears) Close() {
	close(e.stop)
	e.done.Wait()
	e.unsubscribe()
}

func (e *Ears) unsubscribe() {
	for _, sub := range e.subs {
		_ = sub.Unsubscribe() // fails only where the connection has ended it
	}
}

func (e *Ears) ask() {
	tick := time.NewTicker(e.cfg.Every)
	defer tick.Stop()
	var hello time.Time
	var said Known
	for {
		// What is not connected is not asked, and a failure is heard as silence.
		if e.nc.IsConnected() {
			_ = e.nc.Publish(e.inbox+".echo", nil)
			_ = e.nc.PublishRequest(pingSubject(e.cfg.Cell, e.cfg.Partition), e.inbox+".ping", nil)
			every := helloEvery
			if time.Since(e.began) < helloWait {
				every = helloWait / 4
			}
			// What others go by when they share the partitions out, or win a mirror back, is
			// told at once.
			known := e.cfg.Known()
			if time.Since(hello) >= every || known.Number != said.Number || known.Leads != said.Leads || known.Claims != said.Claims {
				hello, said = time.Now(), known
				_ = e.nc.PublishRequest(helloSubject(e.cfg.Cell, e.cfg.Partition), e.inbox+".hello", e.hello(known))
			}
		}
		select {
		case <-e.stop:
			return
		case <-tick.C:
		}
	}
}

func (e *Ears) hello(known Known) []byte {
	body, err := json.Marshal(helloMessage{Format, e.cfg.ID, e.cfg.Name, known.Number, known.Mirror, known.Leads, known.Claims})
	if err != nil {
		panic(err) // it has texts and numbers
	}
	return body
}

// echo hears the coordinator itself: what it sends arrives.
func (e *Ears) echo(*nats.Msg) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.any = time.Now()
}

// pong hears of the leader.
func (e *Ears) pong(m *nats.Msg) {
	var p pingMessage
	none := m.Header.Get("Status") == "503"
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	switch {
	case none:
		e.silent = now
	case json.Unmarshal(m.Data, &p) == nil:
		e.served, e.epoch = now, lease.Epoch{Number: p.Number, Mark: p.Mark}
	}
}

// asked hears another coordinator ask for others, and answers.
func (e *Ears) asked(m *nats.Msg) {
	if e.know(m.Data) && m.Reply != "" {
		_ = m.Respond(e.hello(e.cfg.Known())) // it asks again
	}
}

func (e *Ears) answered(m *nats.Msg) {
	if m.Header.Get("Status") != "503" {
		e.know(m.Data)
	}
}

// know notes what another says of itself, and tells whether it is another.
func (e *Ears) know(body []byte) bool {
	var h helloMessage
	if json.Unmarshal(body, &h) != nil || h.ID == "" || h.ID == e.cfg.ID {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.others[h.ID] = heardOther{Other{h.ID, h.Name, Known{h.Number, h.Mirror, h.Leads, h.Claims}}, time.Now()}
	return true
}

// Hear tells what is heard of the leader of an epoch, or of any for none.
func (e *Ears) Hear(epoch lease.Epoch) Heard {
	connected := e.nc.IsConnected()
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	lately := func(at time.Time) bool { return now.Sub(at) < earsMemory }
	h := Heard{
		Connected: connected && lately(e.any) && now.Sub(e.began) >= helloWait,
		Silent:    lately(e.silent) && e.silent.After(e.served),
		Served:    lately(e.served) && e.served.After(e.silent) && (e.epoch == epoch || epoch == lease.Epoch{}),
	}
	for id, o := range e.others {
		if now.Sub(o.at) > helloMemory {
			delete(e.others, id)
			continue
		}
		h.Others = append(h.Others, o.Other)
	}
	return h
}
