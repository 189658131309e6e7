package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// taking is a request for n tokens, of a holder that will not wait.
func taking(seq uint64, n int64, at algo.Instant, keys ...lease.Key) *lease.Request {
	r := ask("a", seq, at, 0, keys...)
	r.Want.Tokens, r.Need.Tokens = n, n
	return r
}

// spending is a report that n of a lease have just been spent.
func spending(r *lease.Request, n int64) *lease.Report {
	return &lease.Report{Holder: r.ID.Holder, Counts: []lease.Count{{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: n}}}}}
}

func window(t *testing.T, l *lease.Ledger, at algo.Instant, key lease.Key) lease.WindowStatus {
	t.Helper()
	for _, k := range l.Status(at, key).Keys {
		if k.Key == key {
			return k.Windows[0]
		}
	}
	t.Fatalf("nothing is known of %s", key)
	return lease.WindowStatus{}
}

func limits(rules string) string { return "limits: [{key: k, rules: [" + rules + "]}]" }

// TestNewLimitAppliesAtOnceToWindowsThatAreThere (B94, B95, B97, B98, B100): what was used
// counts against it, whatever the rule, and nothing is ever below 0.
func TestNewLimitAppliesAtOnceToWindowsThatAreThere(t *testing.T) {
	for _, c := range []struct {
		from, to string
		used     int64
		free     int64
	}{
		{"10/1s", "5/1s", 3, 2},
		{"10/1s fixed", "5/1s fixed", 3, 2},
		{"10/1m counter", "5/1m counter", 3, 2},
		{"10/1h bucket", "5/1h bucket", 3, 2},
		{"10/1h bucket", "1000/1h bucket", 10, 990},
		{"10/1h bucket burst=10", "1000/1h bucket burst=10", 10, 0},
		{"1000000/1d fixed", "1/1d fixed", 10, 0},
		{"10/1m", "100/1m", 10, 90},
		{"100/1m", "10/1m", 50, 0},
		{"100/1m", "0/1m", 50, 0},
	} {
		l := newLedger(t, limits(c.from))
		r := taking(1, c.used, start, "k")
		require.Equal(t, lease.Granted, turn(t, l, start, r, spending(r, c.used)).Answers[0].Answer.Outcome, c.from)
		turn(t, l, start+1, spending(r, c.used))
		revision, changed := l.Change(policy(t, limits(c.to)), 0)
		require.True(t, changed)
		require.Equal(t, uint64(2), revision)
		l.Turn(start+2, nil)
		w := window(t, l, start+2, "k")
		require.Equal(t, []int64{c.free, 0, c.used}, []int64{w.Free, w.Held, w.Spent}, "%s to %s", c.from, c.to)
		over := l.Turn(start+3, []lease.Message{{Arrived: start + 3, Request: taking(2, c.free+1, start+3, "k")}})
		require.Equal(t, lease.Refused, over.Answers[0].Answer.Outcome)
	}
}

// TestLimitBelowWhatIsHeldIsDebtAndNoNegativeGrant: 100 to 10 while 60 are held, and back.
func TestLimitBelowWhatIsHeldIsDebtAndNoNegativeGrant(t *testing.T) {
	l := newLedger(t, limits("100/1m"))
	held := taking(1, 60, start, "k")
	turn(t, l, start, held)
	l.Change(policy(t, limits("10/1m")), 0)
	l.Turn(start+1, nil)
	w := window(t, l, start+1, "k")
	require.Equal(t, []int64{10, 0, 60, 0}, []int64{w.Limit, w.Free, w.Held, w.Spent})
	refused := l.Turn(start+2, []lease.Message{{Arrived: start + 2, Request: taking(2, 1, start+2, "k")}}).Answers[0].Answer
	require.Equal(t, lease.Refused, refused.Outcome)
	require.Positive(t, refused.Refusal.Wait)
	l.Turn(start+3, []lease.Message{{Arrived: start + 3, Report: spending(held, 55)}})
	w = window(t, l, start+3, "k")
	require.Equal(t, []int64{0, 5, 55}, []int64{w.Free, w.Held, w.Spent})
	l.Change(policy(t, limits("100/1m")), 0)
	granted := turn(t, l, start+4, taking(3, 40, start+4, "k"))
	require.Equal(t, lease.Granted, granted.Answers[0].Answer.Outcome)
	require.Equal(t, lease.Refused, turn(t, l, start+5, taking(4, 1, start+5, "k")).Answers[0].Answer.Outcome)
}

