package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// doubtful gives a ledger that began at an instant under doubts, and what a ledger before
// it had recorded of k under epoch 1: 4 of 10 tokens and one of 2 slots are held.
func doubtful(t *testing.T, lost, lagged lease.Doubt) (l *lease.Ledger, holds *lease.Request, record lease.Record) {
	t.Helper()
	p := policy(t, `limits: [{key: "{k}", rules: [10/1m, 2 concurrent]}]`)
	before := lease.NewLedger(p, lease.DefaultConfig())
	holds = ask("a", 4, start, 0, "k")
	holds.Need.Tokens, holds.Want.Tokens, holds.Need.Slots, holds.Want.Slots = 4, 4, 1, 1
	records := mirrored{}
	records.keep(turn(t, before, start, holds))
	l = lease.NewLedger(p, lease.DefaultConfig())
	l.Start(lease.Start{Epoch: 2, Instant: start, Lost: lost, Lagged: lagged})
	return l, holds, records["k"]
}

func free(t *testing.T, l *lease.Ledger, now algo.Instant) (tokens, slots int64) {
	t.Helper()
	k := l.Status(now, "k").Keys
	require.Len(t, k, 1)
	return k[0].Windows[0].Free, k[0].Windows[1].Free
}

// TestRecordOfAnEarlierEpochThanTheLossIsNotTrusted: it may be older than it was, so its
// key is full, and so is one without a record; one of a later epoch is as it says.
func TestRecordOfAnEarlierEpochThanTheLossIsNotTrusted(t *testing.T) {
	for written, want := range map[uint64]int64{0: 0, 1: 0, 2: 6, 3: 6} {
		l, _, record := doubtful(t, lease.Doubt{Epoch: 2, At: start}, lease.Doubt{})
		if record.Written = written; written == 0 {
			record = lease.Record{Key: "k"}
		}
		l.Restore(record)
		l.Turn(start, nil)
		tokens, _ := free(t, l, start)
		require.Equal(t, want, tokens, "written under %d", written)
	}
}

// TestKeyThatMayLackTheLatestGrantsNothingAtFirst: until ledger time is past all that the
// mirror can lack; then it is charged with what its tightest rule could have granted.
func TestKeyThatMayLackTheLatestGrantsNothingAtFirst(t *testing.T) {
	l, _, record := doubtful(t, lease.Doubt{}, lease.Doubt{Epoch: 2, At: start, Lag: 2 * time.Second})
	l.Restore(record)
	one := func(seq uint64, now algo.Instant) lease.Outcome {
		r := ask("b", seq, now, 0, "k")
		r.Need.Slots, r.Want.Slots = 1, 1
		return turn(t, l, now, r).Answers[0].Answer.Outcome
	}
	require.Equal(t, lease.Refused, one(1, start))
	require.Equal(t, lease.Refused, one(2, start.Add(2*time.Second)))
	require.Equal(t, lease.Refused, one(3, start.Add(2*time.Second+2)), "the rest is charged")
	tokens, slots := free(t, l, start.Add(2*time.Second+2))
	require.Zero(t, tokens)
	require.Zero(t, slots)
	require.Equal(t, int64(1), l.Status(start, "").Stats.Charged)
	require.Equal(t, lease.Granted, one(4, start.Add(2*time.Minute)), "a minute after those leases have ended")
}

// TestNothingComesBackOfAStaleLease: what its holder gives back may have come back
// before, and be another's since; its spends count.
func TestNothingComesBackOfAStaleLease(t *testing.T) {
	l, holds, record := doubtful(t, lease.Doubt{}, lease.Doubt{Epoch: 2, At: start, Lag: time.Second})
	l.Restore(record)
	id := holds.ID
	reply := turn(t, l, start+1, &lease.Report{Holder: id.Holder, Heartbeat: true, Counts: []lease.Count{
		{ID: id, Keys: holds.Keys, Points: []lease.Point{{Count: 1}}, Returned: 3, Freed: 1},
	}}).Replies[0].Reply
	require.Empty(t, reply.Ended)
	k := l.Status(start+1, "k").Keys[0]
	require.Equal(t, int64(3), k.Windows[0].Held)
	require.Equal(t, int64(1), k.Windows[0].Spent)
	require.Equal(t, int64(1), k.Windows[1].Held)
	gone := turn(t, l, start+2, &lease.Report{Holder: id.Holder, GivenUp: []lease.GivenUp{{ID: id, Keys: holds.Keys}}}).Replies[0].Reply
	require.Equal(t, []lease.ID{id}, gone.Acknowledged)
	require.Equal(t, int64(3), l.Status(start+2, "k").Keys[0].Windows[0].Held, "it is left to expire")
	require.Equal(t, lease.Ended, turn(t, l, start+3, holds).Answers[0].Answer.Outcome, "and granted to nobody again")
	l.Turn(start.Add(20*time.Second), nil)
	require.Zero(t, l.Status(start.Add(20*time.Second), "").Leases)
}

