package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// anchor is where these tests begin: at the start of a period of every rule of theirs.
var anchor = algo.Instant(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())

const ns = time.Nanosecond

// driven is a rule with the instants, from the anchor on, at which to take all there is.
// Where a step says how many, it takes no more.
type driven struct {
	rule  string
	guard time.Duration
	steps []step
	most  int64
	text  string
}

type step struct {
	at   time.Duration
	n    int64         // 0 for all there is
	held time.Duration // between the take and the spend; of slots, before the call is cut off
}

// all takes all there is at each instant.
func all(at ...time.Duration) (steps []step) {
	for _, t := range at {
		steps = append(steps, step{at: t})
	}
	return steps
}

// every takes all there is n times, so far apart.
func every(first, apart time.Duration, n int) (steps []step) {
	for i := range n {
		steps = append(steps, step{at: first + time.Duration(i)*apart})
	}
	return steps
}

// one takes n tokens one by one, so far apart.
func one(first, apart time.Duration, n int) (steps []step) {
	for i := range n {
		steps = append(steps, step{at: first + time.Duration(i)*apart, n: 1})
	}
	return steps
}

func date(month time.Month, day, hour int) time.Duration {
	return algo.Instant(time.Date(2027, month, day, hour, 0, 0, 0, time.UTC).UnixNano()).Sub(anchor)
}

// worstCases take just as each rule bears worst.
var worstCases = []driven{
	{"5/1s", 0, all(0), 5, "at most 5 in any 1s"},
	{"5/1s", 50 * ms, all(0, time.Second), 5, "at most 5 in any 1s"},
	{"7/2s unit=tokens", 0, all(0), 7, "at most 7 tokens in any 2s"},
	{"0/1s", 0, all(0), 0, "refuses always"},
	{"10/1s fixed", 0, all(time.Second-ns, time.Second), 20, "at most 20 in any 1s: 10 on each side of a boundary"},
	{"9/1d fixed unit=images", 0, all(24*time.Hour-ns, 24*time.Hour), 18, "at most 18 images in any 1d: 9 on each side of a boundary"},
	{"10/1s fixed", 50 * ms, all(950*ms-ns, 1050*ms), 20, "at most 20 in any 1s: 10 on each side of a boundary, 100ms apart"},
	{"10/1s fixed", 500*ms - ns, all(500*ms, 1500*ms-ns), 20, "at most 20 in any 1s: 10 on each side of a boundary, 999.999998ms apart"},
	{"10/1s fixed", 500 * ms, all(500*ms-ns, 1500*ms), 10, "at most 10 in any 1s"},
	{"10/1mo fixed", 0, all(date(1, 31, 24)-ns, date(2, 10, 0), date(3, 1, 0)), 30, "at most 30 in any 31d: 10 on each side of a boundary, and as many in a shorter period between"},
	{"10/1d fixed tz=Europe/Berlin", 0, all(date(3, 27, 23)-ns, date(3, 28, 12), date(3, 28, 22)), 30, "at most 30 in any 1d: 10 on each side of a boundary, and as many in a shorter period between"},
	{"10/1d fixed tz=Asia/Kolkata", 0, all(date(3, 28, 0)-30*time.Minute*11-ns, date(3, 28, 0)-30*time.Minute*11), 20, "at most 20 in any 1d: 10 on each side of a boundary"},
	{"10/1s bucket", 0, every(0, 100*ms+20*us, 10), 19, "at most 19 in any 1s: the burst and 9 more"},
	{"10/1s bucket burst=3", 0, every(0, 100*ms+20*us, 10), 12, "at most 12 in any 1s: the burst and 9 more"},
	{"10/1s bucket burst=50 unit=tokens", 0, every(0, 100*ms+20*us, 10), 59, "at most 59 tokens in any 1s: the burst and 9 more"},
	{"10/1s bucket burst=50", 250 * ms, every(0, 100*ms+20*us, 10), 56, "at most 56 in any 1s: the burst and 9 more"},
	{"10/90m fixed tz=Europe/Berlin", 0, all(date(3, 28, 1)-30*time.Minute-ns, date(3, 28, 1)-ns, date(3, 28, 1)), 30, "at most 30 in any 90m: 10 on each side of a boundary, and as many in a shorter period between"},
	{"10/90m fixed tz=Europe/Berlin", 15 * time.Minute, all(date(3, 28, 1)-45*time.Minute-ns, date(3, 28, 1)-15*time.Minute-ns, date(3, 28, 1)+15*time.Minute), 20, "at most 20 in any 90m: 10 on each side of a boundary, 30m0s apart"},
	{"0/1s bucket burst=5", 0, all(0, time.Hour), 5, "at most 5, and no more ever"},
	{"10/1s counter", 0, all(time.Second-ns, 1900*ms), 19, "an estimate and no hard bound: up to 19 in any 1s"},
	{"1/1s counter", 0, all(time.Second-ns, 2*time.Second-ns), 1, "an estimate and no hard bound: up to 1 in any 1s"},
	{"2/1s counter", 0, all(time.Second-ns, 1500*ms), 3, "an estimate and no hard bound: up to 3 in any 1s"},
	{"10/1s counter", 60 * ms, all(940*ms-ns, 1860*ms), 18, "an estimate and no hard bound: up to 18 in any 1s"},
	{"10/1s counter", 500 * ms, all(0, 3*time.Second), 10, "an estimate and no hard bound: up to 10 in any 1s"},
	{"10/1s pace", 0, append(one(0, 100*ms+20*us, 9), step{at: 900*ms + 180*us}), 19, "at most 10 in any 1s, 100ms apart; 19 where calls cost more than 1"},
	{"3/1s pace", 0, append(one(0, 333400001, 2), step{at: 666800002}), 5, "at most 3 in any 1s, 333.333334ms apart; 5 where calls cost more than 1"},
	{"10/1s pace", 50 * ms, append(one(0, 150*ms+20*us, 6), step{at: 900*ms + 120*us}), 16, "at most 7 in any 1s, 150ms apart; 16 where calls cost more than 1"},
	{"1/1s pace", 0, all(0), 1, "at most 1 in any 1s, 1s apart; 1 where calls cost more than 1"},
	{"4 concurrent", 0, all(0), 4, "at most 4 under way"},
	{"4 concurrent", 50 * ms, all(0), 4, "at most 4 under way"},
}

