package lease_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

func newLedger(t testing.TB, text string) *lease.Ledger {
	t.Helper()
	return lease.NewLedger(policy(t, text), lease.DefaultConfig())
}

// spendsOne tells that all of a lease of one token was spent at that instant.
func spendsOne(r *lease.Request, at algo.Instant) *lease.Report {
	return &lease.Report{Holder: r.ID.Holder, Sent: at.Sub(start), Counts: []lease.Count{
		{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: 1}}},
	}}
}

// grantedBy asks again each second until the request is granted or refused, and
// gives the instant of that and the answer.
func grantedBy(t *testing.T, l *lease.Ledger, r *lease.Request, now algo.Instant) (algo.Instant, lease.Answer) {
	t.Helper()
	end := now.Add(r.Patience)
	for asked := now; ; {
		if answers := turn(t, l, now, r).Answers; len(answers) > 0 {
			return now, answers[0].Answer
		}
		for asked = asked.Add(time.Second); now < asked; {
			next, ok := l.Next()
			now = min(asked, max(next, now+1))
			require.True(t, ok)
			if answers := turn(t, l, now).Answers; len(answers) > 0 {
				return now, answers[0].Answer
			}
		}
		again := *r
		again.Sent, again.Patience = now.Sub(start), end.Sub(now)
		r = &again
	}
}

// TestWaitIsThatOfTheRuleThatBindsLongest is B44: under two rules a wait is that of the
// rule that binds longest, and works.
func TestWaitIsThatOfTheRuleThatBindsLongest(t *testing.T) {
	seven, sixty := 7*time.Second+7*time.Second/5000, 60*time.Second+60*time.Second/5000
	l := newLedger(t, "limits: [{key: k, rules: [1/7s, 5/60s]}]")
	now := start
	for i := range uint64(5) {
		r := ask("a", i, now, 30*time.Second, "k")
		at, a := grantedBy(t, l, r, now)
		require.Equal(t, lease.Granted, a.Outcome)
		require.Equal(t, time.Duration(i)*seven, at.Sub(start))
		turn(t, l, at, spendsOne(r, at))
		now = at
	}
	before := l.Status(now, "")
	_, a := grantedBy(t, l, ask("a", 5, now, 30*time.Second, "k"), now)
	require.ErrorIs(t, a.Refusal.Reason, lease.ErrTooLate)
	require.Equal(t, "5/1m", a.Refusal.Rule)
	require.Equal(t, sixty-4*seven, a.Refusal.Wait)
	require.Equal(t, before.Keys, l.Status(now, "").Keys, "nothing was charged")
	for i, want := range []time.Duration{sixty, sixty + seven} {
		r := ask("a", uint64(6+i), now, time.Minute, "k")
		at, a := grantedBy(t, l, r, now)
		require.Equal(t, lease.Granted, a.Outcome)
		require.Equal(t, want, at.Sub(start))
		turn(t, l, at, spendsOne(r, at))
		now = at
	}
}

// TestRefusedUserLeavesTheSharedLimitAlone is B46: who is refused by his own limit takes
// nothing of what he shares with others.
func TestRefusedUserLeavesTheSharedLimitAlone(t *testing.T) {
	l := newLedger(t, `limits: [{key: "{tenant}", rules: [100/1m]}, {key: "{tenant}/{user}", rules: [5/1m]}]`)
	granted := func(user string, times int) (n int) {
		for i := range times {
			r := ask(user, uint64(i), start, 0, lease.Key("acme/"+user))
			if a := turn(t, l, start, r).Answers[0].Answer; a.Outcome == lease.Granted {
				n++
				turn(t, l, start, spendsOne(r, start))
			}
		}
		return n
	}
	require.Equal(t, 5, granted("a", 1000))
	require.Equal(t, int64(5), l.Status(start, "acme").Keys[0].Windows[0].Spent)
	require.Equal(t, 5, granted("b", 200))
	others := 0
	for i := range 50 {
		others += granted(fmt.Sprint("user", i), 10)
	}
	require.Equal(t, 90, others)
}

