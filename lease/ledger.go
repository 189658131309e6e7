package lease

import (
	"slices"

	"github.com/google/btree"

	"ration/algo"
	"ration/internal/table"
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
	Dial    Dial
	Answers []Answered
	Replies []Replied
	// Dropped names copies that will never be answered: a newer copy took their
	// place, or nobody waits for them any more.
	Dropped []Ticket
	Recalls []Recall
	Changes []Change
	// Policy is the one in force from this turn on, nil if the mirror has it already.
	Policy *PolicyRecord
	// Rewritten says that with this turn all is written back that Ledger.Rewrite was
	// called for.
	Rewritten bool
	// Behind says that the mirror, also when it has this turn, lacks some of what the ledger
	// knows.
	Behind bool
	// Wall is the leader's wall clock at Instant, and Sound says that nothing of the
	// mirror is in doubt any more for having been lost. Both are the leader's to fill in.
	Wall  algo.Instant
	Sound bool

	begun []*lease
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
	revision   uint64 // of the policy
	unwritten  bool   // the mirror is to have it
	reaching   bool   // leases and waiters are yet to be brought under it
	contracts  contracts
	accounts   *table.Table[Key, *account]
	order      roll[*account] // for the sweep
	resetAt    int            // the place in it where the next reset goes on
	keys       sweep
	kept       int // accounts that count as keys in memory
	tenantKeys keyTally
	held       Amount // by all leases together
	leases     *table.Table[name, *lease]
	waiting    *table.Table[name, *waiter]
	holders    *table.Table[owner, *holder]
	roster     roll[*holder] // for the sweep
	heard      sweep
	tenants    *table.Table[string, *tenant]
	ended      *table.Table[name, *ending]
	timers     timers
	stirred    []*account
	served     []*account
	touched    []*account
	altered    []*batch
	used       []*account
	granted    []*waiter // this turn, to be topped up
	spare      []*waiter // to be used again
	classes    []*class  // in all lines together, by name
	nodes      *btree.FreeListG[*waiter]
	orders     uint64
	lifts      uint64
	now        algo.Instant
	dial       dial
	turn       *Turn
	room       []Answered // for the next turn's
	roomBegun  []*lease
	stats      Stats

	complete     bool // see Start
	lost, lagged Doubt
	epoch        uint64
	forgotten    uint64 // leases that stand for forgotten ones
	generation   uint16 // of what the mirror has; see account.written
	rewriting    bool
	toRewrite    int              // accounts of order
	over         []*account       // of which more slots may be held than the limit is
	unrecorded   bool             // see Owe
	bare         map[Key]struct{} // without a limit, and seen to have no record, until complete
	owed         owed
	takenBack    []*lease // in the next turn

	pauses    int        // accounts that are paused
	newPauses []*account // before the next turn
	resumed   []*account // whose pause is over, and not yet released
}

// NewLedger gives an empty ledger under a policy. It panics if the config is
// not valid.
func NewLedger(p *Policy, c Config) *Ledger {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	return &Ledger{
		config:     c,
		policy:     p,
		revision:   1,
		contracts:  noContracts(),
		accounts:   table.New(accountKey),
		leases:     table.New((*lease).name),
		waiting:    table.New((*waiter).name),
		holders:    table.New((*holder).owner),
		tenants:    table.New(tenantName),
		ended:      table.New((*ending).name),
		dial:       dial{full: c.TokenTTL},
		complete:   c.Unmirrored,
		generation: 1,
		nodes:      btree.NewFreeListG[*waiter](btree.DefaultFreeListSize),
	}
}

// Turn takes the messages that have arrived, in their order, and everything
// that has come about by now, and gives what follows. now is read after the
// last message was taken up; an earlier one than the last turn's is taken as
// that. Keys that Unloaded names must have been restored before.
func (l *Ledger) Turn(now algo.Instant, in []Message) *Turn {
	l.now = max(l.now, now)
	l.turn = &Turn{Instant: l.now, Dial: l.dial.Dial, Answers: slices.Grow(l.room, len(in)), begun: l.roomBegun}
	l.room, l.roomBegun = nil, nil
	l.stats.Turns++
	l.pauseNew()
	l.takeBack()
	l.reach()
	for _, m := range in {
		if m.Report != nil {
			l.report(m)
		}
	}
	for t, ok := l.timers.due(l.now); ok; t, ok = l.timers.due(l.now) {
		l.fire(t)
	}
	l.reconsider()
	l.serveStirred() // who waits comes before who arrives
	l.release()
	for _, m := range in {
		if m.Request != nil {
			l.request(m)
		}
	}
	l.serveStirred()
	l.topUp()
	l.recall()
	l.sweep()
	l.record()
	l.rest()
	turn := l.turn
	l.turn = nil
	return turn
}

// Done takes back a turn that nobody looks at any more: the next one uses its room.
func (l *Ledger) Done(t *Turn) {
	clear(t.Answers)
	l.room, t.Answers = shrunk(t.Answers[:0]), nil
	clear(t.begun)
	l.roomBegun, t.begun = shrunk(t.begun[:0]), nil
}

// Next is when something comes about without a message: the shell takes a turn
// then. False means never.
func (l *Ledger) Next() (algo.Instant, bool) {
	at, ok := l.timers.next()
	if len(l.takenBack) > 0 || !l.unrecorded && l.behind() {
		at, ok = l.now, true
	}
	if len(l.order) > 0 || len(l.roster) > 0 {
		if sweep := l.now.Add(l.sweepEvery()); !ok || sweep.Before(at) {
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
	case !l.endPause(t.account):
		l.stir(t.account)
	}
}

// match finds or makes the accounts of the keys' limited prefixes, and adds them to
// found.
func (l *Ledger) match(found []*account, keys []Key) []*account {
	for _, k := range keys {
		for _, m := range l.policy.Match(k) {
			a, ok := l.accounts.Get(m.Prefix)
			if !ok {
				a = l.open(m.Prefix, l.contract(m.Binding))
			}
			l.unblock(a)
			if l.use(a); !slices.Contains(found, a) {
				found = append(found, a)
			}
		}
		if l.pauses > 0 {
			found = l.matchPaused(found, k)
		}
	}
	return found
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
	l.use(a)
	l.retain(a)
	if !a.touched && !l.config.Unmirrored {
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