// TestWhatComesBackInTheLagMayHaveBeenGranted: ledger time may be behind the turns that the
// mirror lacks, and what they granted came back before; so it is charged too.
func TestWhatComesBackInTheLagMayHaveBeenGranted(t *testing.T) {
	p := policy(t, `limits: [{key: "{k}", rules: [10/1m]}]`)
	before := lease.NewLedger(p, lease.DefaultConfig())
	early := start.Add(-59 * time.Second) // comes back a second after start
	r := ask("a", 10, early, 0, "k")
	r.Need.Tokens, r.Want.Tokens = 10, 10
	records := mirrored{}
	records.keep(turn(t, before, early, r))
	records.keep(turn(t, before, early+1, &lease.Report{Holder: r.ID.Holder, Counts: []lease.Count{
		{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: 10}}},
	}}))
	l := lease.NewLedger(p, lease.DefaultConfig())
	l.Start(lease.Start{Epoch: 2, Instant: start, Lagged: lease.Doubt{Epoch: 2, At: start, Lag: 2 * time.Second}})
	l.Restore(records["k"])
	for i, later := range []time.Duration{0, 1500 * time.Millisecond, 2*time.Second + 2, 30 * time.Second} {
		now := start.Add(later)
		got := turn(t, l, now, ask("b", uint64(i), now, 0, "k")).Answers[0].Answer
		require.Equal(t, lease.Refused, got.Outcome, "%v later", later)
	}
}

// TestEachWindowIsChargedWithAllThatItMayLack: a second has 5 free at most, however much was
// granted in the lag, and the hour remembers all of that. What leases may hold is charged
// when they have ended.
func TestEachWindowIsChargedWithAllThatItMayLack(t *testing.T) {
	p := policy(t, `limits: [{key: "{k}", rules: [5/1s, 60/1h]}]`)
	for name, spent := range map[string]int64{"nothing is spent": 0, "the second is used up": 5} {
		before := lease.NewLedger(p, lease.DefaultConfig())
		r := ask("a", 10, start, 0, "k")
		r.Need.Tokens, r.Want.Tokens = 5, 5
		records := mirrored{}
		records.keep(turn(t, before, start, r))
		records.keep(turn(t, before, start+1, &lease.Report{Holder: r.ID.Holder, Counts: []lease.Count{
			{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: spent}}, Returned: 5 - spent},
		}}))
		l := lease.NewLedger(p, lease.DefaultConfig())
		const lag = 10 * time.Second
		l.Start(lease.Start{Epoch: 2, Instant: start + 1, Lagged: lease.Doubt{Epoch: 2, At: start + 1, Lag: lag}})
		record := records["k"]
		record.Key = "k"
		l.Restore(record)
		granted := int64(0)
		for later := time.Duration(0); later < 2*time.Minute; later += time.Second {
			now := start.Add(later + 2)
			r := ask("b", uint64(later), now, 0, "k")
			r.Want.Tokens = 5
			if a := turn(t, l, now, r).Answers[0].Answer; a.Outcome == lease.Granted {
				granted += a.Granted.Tokens
			}
		}
		require.LessOrEqual(t, spent+50+granted, int64(60), "%s: 50 were granted in the lag", name)
	}
}