const (
	ms = time.Millisecond
	us = time.Microsecond
)

// TestEachRuleIsDrivenToItsWorstCaseAndNoFurther: what check prints of a rule is what
// the ledger lets go at its worst. The schedule that suits a rule best reaches exactly
// that, and a hundred others, greedy ones and wild ones, never more.
func TestEachRuleIsDrivenToItsWorstCaseAndNoFurther(t *testing.T) {
	for _, c := range worstCases {
		t.Run(fmt.Sprint(c.rule, " guard ", c.guard), func(t *testing.T) {
			r, err := algo.ParseRule(c.rule)
			require.NoError(t, err)
			w := worst(r, c.guard, anchor)
			require.Equal(t, c.text, w.text)
			require.Equal(t, c.most, w.most)
			require.Equal(t, c.most, drive(t, r, c.guard, c.steps), "the worst is reached")
			require.Equal(t, w.burst, drive(t, r, c.guard, c.steps[len(c.steps)-1:]), "so is the burst")
			span := max(r.Span(), time.Second)
			for i := range 50 {
				first := span * time.Duration(i) / 50
				require.LessOrEqual(t, drive(t, r, c.guard, every(first, span/40, 100)), c.most, "greedy from %v on", first)
			}
			for seed := range uint64(80) {
				require.LessOrEqual(t, drive(t, r, c.guard, wild(rand.New(rand.NewPCG(seed, 1)), c, span)), c.most, "wild, seed %d", seed)
			}
		})
	}
}

// wild takes at random, often near the instants of the worst schedule.
func wild(rnd *rand.Rand, c driven, span time.Duration) (steps []step) {
	at := time.Duration(rnd.Int64N(int64(span)))
	if len(c.steps) > 0 && rnd.IntN(2) == 0 {
		at = max(0, c.steps[0].at-time.Duration(rnd.Int64N(int64(2*span/3))))
	}
	for range 60 {
		s := step{at: at}
		if rnd.IntN(3) > 0 {
			s.n = 1 + rnd.Int64N(max(1, c.most/2))
		}
		if rnd.IntN(3) == 0 {
			s.held = time.Duration(rnd.Int64N(int64(span)))
		}
		steps = append(steps, s)
		at += time.Duration(rnd.Int64N(int64(span) / []int64{4, 20, 1000}[rnd.IntN(3)]))
		for _, near := range c.steps {
			if d := near.at - at; d > 0 && d < span/20 && rnd.IntN(3) == 0 {
				at = near.at - time.Duration(rnd.Int64N(2))
			}
		}
	}
	return steps
}

// drive lets a holder take and spend at these instants, of a ledger as a coordinator has
// it, and gives the most that a trailing window as long as the rule's period saw, or how
// many calls were under way at most: those that were cut off, for a guard longer.
func drive(t *testing.T, r algo.Rule, guard time.Duration, steps []step) (most int64) {
	t.Helper()
	policy, err := lease.ParsePolicy("driven", fmt.Appendf(nil, "limits: [{key: k, rules: [%s], guard: %v}]", r, guard))
	require.NoError(t, err)
	d := driver{t: t, ledger: lease.NewLedger(policy, lease.DefaultConfig()), rule: r, guard: guard}
	for _, s := range steps {
		d.spend(anchor.Add(s.at))
		most = max(most, d.take(anchor.Add(s.at), s))
	}
	if r.Kind == algo.Concurrent {
		return most
	}
	d.spend(anchor.Add(steps[len(steps)-1].at + time.Hour))
	for _, end := range d.spends {
		var sum int64
		for _, s := range d.spends {
			if s.at <= end.at && end.at.Sub(s.at) < r.Span() {
				sum += s.n
			}
		}
		most = max(most, sum)
	}
	return most
}

