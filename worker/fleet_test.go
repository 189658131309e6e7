package worker

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"ration/algo"
	"ration/lease"
)

// fleet drives pools against a ledger on one event heap, over a network that
// delays, repeats, drops and reorders. One seed decides all.
type fleet struct {
	rnd    *rand.Rand
	faults bool
	exact  bool // each message takes oneWay
	oneWay time.Duration
	now    time.Duration
	events events
	seq    int

	ledger  *lease.Ledger
	woken   algo.Instant
	tickets lease.Ticket
	back    map[lease.Ticket]func(t *lease.Turn)

	members []*member
	spends  []spend
}

type spend struct {
	at time.Duration
	n  int64
}

// member is one holder with one pool.
type member struct {
	fleet  *fleet
	holder lease.Holder
	pool   *Pool
	seq    uint64
	next   time.Duration
	dead   bool
	served func(c *Call)
	lost   func(c *Call)
}

type event struct {
	at time.Duration
	n  int
	do func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

const epoch = algo.Instant(1_700_000_000_000_000_000)

func newFleet(policy string, seed uint64) *fleet {
	p, err := lease.ParsePolicy("test", []byte(policy))
	if err != nil {
		panic(err)
	}
	return &fleet{
		rnd:    rand.New(rand.NewPCG(seed, 1)),
		ledger: lease.NewLedger(p, lease.DefaultConfig()),
		back:   map[lease.Ticket]func(*lease.Turn){},
	}
}

func (f *fleet) member(name string, key lease.Key, cfg PoolConfig) *member {
	m := &member{fleet: f, holder: lease.Holder{Name: name, Incarnation: 1}, next: Forever}
	m.pool = NewPool([]lease.Key{key}, cfg, func() lease.ID {
		m.seq++
		return lease.ID{Holder: m.holder, Seq: m.seq}
	}, rand.New(rand.NewPCG(f.rnd.Uint64(), 2)))
	f.members = append(f.members, m)
	f.at(time.Second, m.heartbeat)
	return m
}

func (f *fleet) at(at time.Duration, do func()) {
	f.seq++
	heap.Push(&f.events, event{max(at, f.now), f.seq, do})
}

func (f *fleet) after(d time.Duration, do func()) { f.at(f.now+d, do) }

// run runs all events until an instant.
func (f *fleet) run(until time.Duration) {
	for len(f.events) > 0 && f.events[0].at <= until {
		e := heap.Pop(&f.events).(event)
		f.now = e.at
		e.do()
	}
	f.now = until
}

func (f *fleet) instant() algo.Instant { return epoch.Add(f.now) }

// post carries a message: normally once, soon.
func (f *fleet) post(do func()) {
	if f.exact {
		f.after(f.oneWay, do)
		return
	}
	delay := time.Duration(100+f.rnd.IntN(400)) * time.Microsecond
	if f.faults {
		switch f.rnd.IntN(20) {
		case 0:
			return
		case 1:
			f.after(delay+time.Duration(f.rnd.IntN(3000))*time.Millisecond, do)
		case 2:
			delay += time.Duration(f.rnd.IntN(3000)) * time.Millisecond
		}
	}
	f.after(delay, do)
}

// turn hands the ledger messages and takes its answers away.
func (f *fleet) turn(in ...lease.Message) {
	t := f.ledger.Turn(f.instant(), in)
	f.tend(t)
	if at, ok := f.ledger.Next(); ok && at != f.woken {
		f.woken = at
		f.at(at.Sub(epoch), func() {
			if at, ok := f.ledger.Next(); ok && !f.instant().Before(at) {
				f.turn()
			}
		})
	}
}

func (f *fleet) tend(t *lease.Turn) {
	for _, a := range t.Answers {
		if back := f.back[a.Ticket]; back != nil {
			back(t)
		}
	}
	for _, r := range t.Replies {
		if back := f.back[r.Ticket]; back != nil {
			back(t)
		}
	}
	for _, r := range t.Recalls {
		for _, m := range f.members {
			if m.holder == r.Holder {
				f.post(func() { m.do(func() { m.pool.Recalled(f.now, r) }) })
			}
		}
	}
}

// do calls the pool and looks at what came of it.
func (m *member) do(call func()) {
	if m.dead {
		return
	}
	f := m.fleet
	call()
	for {
		served := m.pool.Served()
		for _, c := range served {
			m.decided(c)
		}
		if len(served) == 0 {
			break
		}
	}
	for _, r := range m.pool.Requests(f.now) {
		f.post(func() { f.request(m, r) })
		if f.faults && f.rnd.IntN(30) == 0 {
			f.after(time.Duration(f.rnd.IntN(500))*time.Millisecond, func() { // the shell gives up early
				m.do(func() { m.pool.Failed(f.now, r.Sent, r.ID, lease.ErrNoCoordinator) })
			})
		}
	}
	if next := m.pool.Next(); next != Forever && (next < m.next || m.next <= f.now) {
		m.next = max(next, f.now)
		f.at(m.next, func() {
			if m.pool.Next() <= f.now {
				m.do(func() { m.pool.Look(); m.pool.Tick(f.now) })
			} else {
				m.do(func() {})
			}
		})
	}
	if m.pool.Due() <= f.now {
		m.report(false)
	} else if due := m.pool.Due(); due != Forever {
		f.at(due, func() {
			if !m.dead && m.pool.Due() <= f.now {
				m.report(false)
			}
		})
	}
}

func (m *member) decided(c *Call) {
	switch c.State() {
	case Lost:
		if m.lost != nil {
			m.lost(c)
		}
	case Taken, Running, Failed:
		m.spend(c)
	}
}

// spend spends a taken call and tells who drives the member.
func (m *member) spend(c *Call) {
	for c.State() == Taken && !m.pool.Spend(m.fleet.now, c) {
	}
	if c.State() == Running {
		m.fleet.spends = append(m.fleet.spends, spend{m.fleet.now, c.Cost()})
	}
	if c.State() != Waiting && m.served != nil {
		m.served(c)
	}
}

// ask asks as a caller does.
func (m *member) ask(cost int64, slot bool, until time.Duration) *Call {
	var c *Call
	m.do(func() {
		if c = m.pool.Ask(m.fleet.now, cost, slot, until); c.State() != Waiting {
			m.spend(c)
		}
	})
	return c
}

func (f *fleet) request(m *member, r lease.Request) {
	f.tickets++
	ticket := f.tickets
	f.back[ticket] = func(t *lease.Turn) {
		delete(f.back, ticket)
		i := slices.IndexFunc(t.Answers, func(a lease.Answered) bool { return a.Ticket == ticket })
		a := t.Answers[i].Answer
		f.post(func() { m.do(func() { m.pool.Answered(f.now, r.Sent, a) }) })
	}
	f.turn(lease.Message{Ticket: ticket, Arrived: f.instant(), Request: &r})
}

func (m *member) heartbeat() {
	if m.dead {
		return
	}
	if m.pool.Holds() {
		m.report(true)
	}
	m.fleet.after(time.Second, m.heartbeat)
}

func (m *member) report(beat bool) {
	f := m.fleet
	m.pool.Look()
	r := lease.Report{Holder: m.holder, Sent: f.now, Heartbeat: beat}
	r.Counts, r.GivenUp = m.pool.Report(f.now, beat)
	if len(r.Counts)+len(r.GivenUp) == 0 {
		return
	}
	replied := false
	f.after(time.Second, func() {
		if !replied {
			m.do(func() { m.pool.Unreported(f.now, r) })
		}
	})
	f.post(func() {
		f.tickets++
		ticket := f.tickets
		f.back[ticket] = func(t *lease.Turn) {
			delete(f.back, ticket)
			i := slices.IndexFunc(t.Replies, func(a lease.Replied) bool { return a.Ticket == ticket })
			reply := t.Replies[i].Reply
			f.post(func() {
				replied = true
				m.do(func() { m.pool.Replied(f.now, r, reply) })
			})
		}
		f.turn(lease.Message{Ticket: ticket, Arrived: f.instant(), Report: &r})
	})
}

// most is the oracle: the most spends in any trailing window that ends at one.
func (f *fleet) most(window time.Duration) (most int64) {
	for i, last := range f.spends {
		var n int64
		for _, s := range f.spends[:i+1] {
			if s.at > last.at-window && s.at <= last.at {
				n += s.n
			}
		}
		most = max(most, n)
	}
	return most
}
