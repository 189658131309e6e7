package worker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

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
	dry  atomic.Bool             // Allow need not ask: a refill is under way

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

	requests []*request
	refill   *request // the one in flight that no caller waits for
	givenUp  []givenUp

	terms      lease.Terms
	known      bool // terms come from an answer
	tightTill  time.Duration
	scarceTill time.Duration // as tightTill, of slots
	owed       int64         // slots that are to go back as they become idle
	recalledAt time.Duration
	thirst     int64 // tokens an Allow did not find
	thirstAt   time.Duration
	askAt      time.Duration // no request for a caller before
	refillAt   time.Duration // no refill before
	keepTill   time.Duration // until then thirst tokens are not idle
	lastSpend  time.Duration
	demand     demand

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
	return &Pool{
		keys: keys, cfg: cfg, ids: ids, rand: rnd,
		byID: map[lease.ID]*holding{},
		due:  Forever, wake: Forever, soonest: Forever,
		lastSpend: -Forever / 2, demand: demand{batch: 1},
	}
}

// Ask demands cost tokens, and a slot if slot is set and a concurrency rule
// binds, until an instant or Forever. The call comes back Taken, Waiting or
// Failed. cost has to be above 0.
func (p *Pool) Ask(now time.Duration, cost int64, slot bool, until time.Duration) *Call {
	p.at(now)
	p.orders++
	c := &Call{cost: cost, slot: slot, order: p.orders, asked: now, until: until}
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
	p.settling = append(p.settling, c)
	p.wakeBy(now + p.resolveAfter())
	if c.slotOf != nil {
		p.running = append(p.running, c)
	}
	return true
}

// Allow takes and spends n tokens at hand, or is false and starts a refill. It
// is for owners that drive the pool alone, such as a simulator.
func (p *Pool) Allow(now time.Duration, n int64) bool {
	if h := p.live.Load(); h != nil && h.takeAll(n) {
		return h.spend(now, n)
	}
	c := p.Try(now, n)
	if c == nil || !p.Spend(now, c) {
		p.Cancel(now, c)
		return false
	}
	p.Finish(now, c)
	return true
}

// Try takes n tokens at hand for a call that will not wait: Spend it, then
// Finish. It is nil if they are not there, or others wait for them, or a
// concurrency rule binds; then a refill is started.
func (p *Pool) Try(now time.Duration, n int64) *Call {
	p.at(now)
	if p.closed || p.terms.Concurrent || n < 1 {
		return nil
	}
	p.orders++
	c := &Call{cost: n, order: p.orders, asked: now, until: now, state: Taken}
	c.parts = c.inline[:0]
	if p.line.count > 0 || !p.take(now, c) {
		p.thirst, p.thirstAt = n, now
		p.plan(now)
		return nil
	}
	p.taken.insert(c)
	p.plan(now)
	return c
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
		p.giveBack(now, c, c.cost)
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
	p.resolve(now, c, c.cost)
	p.slotBack(now, c, answered)
	p.plan(now)
}

// Settle finishes a call that used less than it asked for: used tokens are spent
// at the call's date, and the rest goes to the next local caller, or back. The
// rest can not come back once the call has been reported as spent, which is a
// third of the shortest window after it was sent, at most. A used above the cost
// is an error, and the whole cost is spent.
func (p *Pool) Settle(now time.Duration, c *Call, used int64) error {
	p.at(now)
	var err error
	if used < 0 || used > c.cost {
		err, used = overspend{used, c.cost}, c.cost
	}
	if c.state != Running {
		if c.state == Lost {
			c.state = Done
		}
		return err
	}
	p.stop(now, c)
	p.resolve(now, c, used)
	p.giveBack(now, c, c.cost-used)
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

// Close fails the callers in line, takes all tokens and slots back, and ends the
// calls that run: they count as spent, and their slots as cut. Report then gives
// the final counts, for a goodbye.
func (p *Pool) Close(now time.Duration) {
	p.at(now)
	if p.closed {
		return
	}
	p.closed = true
	for c := p.line.head; c != nil; c = p.line.head {
		p.fail(c, ErrClosed)
	}
	for c := p.taken.head; c != nil; c = p.taken.head {
		p.stop(now, c)
		p.giveBack(now, c, c.cost)
		p.slotBack(now, c, true)
		c.state, c.err = Failed, ErrClosed
		p.tell(c)
	}
	for _, c := range slices.Clone(p.running) {
		p.stop(now, c)
		p.resolve(now, c, c.cost)
		p.slotBack(now, c, false)
		c.state, c.err = Lost, ErrClosed
		p.tell(c)
	}
	for _, c := range p.settling {
		if !c.resolved {
			p.resolve(now, c, c.cost)
		}
	}
	p.settling = nil
	for _, r := range slices.Clone(p.requests) {
		p.giveUp(now, r)
	}
	for _, h := range p.leases {
		p.returnLeft(now, h)
		p.freeIdle(now, h, h.idle)
	}
	p.Tick(now)
}

// Restart drops all leases, requests and ids given up, for a holder that takes a
// new incarnation. Calls that hold slots are lost; callers in line ask anew.
func (p *Pool) Restart(now time.Duration) {
	p.at(now)
	p.books.Incarnated++
	for _, h := range slices.Clone(p.leases) {
		p.lose(now, h)
	}
	for _, r := range p.requests {
		r.unbind()
	}
	p.requests, p.refill, p.givenUp = nil, nil, nil
	p.owed, p.due = 0, Forever
	p.Tick(now)
}

// Idle says that the pool holds nothing, wants nothing and has nothing to tell.
func (p *Pool) Idle() bool {
	return len(p.leases) == 0 && p.line.count == 0 && len(p.requests) == 0 &&
		len(p.givenUp) == 0 && p.open == 0 && len(p.served) == 0
}

// Holds says whether there is anything for a heartbeat to name.
func (p *Pool) Holds() bool { return len(p.leases) > 0 || len(p.givenUp) > 0 }

// Trouble is the last failure to get an answer, or nil if one came since.
func (p *Pool) Trouble() error { return p.trouble }

// Books gives the pool's books as they stand.
func (p *Pool) Books() Books {
	b := p.books
	b.Held = p.open
	for _, h := range p.leases {
		b.Held += h.left.Load() + h.swift.Load() - h.dated
	}
	return b
}

// takeBooks gives the books of an idle pool, and begins new ones.
func (p *Pool) takeBooks() Books {
	b := p.Books()
	p.books = Books{}
	return b
}

// at takes note of the instant. Elapsed time does not run backwards, but two
// readings may reach the pool in the other order.
func (p *Pool) at(now time.Duration) { p.now = max(p.now, now) }

func (p *Pool) wakeBy(t time.Duration) { p.wake = min(p.wake, t) }
func (p *Pool) dueBy(t time.Duration)  { p.due = min(p.due, t) }
