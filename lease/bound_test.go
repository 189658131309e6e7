package lease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// bounded gives a ledger whose bounds are changed from the defaults.
func bounded(t testing.TB, text string, change func(*lease.Config)) *lease.Ledger {
	t.Helper()
	c := lease.DefaultConfig()
	change(&c)
	require.NoError(t, c.Validate())
	return lease.NewLedger(policy(t, text), c)
}

// refusedFor requires that the only answer of the turn is such a refusal.
func refusedFor(t testing.TB, reason error, rule string, got *lease.Turn) {
	t.Helper()
	require.Len(t, got.Answers, 1)
	require.Equal(t, lease.Refused, got.Answers[0].Answer.Outcome)
	f := got.Answers[0].Answer.Refusal
	require.ErrorIs(t, f.Reason, reason)
	require.Equal(t, rule, f.Rule)
}

func granted(t testing.TB, got *lease.Turn) lease.Answer {
	t.Helper()
	require.Len(t, got.Answers, 1)
	require.Equal(t, lease.Granted, got.Answers[0].Answer.Outcome, "%v", got.Answers[0].Answer.Refusal)
	return got.Answers[0].Answer
}

// spent reports a lease of one token as spent.
func spent(a lease.Answer, keys ...lease.Key) *lease.Report {
	return &lease.Report{Holder: a.ID.Holder, Counts: []lease.Count{{ID: a.ID, Keys: keys, Points: []lease.Point{{Count: 1}}}}}
}

// TestKeysBeyondTheBoundAreRefusedAndChargedOnesStay: no flood of new keys gives
// anybody a fresh window, and keys in use go on.
func TestKeysBeyondTheBoundAreRefusedAndChargedOnesStay(t *testing.T) {
	l := bounded(t, `limits: [{key: "{t}/{k}", rules: [2/1h]}]`, func(c *lease.Config) { c.Keys = 20 })
	now, seq := start, uint64(0)
	try := func(key lease.Key) *lease.Turn {
		seq++
		now++
		got := turn(t, l, now, ask("a", seq, now, 0, key))
		if a := got.Answers[0].Answer; a.Outcome == lease.Granted {
			turn(t, l, now, spent(a, key))
		}
		return got
	}
	granted(t, try("flood/charged"))
	for i := range 17 {
		granted(t, try(lease.Key(fmt.Sprintf("flood/%d", i))))
	}
	refusedFor(t, lease.ErrTooManyKeys, "at most 18 keys of one tenant", try("flood/new"))
	for i := range 200 {
		refusedFor(t, lease.ErrTooManyKeys, "at most 18 keys of one tenant", try(lease.Key(fmt.Sprintf("flood/new%d", i))))
	}
	granted(t, try("other/1"))
	granted(t, try("other/2"))
	refusedFor(t, lease.ErrTooManyKeys, "at most 20 keys", try("other/3"))

	granted(t, try("flood/charged"))
	refusedFor(t, lease.ErrLimit, "2/1h", try("flood/charged"))
	require.Equal(t, 20, l.Summary(now).Live, "who is refused leaves no key")
	for range 130 {
		now = now.Add(time.Second)
		turn(t, l, now)
	}
	require.Equal(t, 20, l.Summary(now).Live, "all are charged")
	refusedFor(t, lease.ErrLimit, "2/1h", try("flood/charged"))

	now = now.Add(time.Hour)
	for range 130 {
		now = now.Add(time.Second)
		turn(t, l, now)
	}
	require.Zero(t, l.Summary(now).Live)
	granted(t, try("flood/new"))
}

// TestKeysWithWaitersCount: what a waiter stands at is in memory, though nothing
// of it was taken yet.
func TestKeysWithWaitersCount(t *testing.T) {
	l := bounded(t, `limits: [{key: "{t}", rules: [1/1h]}, {key: "{t}/{k}", rules: [2/1h]}]`, func(c *lease.Config) { c.Keys = 4 })
	granted(t, turn(t, l, start, ask("a", 1, start, 0, "t/x")))
	require.Empty(t, turn(t, l, start, ask("a", 2, start, 2*time.Hour, "t/y")).Answers)
	refusedFor(t, lease.ErrTooManyKeys, "at most 4 keys", turn(t, l, start, ask("a", 1, start, 2*time.Hour, "u/y")))
}

