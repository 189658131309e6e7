package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
)

// calls are the programs' callers: who asks for what, for how long, and how it
// ends.
type calls struct {
	world *World
	slots map[lease.Key]bool // keys with a concurrency rule
	dear  map[lease.Key]bool // keys of which most calls cost units
	units bool               // a rule counts unit w, and those are what they cost
	rare  lease.Key
	guard time.Duration

	perKey   int // callers of each holder on each key
	saturate bool
	stopped  bool
	lasts    time.Duration // each call, where a story says so

	asked, served, failed, cancelled int
	pending                          map[*worker.Call]*caller
}

func newCalls(w *World, c Contract, keys []lease.Key) calls {
	all := calls{
		world: w, slots: map[lease.Key]bool{}, dear: map[lease.Key]bool{c.key("k"): true, c.key("other"): c.levels()},
		units: strings.Contains(c.all(), "unit=w"), rare: c.key(rare), guard: c.Guard, pending: map[*worker.Call]*caller{},
	}
	for _, k := range keys {
		all.slots[k] = c.concurrent(k)
	}
	return all
}

// caller is one line of a program that calls again and again.
type caller struct {
	holder *holder
	life   int
	key    lease.Key
	call   *worker.Call
	spend  int // place in World.spends, -1 before
	order  int // of its call among all
}

// start lets a holder's callers begin.
func (c *calls) start(h *holder) {
	for _, k := range h.keys {
		for range c.perKey {
			x := &caller{holder: h, life: h.life, key: k, spend: -1}
			h.after(c.think(k), func() { c.ask(x) })
		}
	}
}

// rare is the name of a key that is asked for so seldom that a new leader has it in memory late.
const rare = "rare"

func (c *calls) think(k lease.Key) time.Duration {
	switch {
	case k == c.rare:
		return c.world.between(0, 6*time.Second)
	case c.saturate:
		return 0
	}
	return c.world.between(0, 400*time.Millisecond)
}

func (c *calls) again(x *caller) { c.afterwards(x, time.Microsecond) }

// afterwards lets a caller call again, no sooner than after a pause.
func (c *calls) afterwards(x *caller, pause time.Duration) {
	if !c.stopped {
		x.holder.after(c.think(x.key)+pause, func() { c.ask(x) })
	}
}

// ask demands a call's tokens, and its slot, with or without a deadline; some
// callers are cancelled while they wait.
func (c *calls) ask(x *caller) {
	if c.stopped {
		return
	}
	w, p := c.world, x.holder.pools[x.key]
	if !c.slots[x.key] && w.chance(0.2, "allow") {
		c.allow(x, p)
		return
	}
	cost, until := int64(1), worker.Forever
	now := x.holder.elapsed()
	if w.chance(0.2, "") {
		cost = 1 + w.rand.Int64N(3)
	}
	if w.chance(0.6, "") {
		until = now + w.between(time.Millisecond, 6*time.Second)
	}
	c.asked++
	x.order = c.asked
	x.call = p.Ask(now, cost, c.slots[x.key], until, c.unitsOf(x)...)
	x.spend = -1
	c.pending[x.call] = x
	if w.chance(0.15, "") {
		call := x.call
		x.holder.after(w.between(0, 300*time.Millisecond), func() { c.cancel(x, call) })
	}
	c.decide(x)
	x.holder.drive(x.key)
}

// busyUnits is what each call on a dear key costs while it is calm and saturated.
const busyUnits = 3

// unitsOf is what a caller's next call costs besides. On a dear key it may be a unit that
// no rule counts; under a contract of units most calls cost some that are counted.
func (c *calls) unitsOf(x *caller) lease.Units {
	switch w := c.world; {
	case !c.dear[x.key], c.saturate && !c.units:
		return nil
	case c.saturate:
		return lease.Units{{Unit: "w", N: busyUnits}}
	case !c.units && w.rand.IntN(8) > 0:
		return nil
	case !c.units:
		return lease.Units{{Unit: "v", N: 1 + w.rand.Int64N(100)}}
	case w.rand.IntN(4) == 0:
		return nil
	case w.rand.IntN(8) == 0: // and one that no rule counts
		return lease.Units{{Unit: "v", N: 1 + w.rand.Int64N(100)}, {Unit: "w", N: 1 + w.rand.Int64N(9)}}
	default:
		return lease.Units{{Unit: "w", N: 1 + w.rand.Int64N(9)}}
	}
}

// costs is units as the oracle reads them.
func costs(units lease.Units) map[string]int64 {
	if len(units) == 0 {
		return nil
	}
	m := map[string]int64{}
	for _, u := range units {
		m[u.Unit] = u.N
	}
	return m
}

// allow takes what is at hand, or nothing.
func (c *calls) allow(x *caller, p *worker.Pool) {
	units := c.unitsOf(x)
	if p.Allow(x.holder.elapsed(), 1, units...) {
		x.holder.site.holdToEnd(x.key)
		c.world.spends = append(c.world.spends, oracle.Spend{Key: string(x.key), At: c.world.unix(), Cost: 1, Units: costs(units), Done: c.world.unix()})
	}
	x.holder.drive(x.key)
	c.again(x)
}