// TestAddedRuleBeginsWithWhatIsHeldAndSpent: not with nothing.
func TestAddedRuleBeginsWithWhatIsHeldAndSpent(t *testing.T) {
	l := newLedger(t, limits("100/1s"))
	held := taking(1, 60, start, "k")
	turn(t, l, start, held)
	l.Turn(start+1, []lease.Message{{Arrived: start + 1, Report: spending(held, 20)}})
	l.Change(policy(t, limits("10/1m, 100/1s")), 0)
	l.Turn(start+2, nil)
	w := window(t, l, start+2, "k")
	require.Equal(t, []int64{0, 40, 20}, []int64{w.Free, w.Held, w.Spent})
	// Another period is another rule.
	l = newLedger(t, limits("10/1s"))
	r := taking(1, 10, start, "k")
	turn(t, l, start, r)
	turn(t, l, start+1, spending(r, 10))
	l.Change(policy(t, limits("10/2s")), 0)
	l.Turn(start+2, nil)
	require.Zero(t, window(t, l, start.Add(2*time.Second-1), "k").Free)
	require.Equal(t, int64(10), window(t, l, start.Add(2*time.Second+time.Millisecond), "k").Free)
}

// TestLimitOfANewPrefixBeginsWithWhatIsHeld: leases that were granted before hold from it.
func TestLimitOfANewPrefixBeginsWithWhatIsHeld(t *testing.T) {
	l := newLedger(t, `limits: [{key: "k/{x}", rules: [100/1m]}]`)
	a, b := taking(1, 30, start, "k/a"), taking(2, 20, start, "k/b")
	records := mirrored{}
	records.keep(turn(t, l, start, a, b))
	l.Change(policy(t, `limits: [{key: "k/{x}", rules: [100/1m]}, {key: k, rules: [60/1m]}]`), 0)
	require.Equal(t, []lease.Key{"k"}, l.Unloaded(nil), "the mirror may have a record of before")
	change := turn(t, l, start+1)
	records.keep(change)
	require.Equal(t, uint64(2), change.Policy.Revision)
	w := window(t, l, start+1, "k")
	require.Equal(t, []int64{10, 50, 0}, []int64{w.Free, w.Held, w.Spent})
	after := lease.NewLedger(policy(t, change.Policy.Text), lease.DefaultConfig())
	after.Start(lease.Start{Epoch: 2, Instant: start + 1, Revision: 2})
	for _, r := range records {
		after.Restore(r)
	}
	require.Equal(t, l.Status(start+1, "").Keys, after.Status(start+1, "").Keys, "the next leader knows it too")
	turn(t, after, start+2, spending(a, 30))
	require.Equal(t, int64(10), window(t, after, start+2, "k").Free)
}

