package lease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// TestLargeRequestIsNotOvertakenForEver: a request for five, under two prefixes
// that are both always full of requests for one, is served once it heads the
// line; and then again nobody starves.
func TestLargeRequestIsNotOvertakenForEver(t *testing.T) {
	for _, rules := range []string{"[10/1s]", "[100/1s]"} {
		l := lease.NewLedger(policy(t, `limits: [{key: "{t}", rules: `+rules+`}, {key: "{t}/{s}", rules: [8/1s]}]`), lease.DefaultConfig())
		w := crowd{ledger: l, now: start, live: map[lease.ID]lease.Key{}, keys: map[lease.ID]lease.Key{}}
		for range 50 {
			w.step(t)
		}
		large := ask("large", 1, w.now, time.Hour, "t/x")
		large.Need.Tokens, large.Want.Tokens = 5, 5
		w.large, w.largeID = large, large.ID
		for range 400 { // 20 s
			w.step(t)
		}
		require.Positive(t, w.granted, "rules %s: the large one waited 20 s; %d small ones were served", rules, w.served)
		require.Greater(t, w.served, 180, "rules %s", rules)
	}
}

// crowd asks for one token of two keys again and again, more than there is, and
// spends what it gets at once.
type crowd struct {
	ledger  *lease.Ledger
	now     algo.Instant
	steps   int
	seq     uint64
	live    map[lease.ID]lease.Key
	keys    map[lease.ID]lease.Key // of the small ones
	large   *lease.Request
	largeID lease.ID
	granted int
	served  int
	units   bool // each small one costs 1 of unit u besides
}

func (c *crowd) step(t *testing.T) {
	t.Helper()
	var in []any
	for id, k := range c.live {
		in = append(in, &lease.Report{Holder: id.Holder, Sent: c.now.Sub(start), Counts: []lease.Count{
			{ID: id, Keys: []lease.Key{k}, Points: []lease.Point{{Count: 100, Units: lease.Units{{Unit: "u", N: 100}}}}},
		}})
		delete(c.live, id)
	}
	for _, k := range []lease.Key{"t/x", "t/y"} {
		c.seq++
		r := ask("small", c.seq, c.now, 4*time.Second, k)
		if c.units {
			r.Need.Units, r.Want.Units = lease.Units{{Unit: "u", N: 1}}, lease.Units{{Unit: "u", N: 1}}
		}
		c.keys[r.ID] = k
		in = append(in, r)
	}
	if c.steps++; c.large != nil && c.steps%20 == 0 && c.granted == 0 { // asked again each second
		again := *c.large
		again.Sent = c.now.Sub(start)
		in = append(in, &again)
	}
	for _, a := range turn(t, c.ledger, c.now, in...).Answers {
		switch {
		case a.Answer.Outcome != lease.Granted:
			continue
		case a.Answer.ID == c.largeID:
			c.granted++
			c.live[a.Answer.ID] = "t/x"
		default:
			c.served++
			c.live[a.Answer.ID] = c.keys[a.Answer.ID]
		}
	}
	c.now = c.now.Add(50 * time.Millisecond)
}

