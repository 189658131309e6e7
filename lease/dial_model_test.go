package lease_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// world is a fleet under one fixed rule, a ledger that looks at its wall clock every
// now and then, and an oracle that remembers each spend and knows of no window.
type world struct {
	t       testing.TB
	random  *rand.Rand
	ledger  *lease.Ledger
	records mirrored
	dial    lease.Dial
	policy  *lease.Policy
	now     algo.Instant
	wall    time.Duration // wall clock less ledger time
	seq     uint64
	told    map[algo.Instant][]*lease.Report // by the instant at which they arrive
	spends  []call
	steps   []step
	looked  algo.Instant
	jumped  algo.Instant // when calendar time last followed at once
}

// call is one spend: of ledger time, and what calendar time was then.
type call struct {
	granted, at, calendar algo.Instant
	late                  time.Duration // until it arrived
	n                     int64
}

// step is the wall clock set, or the world's beginning. Known says that calendar time
// did not follow at once, so that the ledger knows how far it is off.
type step struct {
	at    algo.Instant
	wall  time.Duration
	known bool
	since algo.Instant // when calendar time last followed at once before
}

func newWorld(t testing.TB, random *rand.Rand, p *lease.Policy) *world {
	w := &world{
		t: t, random: random, policy: p, now: start,
		ledger:  lease.NewLedger(p, lease.DefaultConfig()),
		records: mirrored{},
		told:    map[algo.Instant][]*lease.Report{},
		steps:   []step{{at: start}},
	}
	w.look()
	return w
}

func (w *world) look() {
	before := w.ledger.Dial().Offset
	w.ledger.Wall(w.now, w.now.Add(w.wall))
	if moved := w.ledger.Dial().Offset - before; max(moved, -moved) > w.now.Sub(w.looked)/1000 {
		w.jumped = w.now
	}
	w.looked = w.now
}

// set sets the wall clock, and lets the ledger look at it.
func (w *world) set(by time.Duration) {
	w.wall += by
	since := w.jumped
	w.look()
	w.steps = append(w.steps, step{w.now, w.wall, w.ledger.Dial().Apart > 0, since})
}

// pass lets time pass, and what was told arrive.
func (w *world) pass(d time.Duration) {
	for end := w.now.Add(d); ; {
		next := end
		for at := range w.told {
			next = min(next, at)
		}
		w.now = next
		w.look()
		w.date()
		var in []any
		for _, r := range w.told[w.now] {
			in = append(in, r)
		}
		delete(w.told, w.now)
		w.turn(in...)
		if next == end {
			return
		}
	}
}

func (w *world) turn(in ...any) []lease.Answered {
	t := turn(w.t, w.ledger, w.now, in...)
	w.records.keep(t)
	w.dial = t.Dial
	return t.Answers
}

// ask asks for some tokens, spends them after a while, and tells so later, or never.
func (w *world) ask(n int64, guard time.Duration) {
	w.seq++
	r := ask("a", w.seq, w.now, 0, "k")
	r.Need.Tokens, r.Want.Tokens = n, n
	if w.turn(r)[0].Answer.Outcome != lease.Granted {
		return
	}
	spend := w.now.Add(time.Duration(w.random.Int64N(int64(4 * time.Second))))
	if w.random.IntN(3) == 0 {
		spend = w.now
	}
	ends := w.now.Add(5 * time.Second)
	w.told[spend] = append(w.told[spend], &lease.Report{Holder: r.ID.Holder, Sent: spend.Sub(start)}) // only to be there then
	w.spends = append(w.spends, call{granted: w.now, at: spend, n: n, late: time.Duration(w.random.Int64N(int64(guard) + 1))})
	if w.random.IntN(4) > 0 {
		at := spend.Add(time.Duration(w.random.Int64N(int64(ends.Sub(spend)))))
		w.told[at] = append(w.told[at], &lease.Report{Holder: r.ID.Holder, Sent: at.Sub(start), Counts: []lease.Count{
			{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: n, Age: at.Sub(spend)}}},
		}})
	}
}