// TestRemovedRuleIsKeptUntilItIsDrained: added again, it knows all that happened.
func TestRemovedRuleIsKeptUntilItIsDrained(t *testing.T) {
	for _, failover := range []bool{false, true} {
		l, records := newLedger(t, limits("10/1m, 100/1s")), mirrored{}
		r := taking(1, 8, start, "k")
		records.keep(turn(t, l, start, r))
		l.Change(policy(t, limits("100/1s")), 0)
		records.keep(turn(t, l, start+1, spending(r, 6)))
		more := taking(2, 30, start+2, "k")
		records.keep(turn(t, l, start+2, more))
		require.Len(t, l.Status(start+2, "k").Keys[0].Windows, 1, "it binds nobody")
		if failover {
			_, revision := l.Policy()
			l = lease.NewLedger(policy(t, limits("100/1s")), lease.DefaultConfig())
			l.Start(lease.Start{Epoch: 2, Instant: start + 2, Revision: revision})
			l.Restore(records["k"].Clone())
		}
		at := start.Add(30 * time.Second)
		l.Turn(at, nil)
		l.Change(policy(t, limits("10/1m, 100/1s")), 0)
		l.Turn(at, nil)
		w := window(t, l, at, "k")
		require.Equal(t, []int64{0, 0, 38}, []int64{w.Free, w.Held, w.Spent}, "also what was granted meanwhile")
		require.Equal(t, int64(10), window(t, l, at.Add(time.Minute), "k").Free)
	}
	// In the end nothing is left of it.
	l, records := newLedger(t, limits("10/1m, 100/1s")), mirrored{}
	r := taking(1, 8, start, "k")
	records.keep(turn(t, l, start, r))
	l.Change(policy(t, limits("100/1s")), 0)
	for at := start; at < start.Add(3*time.Minute); at = at.Add(400 * time.Millisecond) {
		r := taking(uint64(at-start)+2, 1, at, "k")
		records.keep(turn(t, l, at, r))
	}
	require.Len(t, records["k"].Windows, 1)
}

// TestWhoWaitsFollowsAnotherPolicy (B94): served at once where there is more, refused where
// there will never be enough, or not in time.
func TestWhoWaitsFollowsAnotherPolicy(t *testing.T) {
	for text, want := range map[string]struct {
		outcome lease.Outcome
		reason  error
	}{
		limits("100/1h"):                         {lease.Granted, nil},
		limits("4/1h"):                           {0, nil},
		limits("1/1h"):                           {lease.Refused, lease.ErrNever},
		limits("0/1h"):                           {lease.Refused, lease.ErrNever},
		"limits: [{key: other, rules: [10/1s]}]": {lease.Refused, lease.ErrUnknownKey},
		"unknown: allow\nlimits: [{key: other, rules: [10/1s]}]":           {lease.Granted, nil},
		`limits: [{key: k, rules: [100/1h]}, {key: "k/x", rules: [1/1m]}]`: {lease.Refused, lease.ErrNever},
		`limits: [{key: k, rules: [100/1h]}, {key: "k/x", rules: [5/1m]}]`: {lease.Granted, nil},
		limits("2/1h"):                 {0, nil},
		limits("100/1h, 2 concurrent"): {lease.Refused, lease.ErrNeedsSlot},
		limits("5/1d, 100/1h"):         {lease.Refused, lease.ErrTooLate},
	} {
		l := newLedger(t, limits("5/1h"))
		r := taking(1, 4, start, "k/x")
		turn(t, l, start, r)
		turn(t, l, start, spending(r, 4))
		waits := ask("b", 1, start, 2*time.Hour, "k/x")
		waits.Want.Tokens, waits.Need.Tokens = 2, 2
		require.Empty(t, turn(t, l, start, waits).Answers)
		l.Change(policy(t, text), 0)
		got := l.Turn(start+1, nil).Answers
		if want.outcome == 0 {
			require.Empty(t, got, text)
			require.Equal(t, 1, l.Summary(start+1).Waiting)
			continue
		}
		require.Len(t, got, 1, text)
		require.Equal(t, want.outcome, got[0].Answer.Outcome, text)
		require.ErrorIs(t, got[0].Answer.Refusal.Reason, want.reason)
		require.Zero(t, l.Summary(start+1).Waiting)
	}
}

