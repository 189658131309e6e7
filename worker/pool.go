package worker

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"ration/algo"
	"ration/lease"
)

// Pool is what one holder has of one set of keys: leases, local callers in
// line, and requests under way. See the package comment for how to drive it.
//
// It reads no clock, starts nothing and waits for nothing: time comes in as the
// holder's elapsed time and may not run backwards. It is not safe for concurrent
// use, but for what package worker itself does in Allow.
type Pool struct {
	keys []lease.Key
	cfg  PoolConfig
	ids  func() lease.ID
	rand *rand.Rand

	live atomic.Pointer[holding] // what Allow takes from; nil if it has to ask
	dry  atomic.Int64            // Allow of so many or more need not ask, with no live
	// looks counts how often it was noted what Allow had taken.
	looks atomic.Int64

	leases []*holding // in the order of their grants
	stock  []*holding // those with tokens at hand, soonest deadline first
	byID   map[lease.ID]*holding
	// allowed are those that Allow has ever taken from.
	allowed []*holding

	line     line
	taken    line // calls that are Taken, and not spent yet
	orders   uint64
	patient  int           // callers in line without a deadline
	longest  time.Duration // no deadline in line is later
	soonest  time.Duration // no deadline in line is sooner
	served   []*Call
	running  []*Call // that hold slots
	settling []*Call // spent, but still able to give tokens back
	open     int64   // tokens in the hands of calls
	// unitsOpen are units in the hands of calls, all added up.
	unitsOpen int64

	requests []*request
	refill   *request // the one in flight that no caller waits for
	givenUp  []givenUp
	// overspends are those that nobody has acknowledged.
	overspends []overspent

	terms      lease.Terms
	known      bool // terms come from an answer
	tightTill  time.Duration
	scarceTill time.Duration // as tightTill, of slots
	owed       int64         // slots that are to go back as they become idle
	recalledAt time.Duration
	thirst     int64 // tokens an Allow did not find
	thirstAt   time.Duration
	// thirstUnits are what else it did not find, and unitRefillAt is when a refill
	// that needs units may be asked for again.
	thirstUnits  lease.Units
	unitRefillAt time.Duration
	askAt        time.Duration // no request for a caller before
	refillAt     time.Duration // no refill before that needs
	refillNeed   int64         // so many or more
	keepTill     time.Duration // until then thirst tokens are not idle
	lastSpend    time.Duration
	nextSpend    time.Duration // no spend before, under a pace rule
	othersTill   time.Duration // until then others are taken to want it, too
	demand       demand

	due     time.Duration // when a report is wanted
	wake    time.Duration // when Tick is wanted
	now     time.Duration // the last instant given
	closed  bool
	trouble error // the last failure, if no answer came since
	books   Books
}

// NewPool makes a pool for a set of keys, all of one tenant. ids gives the ids
// of its requests, each once; rnd spreads what is asked again.
func NewPool(keys []lease.Key, cfg PoolConfig, ids func() lease.ID, rnd *rand.Rand) *Pool {
	p := &Pool{
		keys: keys, cfg: cfg, ids: ids, rand: rnd,
		byID: map[lease.ID]*holding{},
		due:  Forever, wake: Forever, soonest: Forever,
		lastSpend: -Forever / 2, demand: demand{batch: 1},
	}
	p.dry.Store(unbarred)
	return p
}

// Ask demands cost tokens and such units, and a slot if slot is set and a
// concurrency rule binds, until an instant or Forever. The call comes back Taken,
// Waiting or Failed. cost has to be above 0, and units as lease.Units are; the pool
// keeps them.
func (p *Pool) Ask(now time.Duration, cost int64, slot bool, until time.Duration, units ...lease.UnitAmount) *Call {
	p.at(now)
	p.orders++
	c := &Call{cost: cost, more: newMore(units), slot: slot, order: p.orders, asked: now, until: until}
	c.parts = c.inline[:0]
	switch {
	case cost < 1:
		panic(fmt.Sprintf("worker: asked for %d tokens; the least is 1", cost))
	case p.closed:
		c.state, c.err = Failed, ErrClosed
		return c
	}
	c.silent = true
	p.enter(c)
	p.deal(now)
	p.trim()
	if c.state == Waiting && until <= now {
		p.leave(c)
		c.state, c.err = Failed, lease.ErrTimedOut
	}
	p.plan(now)
	c.silent = false
	return c
}