// date notes calendar time for the spends of now.
func (w *world) date() {
	for i := range w.spends {
		if s := &w.spends[i]; s.at == w.now {
			s.calendar = s.at.Add(w.ledger.Dial().Offset)
		}
	}
}

// takeOver lets another ledger go on from the records and the mirrored dial.
func (w *world) takeOver() {
	w.ledger = lease.NewLedger(w.policy, lease.DefaultConfig())
	w.ledger.SetDial(w.dial)
	for _, r := range w.records {
		w.ledger.Restore(r)
	}
	w.look()
	w.turn()
}

// check counts the windows that began by a clock: those of calendar time, and for
// each time that the wall clock was not set, those that it showed. Where a step is
// known, calls before it, but after the last one that was followed at once, that the clock it shows puts into a window count there too:
// to a window that they have filled nothing may be added but what was held by then.
func (w *world) check(limit int64, spec *algo.Spec, where string) (used int64) {
	period := func(t algo.Instant) algo.Instant {
		began, _, _ := spec.Period(t)
		return began
	}
	calendar := map[algo.Instant]int64{}
	for _, s := range w.spends {
		if s.at <= w.now {
			calendar[period(s.calendar)] += s.n
			used += s.n
		}
	}
	for at, n := range calendar {
		require.LessOrEqual(w.t, n, limit, "%s: by the calendar's window at %d", where, at.Sub(start))
	}
	for i, step := range w.steps {
		end := w.now
		if i+1 < len(w.steps) {
			end = w.steps[i+1].at
		}
		before, during, held := map[algo.Instant]int64{}, map[algo.Instant]int64{}, map[algo.Instant]int64{}
		for _, s := range w.spends {
			window := period(s.at.Add(step.wall).Add(s.late))
			switch {
			case s.at >= step.at && s.at < end:
				during[window] += s.n
				if s.granted <= step.at {
					held[window] += s.n
				}
			case s.at < step.at && s.at >= step.since && step.known:
				before[window] += s.n
			}
		}
		for at, n := range during {
			require.LessOrEqual(w.t, n+before[at], max(limit, before[at]+held[at]), "%s: by the wall clock's window at %d, of which %d before it was set for the %dth time",
				where, at.Sub(start), before[at], i)
		}
	}
	return used
}

// No window of the wall clock sees more than its limit while that is not set, wherever
// calendar time is; and no window of calendar time does.
func TestNeitherClockSeesMoreThanTheLimit(t *testing.T) {
	for _, rule := range []string{"3/1s fixed", "10/5s fixed", "10/1m fixed", "10/20m fixed tz=Europe/Berlin"} {
		for _, guard := range []time.Duration{0, 200 * time.Millisecond, 7 * time.Second} {
			t.Run(fmt.Sprint(rule, guard), func(t *testing.T) {
				used := int64(0)
				for seed := range uint64(20) {
					used += clocksApart(t, rule, guard, seed)
				}
				require.Positive(t, used)
			})
		}
	}
}

func clocksApart(t *testing.T, rule string, guard time.Duration, seed uint64) int64 {
	random := rand.New(rand.NewPCG(seed, 1))
	p := policy(t, fmt.Sprintf("limits: [{key: k, rules: [%s], guard: %s}]", rule, guard))
	parsed := p.Limits[0].Rules[0]
	w := newWorld(t, random, p)
	for range 150 {
		switch random.IntN(12) {
		case 0: // by milliseconds, seconds, or periods
			most := []time.Duration{10 * time.Millisecond, 3 * time.Second, 2 * parsed.Span()}[random.IntN(3)]
			w.set(time.Duration(random.Int64N(int64(2*most))) - most)
		case 1:
			w.set(-w.wall) // right again
		case 2:
			w.takeOver()
		case 3, 4, 5:
			w.ask(1+random.Int64N(3), guard)
		default:
			w.pass(time.Duration(random.Int64N(int64(parsed.Span() / 3))))
			for range random.IntN(6) {
				w.ask(1, guard)
			}
		}
		w.date()
	}
	return w.check(parsed.Limit, algo.Compile(parsed, algo.Allowance{}), fmt.Sprintf("%s, guard %s, seed %d", rule, guard, seed))
}