// TestCostsThatAskAtOnceDoNotPassTogether is B50: of five that ask at once for 60 of 100
// one is granted, and the others take nothing.
func TestCostsThatAskAtOnceDoNotPassTogether(t *testing.T) {
	l := newLedger(t, "limits: [{key: k, rules: [100/1m]}]")
	var in []any
	for i := range uint64(5) {
		r := ask(fmt.Sprint("w", i), 1, start, 0, "k")
		r.Need.Tokens, r.Want.Tokens = 60, 60
		in = append(in, r)
	}
	outcomes := map[lease.Outcome]int{}
	for _, a := range turn(t, l, start, in...).Answers {
		outcomes[a.Answer.Outcome]++
	}
	require.Equal(t, map[lease.Outcome]int{lease.Granted: 1, lease.Refused: 4}, outcomes)
	require.Equal(t, int64(60), l.Summary(start).Held.Tokens)
}

// TestEachPrefixIsChargedOnceAndByItself is B52: a prefix is charged once for a request,
// whichever of its keys reach it, and limits that read alike under other keys share
// nothing.
func TestEachPrefixIsChargedOnceAndByItself(t *testing.T) {
	l := newLedger(t, `limits: [{key: "{t}", rules: [10/1m, 100/1h]}, {key: "{t}/{s}", rules: [10/1m, 100/1h]}]`)
	r := ask("a", 1, start, 0, "acme/x", "acme/y", "acme/x")
	require.Equal(t, lease.Granted, turn(t, l, start, r).Answers[0].Answer.Outcome)
	held := map[lease.Key][]int64{}
	for _, k := range l.Status(start, "").Keys {
		for _, w := range k.Windows {
			held[k.Key] = append(held[k.Key], w.Held)
		}
	}
	require.Equal(t, map[lease.Key][]int64{"acme": {1, 1}, "acme/x": {1, 1}, "acme/y": {1, 1}}, held)
	for i := range uint64(10) {
		r := ask("b", i, start, 0, "other/x")
		require.Equal(t, lease.Granted, turn(t, l, start, r).Answers[0].Answer.Outcome, "it is another's")
	}
}

// Keys that a careless join, fold or encoding would take for one another
// have a window each. Nothing is normalised.
func TestKeysThatLookAlikeAreLimitedApart(t *testing.T) {
	l := newLedger(t, `limits: [{key: "{a}", rules: [1/1m]}, {key: "{a}/{b}", rules: [1/1m]}, {key: "{a}/{b}/{c}", rules: [1/1m]}]`)
	pairs := []lease.Key{
		"a/bc", "ab/c", "a:b/d", "e/b:c", "f/g/h", "f g/h", "f%2Fg/h", "Case/x", "case/x", "caf\u00e9/x", "cafe\u0301/x",
		"\xff/x", "\xfe/x", "\ufffd/x", "i/\x00", "j/", "J/\x00\x00", "*/x", ">/x", "{a}/x",
	}
	granted := 0
	for i, k := range pairs {
		if _, err := lease.ParseKey(string(k)); err != nil {
			require.True(t, strings.HasSuffix(string(k), "/"), "%q", k)
			continue
		}
		a := turn(t, l, start, ask("a", uint64(i), start, 0, k)).Answers[0].Answer
		require.Equal(t, lease.Granted, a.Outcome, "%q", k)
		granted++
	}
	require.Equal(t, len(pairs)-1, granted)
	for i, k := range pairs {
		if _, err := lease.ParseKey(string(k)); err == nil {
			a := turn(t, l, start, ask("b", uint64(i), start, 0, k)).Answers[0].Answer
			require.ErrorIs(t, a.Refusal.Reason, lease.ErrLimit, "%q", k)
		}
	}
}

// A takeover has every number to the last digit, also those that no double
// holds.
func TestTakeoverIsExactBeyondDoubles(t *testing.T) {
	const limit = 999_999_999_999_937
	text := fmt.Sprintf("limits: [{key: k, rules: [%d/1d, %d/1d bucket, %d/1d fixed, %d/1d counter, %d concurrent]}]", limit, limit-2, limit-4, limit-6, limit)
	before := newLedger(t, text)
	now := start + 1_234_567_891
	r := ask("a", 9_007_199_254_740_993, now, 0, "k")
	r.ID.Holder.Incarnation = 18_446_744_073_709_551_557
	r.Need.Tokens, r.Want.Tokens = limit-10, limit-10
	r.Need.Slots, r.Want.Slots = limit-12, limit-12
	records := mirrored{}
	records.keep(turn(t, before, now, r))
	records.keep(turn(t, before, now+7, &lease.Report{Holder: r.ID.Holder, Sent: now.Sub(start) + 7, Counts: []lease.Count{
		{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: limit - 20, Age: 3}}, Returned: 1, Freed: limit - 30, Cut: 1},
	}}))
	after := newLedger(t, text)
	after.Turn(now+7, nil)
	after.Restore(records["k"])
	for _, later := range []time.Duration{0, time.Second, time.Hour, 23 * time.Hour} {
		want, got := before.Status(now.Add(7+later), ""), after.Status(now.Add(7+later), "")
		require.Equal(t, want.Keys, got.Keys, "%v later", later)
		require.Equal(t, want.Held, got.Held)
	}
	again := turn(t, after, now+8, r).Answers[0].Answer
	require.Equal(t, lease.Amount{Tokens: limit - 10, Slots: limit - 12}, again.Granted)
	require.Equal(t, r.ID, again.ID)
}