// TestLeaseThatAPrefixForgotIsNotRenewed: x and x/a both have a lease of 2 slots, and the
// record of one of them is spoilt or lost. That prefix is full for a slot TTL; then the
// lease is over, whatever its holder says meanwhile, and all of it is free to others. A
// lease that no prefix forgot is renewed.
func TestLeaseThatAPrefixForgotIsNotRenewed(t *testing.T) {
	spoilt := func(r *lease.Record) { *r = lease.Record{Key: r.Key, Damaged: errors.New("spoilt")} }
	for name, c := range map[string]struct {
		harm    func(x, child *lease.Record)
		lost    lease.Doubt
		renewed bool
	}{
		"none":            {func(x, child *lease.Record) {}, lease.Doubt{}, true},
		"x is spoilt":     {func(x, child *lease.Record) { spoilt(x) }, lease.Doubt{}, false},
		"x/a is spoilt":   {func(x, child *lease.Record) { spoilt(child) }, lease.Doubt{}, false},
		"x is older":      {func(x, child *lease.Record) { child.Written = 2 }, lease.Doubt{Epoch: 2, At: start}, false},
		"x is not there":  {func(x, child *lease.Record) { *x, child.Written = lease.Record{Key: "x"}, 2 }, lease.Doubt{Epoch: 2, At: start}, false},
		"both were saved": {func(x, child *lease.Record) { x.Written, child.Written = 2, 2 }, lease.Doubt{Epoch: 2, At: start}, true},
	} {
		for _, first := range []lease.Key{"x", "x/a"} {
			t.Run(name+", first "+string(first), func(t *testing.T) {
				p := policy(t, `limits: [{key: x, rules: [4 concurrent]}, {key: "x/{k}", rules: [4 concurrent]}]`)
				slot := func(holder string, seq uint64, at algo.Instant, n int64, k lease.Key) *lease.Request {
					r := ask(holder, seq, at, 0, k)
					r.Need, r.Want = lease.Amount{Slots: n}, lease.Amount{Slots: n}
					return r
				}
				holds := slot("a", 1, start, 2, "x/a")
				records := mirrored{}
				records.keep(turn(t, lease.NewLedger(p, lease.DefaultConfig()), start, holds))
				x, child := records["x"], records["x/a"]
				require.Len(t, x.Batches, 1)
				require.Len(t, child.Batches, 1)
				c.harm(&x, &child)
				l := lease.NewLedger(p, lease.DefaultConfig())
				l.Start(lease.Start{Epoch: 3, Instant: start, Lost: c.lost})
				if l.Restore(map[lease.Key]lease.Record{"x": x, "x/a": child}[first]); first == "x" {
					l.Restore(child)
				} else {
					l.Restore(x)
				}
				var now algo.Instant
				for now = start.Add(time.Second); now < start.Add(2*lease.DefaultConfig().SlotTTL); now = now.Add(time.Second) {
					reply := turn(t, l, now, &lease.Report{Holder: holds.ID.Holder, Sent: now.Sub(start), Heartbeat: true, Counts: []lease.Count{
						{ID: holds.ID, Keys: holds.Keys},
					}}).Replies[0].Reply
					require.Equal(t, c.renewed, len(reply.Renewed) == 1, "at %v", now.Sub(start))
				}
				all := turn(t, l, now, slot("b", 1, now, 4, "x/b")).Answers[0].Answer
				leases := l.Status(now, "").Leases
				require.Equal(t, 1, leases, "the one that was, or a new one")
				require.Equal(t, c.renewed, all.Outcome == lease.Refused)
			})
		}
	}
}

