package lease

import (
	"maps"
	"slices"
	"time"

	"ration/algo"
)

// Ticket names one copy of a message, so that its answer finds the way back.
// The shell chooses it; the ledger only hands it back.
type Ticket uint64

// Message is one copy of a request or of a report, as it arrived.
type Message struct {
	Ticket  Ticket
	Arrived algo.Instant
	Request *Request // or
	Report  *Report
}

// Turn is what one step of the ledger brought: what to record, and what may be
// said once it is recorded. Epoch and Seq are the leader's to fill in.
type Turn struct {
	Epoch   Epoch
	Seq     uint64
	Instant algo.Instant
	Answers []Answered
	Replies []Replied
	// Dropped names copies that will never be answered: a newer copy took their
	// place, or nobody waits for them any more.
	Dropped []Ticket
	Recalls []Recall
	Records []Record
}

// Answered is the answer to the copy of a request that came as Ticket.
type Answered struct {
	Ticket Ticket
	Answer Answer
}

// Replied is the reply to the report that came as Ticket.
type Replied struct {
	Ticket Ticket
	Reply  Reply
}

// Ledger is the authoritative state of all windows: what is free, held by which
// lease, and spent, and who waits. It is a pure machine: time arrives as an
// argument, nothing happens between turns, the same messages at the same
// instants give the same turns. It has no lock; one goroutine owns it.
type Ledger struct {
	config     Config
	policy     *Policy
	contracts  map[*Limit]*contract
	accounts   map[Key]*account
	order      []*account // for the sweep
	swept      int
	sweptAt    algo.Instant
	leases     map[name]*lease
	waiting    map[name]*waiter
	holders    map[owner]*holder
	heardSwept algo.Instant
	ended      memory
	timers     timers
	stirred    []*account
	served     []*account
	touched    []*account
	granted    []*waiter // this turn, to be topped up
	copies     []Message // of requests granted this turn
	orders     uint64
	now        algo.Instant
	turn       *Turn
	stats      Stats
}

// NewLedger gives an empty ledger under a policy. It panics if the config is
// not valid.
func NewLedger(p *Policy, c Config) *Ledger {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	return &Ledger{
		config:    c,
		policy:    p,
		contracts: map[*Limit]*contract{},
		accounts:  map[Key]*account{},
		leases:    map[name]*lease{},
		waiting:   map[name]*waiter{},
		holders:   map[owner]*holder{},
		ended:     memory{byID: map[name]*ending{}},
	}
}

// Turn takes the messages that have arrived, in their order, and everything
// that has come about by now, and gives what follows. now is read after the
// last message was taken up; an earlier one than the last turn's is taken as
// that. Keys that Unloaded names must have been restored before.
func (l *Ledger) Turn(now algo.Instant, in []Message) *Turn {
	l.now = max(l.now, now)
	l.turn = &Turn{Instant: l.now, Answers: make([]Answered, 0, len(in))}
	for _, m := range in {
		if m.Report != nil {
			l.report(m)
		}
	}
	for t, ok := l.timers.due(l.now); ok; t, ok = l.timers.due(l.now) {
		l.fire(t)
	}
	l.serveStirred() // who waits comes before who arrives
	for _, m := range in {
		if m.Request != nil {
			l.request(m)
		}
	}
	l.serveStirred()
	l.topUp()
	l.recall()
	l.forget()
	l.record()
	turn := l.turn
	l.turn = nil
	return turn
}

// Next is when something comes about without a message: the shell takes a turn
// then. False means never.
func (l *Ledger) Next() (algo.Instant, bool) {
	at, ok := l.timers.next()
	if len(l.order) > 0 || len(l.holders) > 0 {
		if sweep := l.now.Add(time.Second); !ok || sweep.Before(at) {
			return sweep, true
		}
	}
	return at, ok
}

func (l *Ledger) fire(t timer) {
	switch {
	case t.lease != nil:
		l.expire(t.lease)
	case t.waiter != nil:
		l.overdue(t.waiter)
	default:
		l.stir(t.account)
	}
}

// match finds or makes the accounts of the keys' limited prefixes.
func (l *Ledger) match(keys []Key) []*account {
	var found []*account
	for _, k := range keys {
		for _, m := range l.policy.Match(k) {
			a := l.accounts[m.Prefix]
			if a == nil {
				a = newAccount(l.now, m.Prefix, l.contract(m.Limit))
				if a.counts(slots) {
					a.slots = map[Holder]int64{}
				}
				l.add(a)
			}
			if !slices.Contains(found, a) {
				found = append(found, a)
			}
		}
	}
	return found
}

func (l *Ledger) add(a *account) {
	l.accounts[a.key] = a
	a.sweep = len(l.order)
	l.order = append(l.order, a)
}

func (l *Ledger) contract(limit *Limit) *contract {
	c := l.contracts[limit]
	if c == nil {
		c = newContract(limit, l.config.PPM)
		l.contracts[limit] = c
	}
	return c
}

// stir marks an account whose line may be served: something became free, or
// somebody left.
func (l *Ledger) stir(a *account) {
	if !a.dirty && a.line.len() > 0 {
		a.dirty = true
		l.stirred = append(l.stirred, a)
	}
}

// touch marks an account whose record has changed.
func (l *Ledger) touch(a *account) {
	if !a.touched {
		a.touched = true
		l.touched = append(l.touched, a)
	}
}

func (l *Ledger) serveStirred() {
	for len(l.stirred) > 0 {
		a := l.stirred[0]
		l.stirred = l.stirred[1:]
		a.dirty = false
		l.serve(a)
		l.served = append(l.served, a)
	}
	l.stirred = nil
}

// forget lets go of what is equal to never having been: remembered ids past
// their time, silent holders, and accounts at rest, a part of them a turn.
func (l *Ledger) forget() {
	l.ended.forget(l.now)
	for range l.sweepBudget() {
		if l.swept >= len(l.order) {
			l.swept = 0
		}
		if a := l.order[l.swept]; !a.touched && a.idle(l.now) {
			l.drop(a)
			continue
		}
		l.swept++
	}
	if l.now.Sub(l.heardSwept) > l.config.Memory {
		l.heardSwept = l.now
		maps.DeleteFunc(l.holders, func(_ owner, h *holder) bool {
			return l.now.Sub(h.heard) > l.config.Memory
		})
	}
}

// sweepBudget is how many accounts a turn looks at: all of them in a minute, in
// pieces that no message waits for long.
func (l *Ledger) sweepBudget() int {
	const most = 16_384
	n := len(l.order)
	elapsed := min(l.now.Sub(l.sweptAt), time.Minute)
	l.sweptAt = l.now
	return min(n, most, 1+int(int64(n)*int64(elapsed/time.Microsecond)/int64(time.Minute/time.Microsecond)))
}

// drop lets go of an account at rest, here and in the mirror.
func (l *Ledger) drop(a *account) {
	l.turn.Records = append(l.turn.Records, Record{Key: a.key})
	last := len(l.order) - 1
	l.order[a.sweep] = l.order[last]
	l.order[a.sweep].sweep = a.sweep
	l.order[last] = nil
	l.order = l.order[:last]
	delete(l.accounts, a.key)
}
