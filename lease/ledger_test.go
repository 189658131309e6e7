package lease_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// start is the ledger time at which the tests' worlds begin.
const start = algo.Instant(1_800_000_000_000_000_000)

func policy(t testing.TB, text string) *lease.Policy {
	t.Helper()
	p, err := lease.ParsePolicy("test.yaml", []byte(text))
	require.NoError(t, err)
	return p
}

// ask is a request for one token and no slot by a holder who sends at once.
func ask(holder string, seq uint64, at algo.Instant, patience time.Duration, keys ...lease.Key) *lease.Request {
	return &lease.Request{
		ID:       lease.ID{Holder: lease.Holder{Name: holder, Incarnation: 1}, Seq: seq},
		Keys:     keys,
		Want:     lease.Amount{Tokens: 1},
		Need:     lease.Amount{Tokens: 1},
		Sent:     at.Sub(start),
		Patience: patience,
	}
}

// turn takes one turn over requests and reports that arrive at that instant, and
// checks the books and the law afterwards.
func turn(t testing.TB, l *lease.Ledger, at algo.Instant, in ...any) *lease.Turn {
	t.Helper()
	var ms []lease.Message
	for i, m := range in {
		switch m := m.(type) {
		case *lease.Request:
			ms = append(ms, lease.Message{Ticket: lease.Ticket(i), Arrived: at, Request: m})
		case *lease.Report:
			ms = append(ms, lease.Message{Ticket: lease.Ticket(i), Arrived: at, Report: m})
		}
	}
	got := l.Turn(at, ms)
	balanced(t, l, at)
	return got
}

func balanced(t testing.TB, l *lease.Ledger, at algo.Instant) {
	t.Helper()
	require.True(t, lease.RestingIsUntouched())
	s := l.Status(at, "")
	require.Equal(t, s.Stats.Granted+s.Stats.Adopted, s.Stats.Spent+s.Stats.Returned+s.Stats.Expired+s.Held.Tokens, "tokens balance")
	require.Equal(t, s.Stats.SlotsGranted+s.Stats.SlotsAdopted, s.Stats.SlotsFreed+s.Stats.SlotsCut+s.Stats.SlotsExpired+s.Held.Slots, "slots balance")
	held := int64(0)
	for _, u := range s.Held.Units {
		held += u.N
	}
	require.Equal(t, s.Stats.UnitsGranted+s.Stats.UnitsAdopted, s.Stats.UnitsSpent+s.Stats.UnitsReturned+s.Stats.UnitsExpired+held, "units balance")
	for _, k := range s.Keys {
		for _, w := range k.Windows {
			if w.Shadow && w.Free == 0 && w.Held+w.Spent > w.Limit {
				continue
			}
			if s.Stats.Overspent+s.Stats.UnitsOverspent+s.Stats.Charges > 0 && w.Free == 0 && w.Held+w.Spent > w.Limit {
				require.LessOrEqual(t, w.Held+w.Spent, 2*w.Limit, "%s %s: no more debt than a limit", k.Key, w.Rule)
				continue
			}
			require.Equal(t, w.Limit, w.Free+w.Held+w.Spent, "%s %s: free + held + spent = limit", k.Key, w.Rule)
		}
	}
}