// TestCopyInTheTurnOfItsGrantHearsAllOfIt: whichever copy the holder hears, it
// hears of all that the lease holds, and that it stood in line.
func TestCopyInTheTurnOfItsGrantHearsAllOfIt(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/1s]}]`), lease.DefaultConfig())
	all := ask("b", 1, start, 0, "k")
	all.Want.Tokens, all.Need.Tokens = 10, 10
	turn(t, l, start, all)
	waits := ask("a", 1, start, time.Minute, "k")
	waits.Want.Tokens = 8
	turn(t, l, start, waits)
	at := start.Add(time.Second)
	again := *waits
	again.Sent = time.Second
	got := turn(t, l, at, &again, &lease.Report{
		Holder: all.ID.Holder, Sent: time.Second,
		Counts: []lease.Count{{ID: all.ID, Keys: all.Keys, Returned: 10}},
	})
	require.Len(t, got.Answers, 2)
	for _, a := range got.Answers {
		require.Equal(t, int64(8), a.Answer.Granted.Tokens)
		require.Positive(t, a.Answer.Waited)
	}
	require.Equal(t, int64(1), l.Stats().ReplayedAtOnce)
}

// TestRecallWhereSomeIsFreeButNotEnough: one idle token elsewhere keeps a bucket
// from ever being full, so it is asked for.
func TestRecallWhereSomeIsFreeButNotEnough(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/1s bucket, 3 concurrent]}]`), lease.DefaultConfig())
	idle := ask("idle", 1, start, 0, "k")
	idle.Need.Slots, idle.Want.Slots = 1, 1
	turn(t, l, start, idle)
	waits := ask("large", 1, start, time.Minute, "k")
	waits.Need, waits.Want = lease.Amount{Tokens: 10, Slots: 3}, lease.Amount{Tokens: 10, Slots: 3}
	got := turn(t, l, start, waits)
	require.Len(t, got.Recalls, 1)
	require.Equal(t, idle.ID.Holder, got.Recalls[0].Holder)
	require.Equal(t, int64(1), got.Recalls[0].Slots)
	require.Equal(t, int64(1), l.Stats().RecalledSome)
}

// TestNeedsOfAFullLineDoNotOverflow: what the line needs in all is more than an
// int64 holds; who is granted gets no more than is free.
func TestNeedsOfAFullLineDoNotOverflow(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1000000000000000/1d, 1 concurrent]}]`), lease.DefaultConfig())
	first := ask("x", 1, start, 0, "k")
	first.Need.Slots, first.Want.Slots = 1, 1
	require.Equal(t, lease.Granted, turn(t, l, start, first).Answers[0].Answer.Outcome)
	var line []lease.Message
	for i := range 9400 {
		w := ask(fmt.Sprint("w", i), 1, start, time.Hour, "k")
		w.Need = lease.Amount{Tokens: 999_000_000_000_000, Slots: 1}
		w.Want = w.Need
		line = append(line, lease.Message{Ticket: lease.Ticket(i), Arrived: start, Request: w})
	}
	l.Turn(start, line)
	more := ask("x", 2, start, 0, "k")
	more.Want.Tokens = 6_000_000_000_000_000
	got := turn(t, l, start, more)
	require.Equal(t, lease.Granted, got.Answers[0].Answer.Outcome)
	require.Less(t, got.Answers[0].Answer.Granted.Tokens, int64(1_000_000_000_000_000))
}

// TestGoodbyeTakesTheHolderOutOfTheLine, and those behind move up.
func TestGoodbyeTakesTheHolderOutOfTheLine(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/1h]}]`), lease.DefaultConfig())
	most := ask("a", 1, start, 0, "k")
	most.Need.Tokens, most.Want.Tokens = 8, 8
	leaves := ask("b", 1, start, 2*time.Hour, "k")
	leaves.Need.Tokens, leaves.Want.Tokens = 5, 5
	behind := ask("c", 1, start, 2*time.Hour, "k")
	require.Len(t, turn(t, l, start, most, leaves, behind).Answers, 1)
	got := turn(t, l, start, &lease.Report{
		Holder: leaves.ID.Holder, Goodbye: true,
		Counts: []lease.Count{{ID: lease.ID{Holder: leaves.ID.Holder, Seq: 9}, Keys: []lease.Key{"k"}}},
	})
	require.Len(t, got.Answers, 1)
	require.Equal(t, behind.ID, got.Answers[0].Answer.ID)
	require.Equal(t, 0, l.Summary(start).Waiting)
}