// TestWhoWaitsIsServedAtTheNewRate (B94): a second apart, then at once, then ten seconds apart.
func TestWhoWaitsIsServedAtTheNewRate(t *testing.T) {
	l := newLedger(t, limits("1/1s bucket"))
	first := taking(1, 1, start, "k")
	turn(t, l, start, first)
	turn(t, l, start, spending(first, 1))
	served := func(at algo.Instant) (n int) { return len(l.Turn(at, nil).Answers) }
	for seq := range uint64(4) {
		require.Empty(t, turn(t, l, start, ask("b", seq+1, start, time.Hour, "k")).Answers)
	}
	at := start.Add(time.Second + time.Millisecond)
	require.Equal(t, 1, served(at))
	l.Change(policy(t, limits("100/1s bucket")), 0)
	require.Equal(t, 3, served(at+1))
	for seq := range uint64(4) {
		turn(t, l, at+1, &lease.Report{Holder: lease.Holder{Name: "b", Incarnation: 1}, Counts: []lease.Count{
			{ID: ask("b", seq+1, at, 0, "k").ID, Keys: []lease.Key{"k"}, Points: []lease.Point{{Count: 1}}},
		}})
	}
	l.Change(policy(t, limits("1/10s bucket")), 0)
	for d := time.Duration(2); ; d += 500 * time.Millisecond { // asked again, as holders do
		got := turn(t, l, at.Add(d), ask("b", 5, at, time.Hour, "k")).Answers
		if len(got) > 0 && got[0].Answer.Outcome == lease.Granted {
			require.GreaterOrEqual(t, d, 10*time.Second)
			require.Less(t, d, 11*time.Second)
			break
		}
		require.Less(t, d, time.Minute)
	}
}

// TestKeyOfTheMirrorAloneComesUnderTheNewLimit (B94): with what leases of before hold of it,
// which is over with them.
func TestKeyOfTheMirrorAloneComesUnderTheNewLimit(t *testing.T) {
	before, records := newLedger(t, limits("100/1h")), mirrored{}
	records.keep(turn(t, before, start, taking(1, 60, start, "k")))
	_, changed := before.Change(policy(t, limits("10/1h")), 0)
	require.True(t, changed)
	p := before.Turn(start, nil).Policy
	l := lease.NewLedger(policy(t, p.Text), lease.DefaultConfig())
	l.Start(lease.Start{Epoch: 2, Instant: start, Revision: p.Revision, Recorded: true})
	asks := taking(2, 1, start, "k")
	require.Equal(t, []lease.Key{"k"}, l.Unloaded([]lease.Message{{Request: asks}}))
	l.Restore(records["k"].Clone())
	got := l.Turn(start, []lease.Message{{Arrived: start, Request: asks}})
	require.Equal(t, lease.Refused, got.Answers[0].Answer.Outcome)
	w := window(t, l, start, "k")
	require.Equal(t, []int64{10, 0, 60, 0}, []int64{w.Limit, w.Free, w.Held, w.Spent})
	at := start.Add(lease.DefaultConfig().TokenTTL)
	l.Turn(at, nil)
	w = window(t, l, at, "k")
	require.Equal(t, []int64{10, 0, 0, 60}, []int64{w.Limit, w.Free, w.Held, w.Spent})
	l.Change(policy(t, limits("100/1h")), 0)
	require.Equal(t, lease.Granted, turn(t, l, at, taking(3, 40, at, "k")).Answers[0].Answer.Outcome)
	require.Equal(t, lease.Refused, turn(t, l, at, taking(4, 1, at, "k")).Answers[0].Answer.Outcome)
}

// TestSamePolicyAgainChangesNothing (B101): however it is spelt, and the refill goes on.
func TestSamePolicyAgainChangesNothing(t *testing.T) {
	l := newLedger(t, limits("1/1s bucket burst=5"))
	r := taking(1, 5, start, "k")
	turn(t, l, start, r)
	turn(t, l, start, spending(r, 5))
	at := start
	for i := range uint64(10) {
		at = at.Add(500 * time.Millisecond)
		revision, changed := l.Change(policy(t, "limits:\n  - key: k # the same\n    rules: [1 per second bucket burst=5]"), 0)
		require.False(t, changed)
		require.Equal(t, uint64(1), revision)
		require.Nil(t, turn(t, l, at).Policy)
		if i%2 == 1 {
			at += 200_001 // the clock allowance
			require.Equal(t, lease.Granted, turn(t, l, at, taking(10+i, 1, at, "k")).Answers[0].Answer.Outcome)
		}
	}
}