func (c *calls) cancel(x *caller, call *worker.Call) {
	if x.call != call || call.State() != worker.Waiting && call.State() != worker.Taken {
		return
	}
	c.world.count("cancel")
	c.cancelled++
	x.holder.pools[x.key].Cancel(x.holder.elapsed(), call)
	c.forget(x)
	x.holder.drive(x.key)
	c.again(x)
}

// giveUp lets all leave that wait.
func (c *calls) giveUp() {
	waiting := slices.SortedFunc(maps.Values(c.pending), func(a, b *caller) int { return cmp.Compare(a.order, b.order) })
	for _, x := range waiting {
		if call := x.call; call.State() == worker.Waiting {
			x.holder.after(0, func() { c.cancel(x, call) })
		}
	}
}

func (c *calls) forget(x *caller) {
	delete(c.pending, x.call)
	x.call = nil
}

// decided takes up what pools decided for waiting callers.
func (c *calls) decided(h *holder, k lease.Key, served []*worker.Call) {
	for _, call := range served {
		x := c.pending[call]
		if x == nil || x.holder != h || x.key != k {
			panic(fmt.Sprintf("sim: holder %s was served a call that nobody waits for (%v)", h.name, call.State()))
		}
		c.decide(x)
	}
}

func (c *calls) decide(x *caller) {
	switch call := x.call; call.State() {
	case worker.Taken:
		// The process may be stopped between the take and the reading of the
		// clock.
		if c.world.chance(0.006, "pause before the spend") {
			x.holder.pause(c.world.between(time.Second, 12*time.Second))
		}
		if c.world.chance(0.02, "cancel at the take") {
			x.holder.after(0, func() { c.cancel(x, call) })
		}
		x.holder.after(0, func() { c.spendNow(x, call) })
	case worker.Failed:
		c.failed++
		c.forget(x)
		c.afterwards(x, 5*time.Millisecond) // it may have been refused here, at once
	case worker.Lost:
		c.world.count("lost call")
		c.finish(x, x.holder.awake())
	}
}

// longCalls is how often calls take long, those that hold a slot more often.
var longCalls = map[bool]float64{false: 0.005, true: 0.03}

func (c *calls) spendNow(x *caller, call *worker.Call) {
	if x.call != call || call.State() != worker.Taken {
		return
	}
	w, p := c.world, x.holder.pools[x.key]
	if !p.Spend(x.holder.elapsed(), call) {
		c.decide(x)
		x.holder.drive(x.key)
		return
	}
	c.served++
	x.holder.site.holdToEnd(x.key)
	x.spend = len(w.spends)
	// Until it ends otherwise, the call has left and is under way.
	w.spends = append(w.spends, oracle.Spend{Key: string(x.key), At: w.unix(), Cost: call.Cost(), Units: costs(call.Units())})
	d := 20 * time.Millisecond
	switch {
	case c.lasts > 0:
		d = c.lasts
	case !c.saturate:
		d = w.between(0, 60*time.Millisecond)
		if w.chance(longCalls[c.slots[x.key]], "long call") {
			d = w.between(5*time.Second, 15*time.Second)
		}
	}
	x.holder.after(d, func() { c.end(x, call) })
	x.holder.drive(x.key)
}

// end ends a call: answered, abandoned while the upstream works on, never made,
// or with less or more used than asked for.
func (c *calls) end(x *caller, call *worker.Call) {
	if x.call != call || call.State() != worker.Running {
		return
	}
	w, p, now := c.world, x.holder.pools[x.key], x.holder.elapsed()
	s := &w.spends[x.spend]
	// A process that wakes may find its call over, and its slot lost before.
	at := x.holder.awake()
	switch {
	case w.chance(0.05, "abandon"):
		p.Abandon(now, call)
		c.finish(x, at+w.between(c.guard/2, c.guard)) // it works on
	case w.chance(0.05, "never sent"):
		p.Cancel(now, call)
		s.Cost, s.Units = 0, nil
		c.finish(x, at)
	case w.chance(0.05, "settle"):
		used := w.rand.Int64N(call.Cost() + 1)
		var units lease.Units
		for _, u := range call.Units() {
			units = append(units, lease.UnitAmount{Unit: u.Unit, N: w.rand.Int64N(u.N + 1)})
		}
		if err := p.Settle(now, call, used, units...); err != nil {
			panic(err)
		}
		s.Cost, s.Units = used, costs(units)
		c.finish(x, at)
	case w.chance(0.01, "overspend"):
		// What it used beyond is debt, and no spend that the law is judged by: it was
		// never granted.
		var units lease.Units
		for _, u := range call.Units() {
			units = append(units, lease.UnitAmount{Unit: u.Unit, N: u.N + w.rand.Int64N(u.N/2+1)})
		}
		if err := p.Settle(now, call, call.Cost()+w.rand.Int64N(2), units...); err != nil {
			panic(err)
		}
		c.finish(x, at)
	default:
		p.Finish(now, call)
		c.finish(x, at)
	}
	x.holder.drive(x.key)
}

// finish notes when the upstream was done with a call.
func (c *calls) finish(x *caller, done time.Duration) {
	c.world.spends[x.spend].Done = c.world.origin + int64(done)
	c.forget(x)
	c.again(x)
}

// died ends the calls of a process that is killed.
func (c *calls) died(h *holder) {
	for call, x := range c.pending {
		if x.holder != h {
			continue
		}
		if x.spend >= 0 {
			c.world.spends[x.spend].Done = c.world.unix()
		}
		delete(c.pending, call)
	}
}
