package sim

import (
	"fmt"
	"time"

	"ration/algo"
	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
)

// Verdict is what came of a run.
type Verdict struct {
	Seed       uint64
	Contract   Contract
	Violations []oracle.Violation
	Stranded   []string // what was not free, or not answered, at the end
	Use        float64  // of the calm and saturated part; 0 if it was not judged
	Apart      bool     // calendar time was not the wall clock's then, or shortly before: guards are wider, which costs use by right
	Spends     int
	Faults     map[string]int
	Ledger     lease.Stats
	Pools      worker.Books
}

const (
	holders   = 4
	faultyFor = 25 * time.Second
	settleFor = 32 * time.Second // calm, until no fault's doing is left
	busyFor   = 15 * time.Second // calm and saturated, or four of the longest windows
	quietFor  = 60 * time.Second // nobody asks
)

// Run plays one world.
func Run(seed uint64) Verdict {
	w := newWorld(seed)
	c := draw(w.rand, seed)
	if c.From != 0 {
		w.origin = c.From
	}
	rules := oracle.MustRules(c.all())
	policy, err := lease.ParsePolicy("sim", []byte(c.policy()))
	if err != nil {
		panic(err)
	}
	l := newSite(w, policy, c)
	keys := []lease.Key{c.key("k"), c.key("other"), c.key(rare)}
	w.calls = newCalls(w, c, keys)
	w.calls.perKey = 3
	var fleet []*holder
	for i := range holders {
		h := newHolder(w, fmt.Sprintf("w%d", i), c.class(i), l, w.rand.Int64N(201)-100, keys)
		h.node = i % 2
		fleet = append(fleet, h)
		w.calls.start(h)
	}
	newStranger(w, l, keys).begin()
	o := newOperator(w, l)
	o.begin()
	w.trouble(l, fleet)
	l.reforms.begin(l, c)
	w.run(faultyFor)
	w.calm = true
	l.reforms.back()
	for _, x := range l.all {
		l.walls.right(x)
	}
	w.run(w.now + settleFor)
	w.calls.saturate = !c.Scarce
	busy := w.now
	if c.levels() {
		o.chargeAbove()
	}
	period := longest(rules, true)
	w.run(busy + busyLasts(period))
	apart := l.walls.wide > busy
	w.calls.stopped = true
	if c.Scarce {
		w.calls.giveUp()
	}
	w.run(w.now + quietFor)
	v := w.verdict(seed, c, rules, l, fleet)
	if v.Apart = apart; !c.Scarce && !apart {
		v.Use = w.use(c, busy, period)
	}
	return v
}

// trouble lets processes pause, crash and be cut off, again and again until the
// world is calm.
func (w *World) trouble(s *site, fleet []*holder) {
	w.after(w.between(100*time.Millisecond, 2*time.Second), func() {
		if w.calm {
			return
		}
		h := fleet[w.rand.IntN(len(fleet))]
		if w.now >= h.paused { // it runs
			switch w.rand.IntN(4) {
			case 0:
				w.count("crash")
				h.crash(w.between(10*time.Millisecond, 2*time.Second))
			case 1:
				w.count("short pause")
				h.pause(w.between(time.Millisecond, 900*time.Millisecond))
			case 2:
				w.count("pause past the lease")
				h.pause(w.between(4*time.Second, 12*time.Second))
			default:
				w.count("cut off")
				w.net.partition(&h.host, w.between(100*time.Millisecond, 12*time.Second))
			}
		}
		if w.rand.IntN(2) == 0 {
			s.trouble()
		}
		w.trouble(s, fleet)
	})
}

func (w *World) verdict(seed uint64, c Contract, rules []oracle.Rule, s *site, fleet []*holder) Verdict {
	v := Verdict{Seed: seed, Contract: c, Spends: len(w.spends), Faults: w.Faults, Ledger: s.stats()}
	for i := range w.spends {
		if w.spends[i].Done == 0 {
			v.Stranded = append(v.Stranded, fmt.Sprintf("a call on %s never ended", w.spends[i].Key))
		}
	}
	v.Violations = append(w.judge(seed, s.reforms.always(), fleet[0].keys), s.reforms.judge(fleet[0].keys)...)
	v.Stranded = append(v.Stranded, s.unlawful...)
	for _, l := range s.all {
		v.Stranded = append(v.Stranded, l.unlawful...)
	}
	if l := s.leader(); l == nil {
		v.Stranded = append(v.Stranded, "nobody leads")
	} else {
		v.Stranded = append(v.Stranded, w.stranded(l, fleet, max(longest(rules, false), s.walls.wide-w.now))...)
	}
	for _, h := range fleet {
		v.Pools.Add(h.books)
		for _, k := range h.keys {
			v.Pools.Add(h.pools[k].Books())
		}
	}
	return v
}