// TestPolicyIsRecordedOnceInATurn: as the first one of a mirror that has none, and with
// each change.
func TestPolicyIsRecordedOnceInATurn(t *testing.T) {
	p := policy(t, limits("1/1s"))
	l := lease.NewLedger(p, lease.DefaultConfig())
	l.Start(lease.Start{Epoch: 1, Instant: start, Complete: true})
	require.Equal(t, &lease.PolicyRecord{Revision: 1, Text: p.String()}, l.Turn(start, nil).Policy)
	require.Nil(t, l.Turn(start, nil).Policy)
	next := policy(t, "mirror: available\n"+limits("2/1s"))
	revision, _ := l.Change(next, 7)
	require.Equal(t, uint64(7), revision)
	got := l.Turn(start, nil).Policy
	require.Equal(t, &lease.PolicyRecord{Revision: 7, Text: next.String(), Available: true}, got)
	require.Equal(t, next.String(), policy(t, got.Text).String())

	l.Rewrite(nil) // the mirror has lost it
	require.Equal(t, got, l.Turn(start, nil).Policy)
	l.Owe()
	l.Change(p, 0)
	require.Nil(t, l.Turn(start, nil).Policy, "nobody records the turn")
	l.Repay()
	require.Equal(t, uint64(8), l.Turn(start, nil).Policy.Revision)
}

// TestSlotsBeyondALoweredLimitAreRecalled: of those who hold most, though nobody waits, again
// until they have come back, and by the next leader too.
func TestSlotsBeyondALoweredLimitAreRecalled(t *testing.T) {
	l, records := newLedger(t, limits("100/1s, 10 concurrent")), mirrored{}
	holds := func(name string, n int64) *lease.Request {
		r := ask(name, 1, start, 0, "k")
		r.Want.Slots, r.Need.Slots = n, n
		return r
	}
	a, b := holds("a", 6), holds("b", 3)
	records.keep(turn(t, l, start, a, b))
	lower := policy(t, limits("100/1s, 4 concurrent"))
	_, changed := l.Change(lower, 0)
	require.True(t, changed)
	recalled := []lease.Recall{{Holder: a.ID.Holder, Key: "k", Slots: 4}, {Holder: b.ID.Holder, Key: "k", Slots: 1}}
	got := l.Turn(start+1, nil)
	records.keep(got)
	require.ElementsMatch(t, recalled, got.Recalls)
	require.Empty(t, l.Turn(start+2, nil).Recalls, "they have been asked")
	later := start.Add(lease.DefaultConfig().RecallEvery) + 1
	require.ElementsMatch(t, recalled, l.Turn(later, nil).Recalls, "a recall may be lost")

	next := lease.NewLedger(lower, lease.DefaultConfig())
	next.Start(lease.Start{Epoch: 2, Instant: later, Revision: 2})
	next.Restore(records["k"].Clone())
	require.ElementsMatch(t, recalled, next.Turn(later, nil).Recalls)

	freed := &lease.Report{Holder: a.ID.Holder, Counts: []lease.Count{{ID: a.ID, Keys: a.Keys, Freed: 5}}}
	at := later.Add(lease.DefaultConfig().RecallEvery) + 1
	require.Empty(t, l.Turn(at, []lease.Message{{Arrived: at, Report: freed}}).Recalls, "no more is held than may be")
	require.Equal(t, int64(10), l.Stats().RecalledOver)
	require.Empty(t, l.Turn(at.Add(time.Second), nil).Recalls)
}