// TestHoldersBeyondTheBoundAreRefused, clearly and without being noted, while
// those who are known go on. What such a one gives up is not acknowledged: it
// could not be remembered.
func TestHoldersBeyondTheBoundAreRefused(t *testing.T) {
	l := bounded(t, `limits: [{key: "{t}", rules: [100/1h]}]`, func(c *lease.Config) { c.Holders = lease.Bound{Each: 2, All: 3} })
	known := granted(t, turn(t, l, start, ask("a", 1, start, 0, "t")))
	granted(t, turn(t, l, start, ask("b", 1, start, 0, "t")))
	const rule = "at most 2 holders of one tenant, 3 in all"
	for i := range 50 {
		refusedFor(t, lease.ErrTooManyHolders, rule, turn(t, l, start, ask(fmt.Sprint(i), 1, start, 0, "t")))
	}
	granted(t, turn(t, l, start, ask("a", 1, start, 0, "u")))
	refusedFor(t, lease.ErrTooManyHolders, rule, turn(t, l, start, ask("b", 1, start, 0, "u")))

	stranger := lease.ID{Holder: lease.Holder{Name: "new", Incarnation: 1}, Seq: 7}
	given := &lease.Report{Holder: stranger.Holder, GivenUp: []lease.GivenUp{{ID: stranger, Keys: []lease.Key{"t"}}}}
	require.Empty(t, turn(t, l, start, given).Replies[0].Reply.Acknowledged)
	require.EqualValues(t, 52, l.Stats().HoldersRefused, "each request and the report")
	granted(t, turn(t, l, start, ask("a", 2, start, 0, "t")))
	turn(t, l, start, spent(known, "t"))

	now := start
	for range 200 { // leases expire, ids and then holders are forgotten
		now = now.Add(time.Second)
		turn(t, l, now)
	}
	require.Equal(t, []lease.ID{stranger}, turn(t, l, now, given).Replies[0].Reply.Acknowledged)
	late := ask("new", 7, now, 0, "t")
	late.Sent = 0
	require.Equal(t, lease.Ended, turn(t, l, now, late).Answers[0].Answer.Outcome, "it was given up")
}

// TestLeasesBeyondTheBoundAreRefused: of one holder, of one tenant, and in all.
func TestLeasesBeyondTheBoundAreRefused(t *testing.T) {
	l := bounded(t, `{unknown: allow, limits: [{key: "k", rules: [100/1h]}]}`, func(c *lease.Config) { c.Leases = lease.Bound{Each: 4, All: 10} })
	seq := uint64(0)
	try := func(holder string, key lease.Key) *lease.Turn {
		seq++
		return turn(t, l, start, ask(holder, seq, start, 0, key))
	}
	first := granted(t, try("a", "t/free"))
	for range 3 {
		granted(t, try("a", "t/free"))
	}
	refusedFor(t, lease.ErrTooManyLeases, "at most 4 leases of one holder", try("a", "t/free"))
	for range 4 {
		granted(t, try("b", "t/free"))
	}
	granted(t, try("c", "t/free"))
	refusedFor(t, lease.ErrTooManyLeases, "at most 9 leases of one tenant", try("c", "t/free"))
	granted(t, try("a", "u/free"))
	refusedFor(t, lease.ErrTooManyLeases, "at most 10 leases", try("a", "u/free"))
	turn(t, l, start, spent(first, "t/free"))
	granted(t, try("a", "t/free"))
}

