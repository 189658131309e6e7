package lease

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

// TestWholeLedgerHoldsAfterEveryTurn plays holders that ask, copy, report, give up
// and leave at random, under contracts of all kinds. After every turn windows hold
// what leases hold, every book is what it counts, every ticket is waited with or
// closed, and whoever waits could not be granted now nor before the next timer. In
// the end nothing is left. RATION_PROOF=1 plays more.
func TestWholeLedgerHoldsAfterEveryTurn(t *testing.T) {
	seeds := uint64(100)
	if os.Getenv("RATION_PROOF") == "1" {
		seeds = 10_000
	}
	playAll(t, seeds, func(seed uint64) error { return newChance(seed).play(300) })
}

// playAll plays seeds, several at once.
func playAll(t *testing.T, seeds uint64, play func(seed uint64) error) {
	var all sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for seed := range seeds {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			if err := play(seed); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
	all.Wait()
}

// TestWholeLedgerOfOneSeed plays the seed in RATION_SEED.
func TestWholeLedgerOfOneSeed(t *testing.T) {
	var seed uint64
	if _, err := fmt.Sscan(os.Getenv("RATION_SEED"), &seed); err != nil {
		t.Skip("set RATION_SEED")
	}
	require.NoError(t, newChance(seed).play(300))
}

var chancePolicies = []string{`
limits:
  - {key: "{a}", rules: [9/1s, 3 concurrent], guard: 5ms}
  - {key: "{a}/{b}", rules: [5/2s bucket burst=4, 20/10s fixed, 40/1s unit=u]}
  - {key: "{a}/{b}/{c}", rules: [30/1s unit=u, 9/1s bucket unit=v]}
`, `
limits:
  - {key: "{a}", rules: [10/1s pace]}
  - {key: "{a}/{b}", rules: [7/3s, 2 concurrent], guard: 100ms}
  - {key: "{a}/{b}/{c}", rules: [6/1s counter, 50/5s unit=u]}
`, `
limits:
  - {key: "{a}", rules: [30/1m]}
  - {key: "{a}/{b}", rules: [6/1s counter, 10/7s counter unit=u], guard: 300ms}
  - {key: "{a}/{b}/{c}", rules: [12/1m fixed tz=Asia/Kathmandu, 4/1s pace], guard: 1s}
`, `
limits:
  - {key: "{a}", rules: [2 concurrent, 20/1s unit=u]}
  - {key: "{a}/{b}", rules: [1 concurrent, 20/1s bucket burst=7 unit=u], guard: 50ms}
  - {key: "{a}/{b}/{c}", rules: [unlimited]}
`, `
limits:
  - {key: "{a}", rules: [2 concurrent], guard: 50ms}
  - {key: "{a}/{b}", rules: [3/2s]}
  - {key: "{a}/{b}/{c}", rules: [6/9s, 10/1s unit=u]}
`, `
limits:
  - {key: "{a}", rules: [9/1s, 3 concurrent], line: {top: 6, mid: 5, low: 4, lower: 20%, shed: 60%}}
  - {key: "{a}/{b}", rules: [5/2s bucket burst=4, 40/1s unit=u], line: {top: 4, low: 4, lower: 0}}
  - {key: "{a}/{b}/{c}", rules: [4/1s], line: 3}
`, `
limits:
  - {key: "{a}", rules: [20/7s]}
  - {key: "{a}/{b}", rules: [4/1s pace], line: {top: 6, low: 4, lower: 50%, shed: 1500ms}, guard: 5ms}
  - {key: "{a}/{b}/{c}", rules: [9/1m, 3/1s]}
plans: {paid: {rules: [9/2s, 2 concurrent], class: top}, free: {rules: [8/2s], class: low}}
assign: {"{a}/y": free, "{a}/z": paid}
`}

// chance is holders that do what they like, and what they were told.
type chance struct {
	*rand.Rand
	ledger  *Ledger
	now     algo.Instant
	tickets Ticket
	open    map[Ticket]bool
	seq     map[Holder]uint64
	asked   map[ID]Request
	has     []taken
	taken   func(*Turn)  // is told of each turn, if it is not nil
	befalls func() error // comes before each step, if it is not nil
}

// taken is a grant that was heard of.
type taken struct {
	id      ID
	keys    []Key
	granted Amount
}

func newChance(seed uint64) *chance {
	c := &chance{
		Rand: rand.New(rand.NewPCG(seed, 7)),
		open: map[Ticket]bool{}, seq: map[Holder]uint64{}, asked: map[ID]Request{},
	}
	policies := uint64(len(chancePolicies))
	p, err := ParsePolicy("chance", []byte(chancePolicies[seed%policies]))
	if err != nil {
		panic(err)
	}
	config := DefaultConfig()
	config.Unmirrored = c.IntN(2) == 0
	config.Silence = []time.Duration{5 * time.Second, 700 * time.Millisecond}[c.IntN(2)]
	if seed/policies%2 == 1 { // every bound is met
		config.Keys, config.Holders, config.Leases = 6, Bound{4, 6}, Bound{4, 12}
		config.Waiters, config.IDs, config.Line = Bound{3, 9}, Bound{3, 12}, 4
	}
	c.ledger = NewLedger(p, config)
	c.now = algo.Instant(1_800_000_059_000_000_000 + c.Int64N(1e9))
	return c
}

func (c *chance) play(steps int) error {
	for step := range steps {
		if c.befalls != nil {
			if err := c.befalls(); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		var in []Message
		for range c.IntN(4) {
			in = append(in, c.messages()...)
		}
		if c.IntN(8) == 0 {
			if err := c.act(); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		if err := c.turn(in); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if err := c.pass(); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
	c.resumeAll()
	for range 3000 {
		at, ok := c.ledger.Next()
		if !ok {
			break
		}
		c.now = max(c.now+1, at)
		if err := c.turn(nil); err != nil {
			return fmt.Errorf("after the last step: %w", err)
		}
	}
	l := c.ledger
	if left := []int{l.accounts.Len(), l.holders.Len(), l.tenants.Len(), l.leases.Len(), l.waiting.Len(), l.ended.Len(), len(l.timers.heap), len(c.open), l.kept}; slices.Max(left) > 0 {
		return fmt.Errorf("left are accounts, holders, tenants, leases, waiters, ids, timers, tickets and keys: %v", left)
	}
	return nil
}

// turn takes a turn and checks what it says, and the ledger after it.
func (c *chance) turn(in []Message) error {
	t := c.ledger.Turn(c.now, in)
	if c.taken != nil {
		c.taken(t)
	}
	for _, a := range t.Answers {
		if err := c.hear(a); err != nil {
			return err
		}
	}
	for _, d := range t.Dropped {
		if !c.open[d] {
			return fmt.Errorf("ticket %d is dropped, and not open", d)
		}
		delete(c.open, d)
	}
	if err := c.ledger.nothingPausedBegan(t); err != nil {
		return err
	}
	c.ledger.Done(t)
	return c.ledger.whole(c.open)
}

func (c *chance) hear(a Answered) error {
	if !c.open[a.Ticket] {
		return fmt.Errorf("ticket %d is answered, and not open: %+v", a.Ticket, a)
	}
	delete(c.open, a.Ticket)
	if a.Answer.TokenTTL < 0 || a.Answer.SlotTTL < 0 || a.Answer.Waited < 0 || a.Answer.Refusal.Wait < 0 {
		return fmt.Errorf("a time is negative in %+v", a)
	}
	if a.Answer.Outcome != Granted {
		return nil
	}
	r, g := c.asked[a.Answer.ID], a.Answer.Granted
	if g.Tokens > r.Want.Tokens || g.Slots > max(r.Want.Slots, r.Need.Slots) || !r.Want.Units.Covers(g.Units) {
		return fmt.Errorf("granted %+v is more than wanted in %+v", a, r)
	}
	c.has = append(c.has, taken{a.Answer.ID, r.Keys, g})
	return nil
}

// pass lets some time pass, or goes to the next timer.
func (c *chance) pass() error {
	at, ok := c.ledger.timers.next()
	switch ok = ok && at > c.now; c.IntN(4) {
	case 0:
		c.now = c.now.Add(time.Duration(c.Int64N(int64(50 * time.Millisecond))))
	case 1:
	case 2:
		if ok {
			if err := c.ledger.awake(at - 1); err != nil {
				return err
			}
			c.now = at
		}
	default:
		if ok {
			c.now = c.now.Add(time.Duration(c.Int64N(int64(at.Sub(c.now)) + 1)))
		}
		if c.IntN(20) == 0 {
			c.now = c.now.Add(time.Duration(c.Int64N(int64(20 * time.Second))))
		}
	}
	return nil
}

func (c *chance) holder() Holder { return Holder{"h", uint64(c.IntN(4))} }

// messages gives one message, several copies of one, or none.
func (c *chance) messages() []Message {
	switch c.IntN(5) {
	case 0, 1:
		r := c.request()
		if r.Validate() != nil {
			return nil
		}
		c.asked[r.ID] = r
		if c.IntN(6) == 0 { // twice in one turn
			return []Message{c.ask(r), c.ask(r)}
		}
		return []Message{c.ask(r)}
	case 2:
		h := c.holder()
		r, ok := c.asked[ID{h, 1 + c.Uint64N(c.seq[h]+1)}]
		if !ok {
			return nil
		}
		r.Sent = c.sent()
		if c.IntN(10) == 0 {
			r.Patience = 0
		}
		return []Message{c.ask(r)}
	}
	c.tickets++
	return []Message{{Ticket: c.tickets, Arrived: c.now, Report: c.report()}}
}

func (c *chance) ask(r Request) Message {
	c.tickets++
	c.open[c.tickets] = true
	return Message{Ticket: c.tickets, Arrived: c.now, Request: &r}
}

func (c *chance) sent() time.Duration { return time.Duration(c.now % 1e15) }

func (c *chance) request() Request {
	keys := []Key{"x", "x/y", "x/z", "x/y/w", "x/z/w", "q/y", "q"}
	h := c.holder()
	c.seq[h]++
	r := Request{ID: ID{h, c.seq[h]}, Keys: []Key{keys[c.IntN(5)]}, Sent: c.sent()}
	if c.IntN(4) == 0 {
		r.Keys = append(r.Keys, keys[c.IntN(5)])
	}
	if c.IntN(9) == 0 {
		r.Keys = []Key{keys[5+c.IntN(2)]}
	}
	r.Need = Amount{Tokens: c.Int64N(4), Slots: c.Int64N(2)}
	if c.IntN(8) == 0 {
		r.Need.Tokens = c.Int64N(11)
	}
	r.Want = Amount{Tokens: r.Need.Tokens + c.Int64N(4), Slots: r.Need.Slots + c.Int64N(2)}
	if c.IntN(2) == 0 {
		n := c.Int64N(8)
		r.Need.Units = UnitsOf(map[string]int64{"u": n, "v": c.Int64N(3)})
		r.Want.Units = UnitsOf(map[string]int64{"u": n + c.Int64N(20), "v": 3})
	}
	if classes := c.ledger.policy.Classes; len(classes) > 0 && c.IntN(9) > 0 {
		r.Class = classes[c.IntN(len(classes))]
		if c.IntN(30) == 0 {
			r.Class = "unknown"
		}
	}
	if c.IntN(5) > 0 {
		r.Patience = time.Duration(c.Int64N(int64(20 * time.Second)))
	}
	return r
}

func (c *chance) report() *Report {
	r := &Report{Holder: c.holder(), Sent: c.sent(), Heartbeat: c.IntN(2) == 0, Goodbye: c.IntN(20) == 0}
	tenant := ""
	for range 3 {
		if len(c.has) == 0 {
			break
		}
		k := c.has[len(c.has)-1-c.IntN(min(len(c.has), 12))]
		if tenant == "" {
			tenant = k.keys[0].Tenant()
		}
		if k.keys[0].Tenant() != tenant {
			continue
		}
		if c.IntN(4) > 0 {
			r.Holder = k.id.Holder
		}
		if c.IntN(6) == 0 {
			r.GivenUp = append(r.GivenUp, GivenUp{k.id, k.keys})
			continue
		}
		r.Counts = append(r.Counts, c.count(k))
	}
	return r
}

func (c *chance) count(k taken) Count {
	n := Count{ID: k.id, Keys: k.keys, Returned: c.Int64N(k.granted.Tokens + 2), Freed: c.Int64N(k.granted.Slots + 2), Cut: c.Int64N(2)}
	p := Point{Count: c.Int64N(k.granted.Tokens + 2), Age: time.Duration(c.Int64N(int64(2 * time.Second)))}
	if len(k.granted.Units) > 0 {
		u := k.granted.Units[0]
		p.Units = Units{{u.Unit, 1 + c.Int64N(u.N+1)}}
		n.ReturnedUnits = Units{{u.Unit, 1 + c.Int64N(u.N+1)}}
	}
	if c.IntN(2) == 0 {
		n.Points = []Point{p}
	}
	if c.IntN(30) == 0 {
		n.Over, n.OverUnits = c.Int64N(9), Units{{"u", 1 + c.Int64N(20)}}
	}
	return n
}