// stranded names what is not as it was in the beginning, after everybody has
// been quiet for long, or what will not be when the longest window has passed.
func (w *World) stranded(l *lessor, fleet []*holder, window time.Duration) (left []string) {
	say := func(format string, args ...any) { left = append(left, fmt.Sprintf(format, args...)) }
	then := l.instant()
	if window > quietFor/2 {
		then = then.Add(2 * window)
	}
	s := l.ledger.Status(then, "")
	for _, k := range s.Keys {
		for _, x := range k.Windows {
			if x.Free != x.Limit {
				say("%s %s: %d of %d free, %d held, %d spent", k.Key, x.Rule, x.Free, x.Limit, x.Held, x.Spent)
			}
		}
	}
	if s.Leases > 0 || s.Waiting > 0 {
		say("%d leases and %d waiters in the ledger", s.Leases, s.Waiting)
	}
	st := s.Stats
	if st.Granted+st.Adopted != st.Spent+st.Returned+st.Expired {
		say("%d tokens granted, %d spent, %d returned, %d expired", st.Granted, st.Spent, st.Returned, st.Expired)
	}
	if st.SlotsGranted+st.SlotsAdopted != st.SlotsFreed+st.SlotsCut+st.SlotsExpired {
		say("%d slots granted, %d freed, %d cut, %d expired", st.SlotsGranted, st.SlotsFreed, st.SlotsCut, st.SlotsExpired)
	}
	if st.UnitsGranted+st.UnitsAdopted != st.UnitsSpent+st.UnitsReturned+st.UnitsExpired {
		say("%d units granted, %d spent, %d returned, %d expired", st.UnitsGranted, st.UnitsSpent, st.UnitsReturned, st.UnitsExpired)
	}
	if n := len(w.calls.pending); n > 0 {
		say("%d callers were never answered", n)
	}
	left = append(left, l.remains(then)...)
	for _, h := range fleet {
		for _, k := range h.keys {
			b := h.pools[k].Books()
			if !h.pools[k].Idle() || b.Granted != b.Spent+b.Returned+b.Expired || b.UnitsGranted != b.UnitsSpent+b.UnitsReturned+b.UnitsExpired {
				say("pool %s of %s: idle %v, %+v", k, h.name, h.pools[k].Idle(), b)
			}
		}
	}
	return left
}

// remains names what is in a ledger yet when nothing that has happened can matter any more:
// whatever is over has to be gone from every prefix that it was of.
func (l *lessor) remains(then algo.Instant) (left []string) {
	for range 4 { // what one turn lets go of may be seen to be at rest in the next
		then = then.Add(2 * lease.ChargeMemory)
		t := l.ledger.Turn(then, nil)
		l.course.Number(l.ledger, t, l.wall())
		l.course.Applied(l.ledger, t)
	}
	s := l.ledger.Status(then, "")
	for _, k := range s.Keys {
		left = append(left, fmt.Sprintf("%s is in memory yet: %+v", k.Key, k))
	}
	if s.Holders > 0 || s.Remembered > 0 {
		left = append(left, fmt.Sprintf("%d holders and %d ids are in memory yet", s.Holders, s.Remembered))
	}
	return left
}

// busyLasts is for how long the fleet is busy: several of the windows that fit, and one
// more, so that use can be judged from different instants.
func busyLasts(period time.Duration) time.Duration { return max(busyFor, 4*period) }

// use is what the fleet got of key k, or of what is above it, with what was charged there, while
// it was calm and saturated, over the whole windows after the first. Calls come in bursts, and the fleet is a little later
// each time: so that it does not matter whether a burst lies at the end, this is
// the mean of what is judged from instants all over a window.
func (w *World) use(c Contract, busy, period time.Duration) float64 {
	of, rules := "k", oracle.MustRules(c.Rules)
	if c.levels() {
		of, rules = above, oracle.MustRules(c.Above)
	}
	const judged = 8
	lasts, sum := busyLasts(period)-period, 0.0
	for i := range time.Duration(judged) {
		begin := busy + i*period/judged
		from, to := w.origin+int64(begin), w.origin+int64(begin+lasts)
		var spends []oracle.Spend
		for _, s := range oracle.Under(w.spends, of) {
			if s.At >= from && s.At < to {
				spends = append(spends, s)
			}
		}
		for _, s := range oracle.Under(w.charges, of) {
			if s.At >= from && s.At < to {
				s.Cost += s.Units["w"] / busyUnits // in calls, as the schedule is
				spends = append(spends, s)
			}
		}
		schedule := oracle.Schedule{Rules: rules, Hold: 20 * time.Millisecond, From: from, Units: map[string]int64{"w": busyUnits}}
		use, err := oracle.Use(spends, schedule, from, to, period)
		if err != nil {
			panic(err)
		}
		sum += use
	}
	return sum / judged
}