// TestWaitersBeyondTheBoundAreRefused, on whatever keys; when one leaves another
// may wait.
func TestWaitersBeyondTheBoundAreRefused(t *testing.T) {
	l := bounded(t, `limits: [{key: "{t}/{k}", rules: [1/1h]}]`, func(c *lease.Config) { c.Waiters = lease.Bound{Each: 3, All: 5} })
	for i := range 8 {
		key := lease.Key(fmt.Sprintf("t/%d", i))
		turn(t, l, start, spent(granted(t, turn(t, l, start, ask("z", uint64(i), start, 0, key))), key))
	}
	wait := func(holder string, seq uint64) *lease.Turn {
		return turn(t, l, start, ask(holder, seq, start, 2*time.Hour, lease.Key(fmt.Sprintf("t/%d", seq))))
	}
	for seq := range uint64(3) {
		require.Empty(t, wait("a", seq).Answers)
	}
	refusedFor(t, lease.ErrTooManyWaiters, "at most 3 waiting requests of one holder", wait("a", 3))
	require.Empty(t, wait("b", 4).Answers)
	require.Empty(t, wait("b", 5).Answers)
	refusedFor(t, lease.ErrTooManyWaiters, "at most 5 waiting requests of one tenant", wait("c", 6))
	turn(t, l, start, &lease.Report{Holder: lease.Holder{Name: "b", Incarnation: 1},
		GivenUp: []lease.GivenUp{{ID: lease.ID{Holder: lease.Holder{Name: "b", Incarnation: 1}, Seq: 5}, Keys: []lease.Key{"t/5"}}}})
	require.Empty(t, wait("c", 7).Answers)
}

// TestGivenUpIDsAreNeverForgottenEarly: whoever names ids at random neither
// pushes out those of others, nor is ever granted one of its own that it gave up.
func TestGivenUpIDsAreNeverForgottenEarly(t *testing.T) {
	l := bounded(t, `limits: [{key: "t", rules: [100000/1h]}]`, func(c *lease.Config) { c.IDs = lease.Bound{Each: 50, All: 500} })
	id := func(name string, seq uint64) lease.ID {
		return lease.ID{Holder: lease.Holder{Name: name, Incarnation: 1}, Seq: seq}
	}
	give := func(at algo.Instant, name string, seqs ...uint64) {
		r := &lease.Report{Holder: id(name, 0).Holder, Sent: at.Sub(start)}
		for _, seq := range seqs {
			r.GivenUp = append(r.GivenUp, lease.GivenUp{ID: id(name, seq), Keys: []lease.Key{"t"}})
		}
		require.Len(t, turn(t, l, at, r).Replies[0].Reply.Acknowledged, len(seqs))
	}
	outcome := func(name string, seq uint64) lease.Outcome {
		return turn(t, l, start, ask(name, seq, start, 0, "t")).Answers[0].Answer.Outcome
	}
	give(start, "honest", 3, 5)
	var seqs []uint64
	for i := range uint64(5000) { // downwards, which no holder numbers
		seqs = append(seqs, 5000-i)
	}
	for i := 0; i < len(seqs); i += 100 {
		give(start, "flood", seqs[i:i+100]...)
	}
	for name := range 100 { // and as many holders as there are ids for
		give(start, fmt.Sprintf("flood%d", name), 1, 2, 3, 4, 5, 6, 7, 8, 9)
	}
	for seq := range uint64(5001) {
		require.Equal(t, lease.Ended, outcome("flood", seq), "%d: given up, or below one that was", seq)
	}
	require.Equal(t, lease.Granted, outcome("flood", 5001))
	require.Equal(t, lease.Ended, outcome("flood99", 9))
	require.Equal(t, lease.Granted, outcome("flood99", 10))
	require.Equal(t, lease.Ended, outcome("honest", 3))
	require.Equal(t, lease.Ended, outcome("honest", 5))
	require.Equal(t, lease.Granted, outcome("honest", 4), "nobody gave it up")
	require.Greater(t, l.Stats().IDsFolded, int64(4000))
	require.Positive(t, l.Stats().AnsweredFolded)
}

// TestRefusalsAreAnsweredAlikeAgain, to a copy that comes late.
func TestRefusalsAreAnsweredAlikeAgain(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "t", rules: [1/1h]}]`), lease.DefaultConfig())
	granted(t, turn(t, l, start, ask("a", 1, start, 0, "t")))
	r := ask("b", 1, start, 0, "t")
	first := turn(t, l, start, r).Answers[0].Answer
	require.Equal(t, lease.Refused, first.Outcome)
	require.Equal(t, first, turn(t, l, start.Add(time.Second), r).Answers[0].Answer)
}