// TestReportOfWhatThePolicyNoLongerLimitsIsAnswered is B80: the slot of a call that ends
// after its rule has left the policy is nobody's trouble: its report is answered, and it
// is counted until it has ended.
func TestReportOfWhatThePolicyNoLongerLimitsIsAnswered(t *testing.T) {
	before := newLedger(t, `limits: [{key: old, rules: [10/1m, 1 concurrent]}, {key: new, rules: [10/1m]}]`)
	r := ask("a", 1, start, 0, "old")
	r.Need.Slots, r.Want.Slots = 1, 1
	records := mirrored{}
	records.keep(turn(t, before, start, r))
	after := newLedger(t, `limits: [{key: new, rules: [10/1m]}]`)
	after.Turn(start, nil)
	after.Restore(records["old"])
	require.Equal(t, 1, after.Summary(start).Leases)
	done := &lease.Report{Holder: r.ID.Holder, Heartbeat: true, Counts: []lease.Count{
		{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: 1}}, Freed: 1},
	}}
	require.Empty(t, after.Unloaded([]lease.Message{{Report: done}}))
	require.Empty(t, turn(t, after, start, done).Replies[0].Reply.Ended)
	require.Zero(t, after.Summary(start).Leases)
	require.Equal(t, []lease.ID{r.ID}, turn(t, after, start, done).Replies[0].Reply.Ended)
}

// TestRaisedLimitCountsNoRefusals is B47: of 50 that ask 10 are granted; when the limit
// becomes 20, there are 10 more at once, of this leader and of the next.
func TestRaisedLimitCountsNoRefusals(t *testing.T) {
	records, seq := mirrored{}, uint64(0)
	granted := func(l *lease.Ledger, times int) (n int) {
		for range times {
			seq++
			got := turn(t, l, start, ask("a", seq, start, 0, "k"))
			records.keep(got)
			if got.Answers[0].Answer.Outcome == lease.Granted {
				n++
			}
		}
		return n
	}
	for _, kind := range []string{"", " fixed", " bucket", " counter"} {
		clear(records)
		l := newLedger(t, limits("10/1h"+kind))
		require.Equal(t, 10, granted(l, 50), kind)
		raised := newLedger(t, limits("20/1h"+kind))
		raised.Turn(start, nil)
		raised.Restore(records["k"].Clone())
		require.Equal(t, 10, granted(raised, 15), kind)
		_, changed := l.Change(policy(t, limits("20/1h"+kind)), 0)
		require.True(t, changed)
		require.Equal(t, 10, granted(l, 15), kind)
	}
}

// TestWhatIsNotLimitedIsCounted is B92: unlimited grants all, and counts it; 0 refuses
// for good, and tells no time to wait.
func TestWhatIsNotLimitedIsCounted(t *testing.T) {
	l := newLedger(t, "limits: [{key: all, rules: [unlimited]}, {key: none, rules: [0/1s]}, {key: shut, rules: [0 concurrent]}]")
	for seq := range uint64(1000) {
		r := ask("a", seq, start, 0, "all")
		require.Equal(t, lease.Granted, turn(t, l, start, r).Answers[0].Answer.Outcome)
	}
	require.EqualValues(t, 1000, l.Stats().Granted)
	require.EqualValues(t, 1000, l.Status(start, "all").Keys[0].Holders[0].Held.Tokens)
	for _, k := range []lease.Key{"none", "shut"} {
		r := ask(string(k), 1, start, time.Hour, k)
		r.Want.Slots = 1
		refusal := turn(t, l, start, r).Answers[0].Answer.Refusal
		require.ErrorIs(t, refusal.Reason, lease.ErrNever)
		require.Zero(t, refusal.Wait)
	}
}