// Spend spends a call that is Taken, at an instant read after it was seen to be.
// It is false, and no spend, if a deadline has passed: then the call is Taken
// anew, of another lease, or back at its place in the line.
func (p *Pool) Spend(now time.Duration, c *Call) bool {
	if c.state != Taken {
		return false
	}
	p.at(now)
	good := c.slotOf == nil || !c.slotOf.slotsGone && now < c.slotOf.slotDeadline
	for _, part := range c.parts {
		good = good && !part.from.gone && now < part.from.deadline
	}
	for _, part := range c.unitParts() {
		good = good && !part.from.gone && now < part.from.deadline
	}
	if !good {
		p.books.Overdue++
		p.undo(now, c)
		c.silent = true
		p.enter(c)
		p.deal(now)
		p.plan(now)
		c.silent = false
		return false
	}
	p.taken.remove(c)
	c.state, c.sent = Running, now
	p.lastSpend = now
	if c.slotOf != nil {
		p.running = append(p.running, c)
	}
	if p.spaced() {
		p.space(now, c)
		return true
	}
	p.settling = append(p.settling, c)
	p.wakeBy(now + p.resolveAfter())
	return true
}

// Cancel says that the call never left: its tokens go to the next local caller,
// or back at once, and so does its slot, as free as if it had been answered.
func (p *Pool) Cancel(now time.Duration, c *Call) {
	if c == nil {
		return
	}
	p.at(now)
	switch c.state {
	case Waiting:
		p.leave(c)
		c.state = Done
		p.deal(now) // who stood behind it may need less
	case Taken, Running:
		p.stop(now, c)
		p.giveBack(now, c)
		p.slotBack(now, c, true)
	case Lost:
		c.state = Done
		return
	default:
		return
	}
	p.plan(now)
}

// Finish says that the upstream has answered: the cost is spent, and the slot
// serves the next local caller or goes back.
func (p *Pool) Finish(now time.Duration, c *Call) { p.end(now, c, true) }

// Abandon says that the call left, but nobody waits for its answer: the cost is
// spent, and the slot goes back as cut, since the upstream may be at work still.
func (p *Pool) Abandon(now time.Duration, c *Call) { p.end(now, c, false) }

func (p *Pool) end(now time.Duration, c *Call, answered bool) {
	p.at(now)
	if c.state != Running {
		if c.state == Lost {
			c.state = Done
		}
		return
	}
	p.stop(now, c)
	p.resolve(now, c, c.cost, c.Units())
	p.slotBack(now, c, answered)
	p.plan(now)
}

// Settle finishes a call that used more or less than it asked for. Of less, used
// tokens are spent at the call's date, and the rest goes to the next local caller, or
// back. It does so until half a second after the spend, or a sixth of the shortest
// window if that is less; from then on the whole cost counts as spent, and at once
// under a pace rule. More is overspend: the lessor is told, and takes it from what
// is granted later. A used below 0 or above what any rule could grant is an error,
// and the whole cost is spent. Of a unit that units does not name all is spent.
func (p *Pool) Settle(now time.Duration, c *Call, used int64, units ...lease.UnitAmount) error {
	p.at(now)
	usedUnits, overUnits, err := c.settled(units)
	if used < 0 || used > algo.MaxLimit {
		err = senseless{used, c.cost, ""}
	}
	over := max(0, used-c.cost)
	if used = min(used, c.cost); err != nil {
		used, usedUnits, over, overUnits = c.cost, c.Units(), 0, nil
	}
	if c.state == Running || c.state == Lost {
		p.overspend(now, over, overUnits)
	}
	if c.state != Running {
		if c.state == Lost {
			c.state = Done
		}
		return err
	}
	p.stop(now, c)
	p.resolve(now, c, used, usedUnits)
	p.giveBack(now, c)
	p.slotBack(now, c, true)
	p.plan(now)
	return err
}

// Served gives the calls that were decided since it was last called, other than
// by the call's own Ask or Spend: Taken, Failed or Lost, in order.
func (p *Pool) Served() []*Call {
	served := p.served
	p.served = nil
	return served
}

// Trouble is the last failure to get an answer, or nil if one came since.
func (p *Pool) Trouble() error { return p.trouble }

// at takes note of the instant. Elapsed time does not run backwards, but two
// readings may reach the pool in the other order.
func (p *Pool) at(now time.Duration) { p.now = max(p.now, now) }

func (p *Pool) wakeBy(t time.Duration) { p.wake = min(p.wake, t) }
func (p *Pool) dueBy(t time.Duration)  { p.due = min(p.due, t) }