// TestOneStoryOfTwoRules plays 30 calls by four holders under two rules in
// virtual time: each asks with patience, spends at once, and says so. It must
// take what the contract takes, 7 s, and the clock allowance of 1/5,000.
func TestOneStoryOfTwoRules(t *testing.T) {
	const calls, holders = 30, 4
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [5/1s, 12/3s]}]`), lease.DefaultConfig())
	names := []string{"a", "b", "c", "d"}
	var (
		spends []algo.Instant
		seq    uint64
		now    = start
		asked  = 0
		in     []any
	)
	for range holders {
		seq++
		in = append(in, ask(names[asked%holders], seq, now, time.Hour, "k"))
		asked++
	}
	for len(spends) < calls {
		got := turn(t, l, now, in...)
		in = nil
		for _, a := range got.Answers {
			if a.Answer.Outcome == lease.Waiting { // ask again: nobody else here does it each second
				r := ask(a.Answer.ID.Holder.Name, a.Answer.ID.Seq, now, time.Hour, "k")
				in = append(in, r)
				continue
			}
			require.Equal(t, lease.Granted, a.Answer.Outcome)
			spends = append(spends, now)
			in = append(in, &lease.Report{
				Holder: a.Answer.ID.Holder,
				Sent:   now.Sub(start),
				Counts: []lease.Count{{ID: a.Answer.ID, Keys: []lease.Key{"k"}, Points: []lease.Point{{Count: 1}}}},
			})
			if asked < calls {
				seq++
				in = append(in, ask(a.Answer.ID.Holder.Name, seq, now, time.Hour, "k"))
				asked++
			}
		}
		if len(in) == 0 {
			next, ok := l.Next()
			require.True(t, ok)
			now = next
		}
	}
	took := spends[len(spends)-1].Sub(start)
	t.Logf("%d calls in %v", calls, took)
	require.GreaterOrEqual(t, took, 7*time.Second)
	require.LessOrEqual(t, took, 7*time.Second+7*time.Second/5000)
	requireWithin(t, spends, 5, time.Second)
	requireWithin(t, spends, 12, 3*time.Second)
}

// requireWithin checks by brute force that no window (t-w, t] holds more than
// limit spends.
func requireWithin(t testing.TB, spends []algo.Instant, limit int, w time.Duration) {
	t.Helper()
	for _, end := range spends {
		n := 0
		for _, s := range spends {
			if !end.Before(s) && end.Sub(s) < w {
				n++
			}
		}
		require.LessOrEqual(t, n, limit, "in the %v up to %v", w, end)
	}
}

// TestNinetyNineOfHundred: ten ask at once for the last one.
func TestOneOfTenGetsTheLastOne(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [100/1m]}]`), lease.DefaultConfig())
	r := ask("first", 1, start, 0, "k")
	r.Want.Tokens, r.Need.Tokens = 99, 99
	require.Equal(t, lease.Granted, turn(t, l, start, r).Answers[0].Answer.Outcome)
	var in []any
	for i := range uint64(10) {
		in = append(in, ask("other", i, start, 0, "k"))
	}
	rand.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
	granted := 0
	for _, a := range turn(t, l, start, in...).Answers {
		if a.Answer.Outcome == lease.Granted {
			granted++
			continue
		}
		require.ErrorIs(t, a.Answer.Refusal.Reason, lease.ErrLimit)
		require.Equal(t, "100/1m", a.Answer.Refusal.Rule)
	}
	require.Equal(t, 1, granted)
}

// TestWhoWaitsComesBeforeWhoArrives: what a report frees goes to the line, also
// where a new request came in the same turn.
func TestWhoWaitsComesBeforeWhoArrives(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1/1s, 1 concurrent]}]`), lease.DefaultConfig())
	first := ask("a", 1, start, 0, "k")
	first.Need.Slots, first.Want.Slots = 1, 1
	turn(t, l, start, first)
	waits := ask("b", 1, start, time.Minute, "k") // lacks both, so it holds nobody back
	waits.Need.Slots, waits.Want.Slots = 1, 1
	turn(t, l, start, waits)
	arrives := ask("c", 1, start, time.Minute, "k")
	arrives.Need.Slots, arrives.Want.Slots = 1, 1
	got := turn(t, l, start, arrives, &lease.Report{
		Holder: first.ID.Holder,
		Counts: []lease.Count{{ID: first.ID, Keys: first.Keys, Returned: 1, Freed: 1}},
	})
	require.Len(t, got.Answers, 1)
	require.Equal(t, waits.ID, got.Answers[0].Answer.ID)
}

// TestKeysAtRestLeaveMemoryAndMirror: a key that is equal to one never touched
// is dropped, and its record says so; one that is charged stays.
func TestKeysAtRestLeaveMemoryAndMirror(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "{k}", rules: [10/1s, 100/1h]}]`), lease.DefaultConfig())
	records := mirrored{}
	step := func(at algo.Instant, in ...any) {
		records.keep(turn(t, l, at, in...))
	}
	spent, returned := ask("a", 1, start, 0, "spent"), ask("a", 2, start, 0, "returned")
	step(start, spent, returned)
	require.Len(t, records, 2)
	step(start, // of two tenants, so in two messages
		&lease.Report{Holder: spent.ID.Holder, Counts: []lease.Count{{ID: spent.ID, Keys: spent.Keys, Points: []lease.Point{{Count: 1}}}}},
		&lease.Report{Holder: spent.ID.Holder, Counts: []lease.Count{{ID: returned.ID, Keys: returned.Keys, Returned: 1}}})
	step(start.Add(2*time.Minute), nil)
	require.Len(t, l.Status(start.Add(2*time.Minute), "").Keys, 1, "the hour is charged")
	require.Contains(t, records, lease.Key("spent"))
	require.NotContains(t, records, lease.Key("returned"))
	step(start.Add(2*time.Hour), nil)
	require.Empty(t, l.Status(start.Add(2*time.Hour), "").Keys)
	require.Empty(t, records)
}