// TestAbsurdRequestHarmsNobody: far more than there ever is is refused, and
// leaves no debt.
func TestAbsurdRequestHarmsNobody(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/10s]}]`), lease.DefaultConfig())
	absurd := ask("a", 1, start, time.Hour, "k")
	absurd.Need.Tokens, absurd.Want.Tokens = 1_000_000, 1_000_000
	got := turn(t, l, start, absurd)
	require.ErrorIs(t, got.Answers[0].Answer.Refusal.Reason, lease.ErrNever)
	require.Zero(t, got.Answers[0].Answer.Refusal.Wait)
	later := start.Add(10 * time.Second)
	require.Equal(t, lease.Granted, turn(t, l, later, ask("a", 2, later, 0, "k")).Answers[0].Answer.Outcome)
}

// What a grant wants beyond its need is not taken from those who wait: it gets
// only what is free beyond all their needs.
func TestTopUpLeavesWhatTheLineNeeds(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "{t}", rules: [12/1m]}, {key: "{t}/{s}", rules: [8/1h]}]`), lease.DefaultConfig())
	used := ask("used", 1, start, 0, "t/x")
	used.Need.Tokens, used.Want.Tokens = 8, 8
	turn(t, l, start, used)
	waits := ask("waits", 1, start, 2*time.Hour, "t/x") // for t/x; t has 4 left
	waits.Need.Tokens, waits.Want.Tokens = 2, 2
	require.Empty(t, turn(t, l, start, waits).Answers)
	more := ask("more", 1, start, 0, "t/y")
	more.Want.Tokens = 8
	answers := turn(t, l, start, more).Answers
	require.Len(t, answers, 1)
	require.Equal(t, int64(2), answers[0].Answer.Granted.Tokens, "4 are free, and 2 of them are waited for")
}

// TestFullLineRefusesAtOnce is B68: the next one after the last who may wait is told
// so at once, with the sure wait, and nothing of it is remembered in the line.
func TestFullLineRefusesAtOnce(t *testing.T) {
	config := lease.DefaultConfig()
	config.Line = 100
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1/1m]}]`), config)
	turn(t, l, start, ask("used", 1, start, 0, "k"))
	for seq := range uint64(100) {
		require.Empty(t, turn(t, l, start, ask("waits", seq, start, time.Hour, "k")).Answers)
	}
	for seq := range uint64(50) {
		answers := turn(t, l, start, ask("late", seq, start, time.Hour, "k")).Answers
		require.Len(t, answers, 1)
		refusal := answers[0].Answer.Refusal
		require.ErrorIs(t, refusal.Reason, lease.ErrLineFull)
		require.Equal(t, lease.Key("k"), refusal.Key)
		require.Equal(t, 5*time.Second+time.Minute+12*time.Millisecond, refusal.Wait)
	}
	require.Equal(t, 100, l.Status(start, "").Waiting)
}

// Who holds a slot needs no other for a token, also after a takeover.
func TestTakeoverKnowsWhoHoldsSlots(t *testing.T) {
	p := policy(t, `limits: [{key: k, rules: [10/1m, 1 concurrent]}]`)
	before := lease.NewLedger(p, lease.DefaultConfig())
	first := ask("a", 1, start, 0, "k")
	first.Need.Slots, first.Want.Slots = 1, 1
	got := turn(t, before, start, first)
	records := mirrored{}
	records.keep(got)
	require.Len(t, records, 1)
	after := lease.NewLedger(p, lease.DefaultConfig())
	after.Turn(start, nil)
	after.Restore(records["k"])
	holds, lacks := ask("a", 2, start, 0, "k"), ask("b", 1, start, 0, "k")
	answers := turn(t, after, start, holds, lacks).Answers
	require.Equal(t, map[lease.Ticket]string{0: "", 1: lease.Code(lease.ErrNeedsSlot)}, reasons(answers))
}

// reasons tells why each was refused; granted ones have none.
func reasons(answers []lease.Answered) map[lease.Ticket]string {
	all := map[lease.Ticket]string{}
	for _, a := range answers {
		all[a.Ticket] = ""
		if a.Answer.Outcome == lease.Refused {
			all[a.Ticket] = lease.Code(a.Answer.Refusal.Reason)
		}
	}
	return all
}