// TestWhatIsRecordedInDoubtIsNotDoubtedMore: a mirror has lost all, and later its tail. What a
// key had recorded between these, and what it was charged while it could not grant, is known
// to each leader that follows.
func TestWhatIsRecordedInDoubtIsNotDoubtedMore(t *testing.T) {
	p := policy(t, "limits: [{key: k, rules: [10/1m]}]")
	lost, records := lease.Doubt{Epoch: 2, At: start}, mirrored{}
	lead := func(epoch uint64, at algo.Instant, lagged lease.Doubt) *lease.Ledger {
		l := lease.NewLedger(p, lease.DefaultConfig())
		l.Start(lease.Start{Epoch: epoch, Instant: at, Lost: lost, Lagged: lagged, Revision: 1, Recorded: true})
		if r, ok := records["k"]; ok {
			l.Restore(r.Clone())
		}
		return l
	}
	keep := func(l *lease.Ledger, epoch uint64, turn *lease.Turn) {
		turn.Epoch.Number = epoch
		records.keep(turn)
	}
	at := start.Add(2 * time.Minute)
	l := lead(3, at, lease.Doubt{})
	l.Restore(lease.Record{Key: "k"})
	r := taking(1, 4, at, "k")
	keep(l, 3, turn(t, l, at, r))
	keep(l, 3, turn(t, l, at, spending(r, 4)))
	lagged := lease.Doubt{Epoch: 4, At: at, Lag: 2 * time.Second}
	l = lead(4, at, lagged)
	_, err := l.Act(at, 0, lease.Act{Verb: lease.VerbCharge, Key: "k", ID: "c", N: 3})
	require.NoError(t, err)
	keep(l, 4, turn(t, l, at))
	require.Equal(t, uint64(3), records["k"].Written)
	l = lead(5, at+1, lagged)
	require.Equal(t, int64(7), window(t, l, at+1, "k").Spent)
	refused := turn(t, l, at.Add(time.Second), taking(2, 1, at.Add(time.Second), "k")).Answers[0].Answer
	require.Equal(t, lease.Refused, refused.Outcome, "the tail of the mirror may be lost")

	// What was lost before may have been granted in the tail too.
	delete(records, "k")
	l = lead(4, at, lagged)
	l.Restore(lease.Record{Key: "k"})
	refused = turn(t, l, at+1, taking(3, 1, at+1, "k")).Answers[0].Answer
	require.Equal(t, lease.Refused, refused.Outcome)
}

// TestResetForgetsWhatTheMirrorMayLack: when the leases have ended that it may have forgotten,
// what they may have spent is forgotten with the rest. What they may hold is held.
func TestResetForgetsWhatTheMirrorMayLack(t *testing.T) {
	for after, want := range map[time.Duration]lease.Outcome{3 * time.Second: lease.Refused, 12 * time.Second: lease.Granted} {
		l, _, record := doubtful(t, lease.Doubt{}, lease.Doubt{Epoch: 2, At: start, Lag: 2 * time.Second})
		l.Restore(record)
		now := start.Add(after)
		l.Turn(now, nil)
		acted, err := l.Act(now, 0, lease.Act{Verb: lease.VerbReset, Key: "k"})
		require.NoError(t, err)
		require.Equal(t, 1, acted.Reset)
		l.Turn(now, nil)
		r := ask("b", 1, now, 0, "k")
		r.Need = lease.Amount{Tokens: 10, Slots: 2}
		if r.Want = r.Need; want == lease.Refused {
			r.Need.Tokens, r.Need.Slots = 1, 1
		}
		require.Equal(t, want, turn(t, l, now, r).Answers[0].Answer.Outcome, "%v after", after)
		again, err := l.Act(now, 0, lease.Act{Verb: lease.VerbReset, Key: "k"})
		require.NoError(t, err)
		require.Zero(t, again.Reset)
	}
}

// TestKeyInDoubtThatNobodyAsksForIsLetGoOf, when all has come back that the mirror may lack; and
// who asks for one then has all of it.
func TestKeyInDoubtThatNobodyAsksForIsLetGoOf(t *testing.T) {
	const doubted = 2 * time.Minute
	later := start.Add(doubted)
	for _, asked := range []bool{false, true} {
		l, _, record := doubtful(t, lease.Doubt{}, lease.Doubt{Epoch: 2, At: start, Lag: 2 * time.Second})
		l.Restore(record)
		for now := start; now.Before(later); now = now.Add(time.Second) {
			l.Turn(now, nil)
		}
		l.Trust()
		if asked {
			r := ask("b", 1, later, 0, "k")
			r.Need = lease.Amount{Tokens: 10, Slots: 2}
			r.Want = r.Need
			require.Equal(t, lease.Granted, turn(t, l, later, r).Answers[0].Answer.Outcome)
			continue
		}
		require.Equal(t, 1, l.Status(later, "").Live)
		for now := later; now.Before(later.Add(2 * lease.DefaultConfig().Memory)); now = now.Add(time.Second) {
			l.Turn(now, nil)
		}
		require.Zero(t, l.Status(later, "").Live)
	}
}