// driver is a holder who asks for leases one after another.
type driver struct {
	t      *testing.T
	ledger *lease.Ledger
	rule   algo.Rule
	guard  time.Duration
	seq    uint64
	held   []holding // by when they are spent, or cut off
	spends []spent
	calls  []spent // under way, until at
}

// holding is a lease, the instant at which all of it is spent, and how much that is.
type holding struct {
	at    algo.Instant
	n     int64
	count lease.Count
}

type spent struct {
	at algo.Instant
	n  int64
}

var driverHolder = lease.Holder{Name: "driver", Incarnation: 1}

// spend spends what was held until now, and tells of each spend at once.
func (d *driver) spend(now algo.Instant) {
	for len(d.held) > 0 && d.held[0].at <= now {
		h := d.held[0]
		d.held = d.held[1:]
		d.tell(h)
	}
}

func (d *driver) tell(h holding) {
	if d.rule.Kind == algo.Concurrent {
		d.calls = append(d.calls, spent{h.at.Add(d.guard), h.n})
	} else {
		d.spends = append(d.spends, spent{h.at, h.n})
	}
	d.ledger.Turn(h.at, []lease.Message{{Ticket: 1, Arrived: h.at, Report: &lease.Report{
		Holder: driverHolder, Sent: h.at.Sub(anchor), Heartbeat: true, Counts: []lease.Count{h.count}}}})
}

// take asks for up to n until it is refused, and gives how many calls are under way.
func (d *driver) take(now algo.Instant, s step) (underWay int64) {
	n := s.n
	if n == 0 {
		n = algo.MaxLimit
	}
	for n > 0 {
		a := d.ask(now, n)
		if a.Outcome != lease.Granted {
			require.Equal(d.t, lease.Refused, a.Outcome)
			break
		}
		ttl := a.TokenTTL
		if d.rule.Kind == algo.Concurrent {
			ttl = a.SlotTTL
		}
		h := d.granted(a, now.Add(min(s.held, ttl-ms))) // while the lease lives
		n -= h.n
		if s.held > 0 || d.rule.Kind == algo.Concurrent {
			i, _ := slices.BinarySearchFunc(d.held, h.at, func(h holding, at algo.Instant) int { return cmp.Compare(h.at, at) })
			d.held = slices.Insert(d.held, i, h)
			continue
		}
		d.tell(h)
	}
	d.calls = slices.DeleteFunc(d.calls, func(c spent) bool { return c.at <= now })
	for _, c := range d.calls {
		underWay += c.n
	}
	for _, h := range d.held {
		underWay += h.n
	}
	if d.rule.Kind != algo.Concurrent {
		return 0
	}
	return underWay
}

func (d *driver) granted(a lease.Answer, at algo.Instant) holding {
	h := holding{at: at, n: a.Granted.Tokens, count: lease.Count{ID: a.ID, Keys: []lease.Key{"k"}}}
	switch {
	case d.rule.Kind == algo.Concurrent:
		h.n, h.count.Cut = a.Granted.Slots, a.Granted.Slots
		return h
	case d.rule.Unit != "":
		h.n = a.Granted.Units.Of(d.rule.Unit)
	}
	h.count.Points = []lease.Point{{Count: a.Granted.Tokens, Units: a.Granted.Units}}
	return h
}

func (d *driver) ask(now algo.Instant, n int64) lease.Answer {
	d.seq++
	r := lease.Request{ID: lease.ID{Holder: driverHolder, Seq: d.seq}, Keys: []lease.Key{"k"}, Sent: now.Sub(anchor)}
	switch {
	case d.rule.Kind == algo.Concurrent:
		r.Need, r.Want = lease.Amount{Slots: 1}, lease.Amount{Slots: n}
	case d.rule.Unit != "":
		r.Need = lease.Amount{Tokens: 1, Units: lease.Units{{Unit: d.rule.Unit, N: 1}}}
		r.Want = lease.Amount{Tokens: 1, Units: lease.Units{{Unit: d.rule.Unit, N: n}}}
	default:
		r.Need, r.Want = lease.Amount{Tokens: 1}, lease.Amount{Tokens: n}
	}
	require.NoError(d.t, r.Validate())
	turn := d.ledger.Turn(now, []lease.Message{{Ticket: 1, Arrived: now, Request: &r}})
	require.Len(d.t, turn.Answers, 1)
	return turn.Answers[0].Answer
}
