package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// crossed limits users and routes, each by itself: no path has both.
const crossed = `limits:
  - {key: "t", rules: [100/10s]}
  - {key: "t/user/{u}", rules: [10/10s, 40/10s unit=w]}
  - {key: "t/route/{r}", rules: [6/10s, 3 concurrent, 50/10s bucket unit=w]}
`

// frees gives what is free of the first rule of each prefix.
func frees(l *lease.Ledger, at time.Duration) map[lease.Key]int64 {
	free := map[lease.Key]int64{}
	for _, k := range l.Status(start.Add(at), "").Keys {
		free[k.Key] = k.Windows[0].Free
	}
	return free
}

// TestOneRefusesForAllAndNothingIsTaken: whichever of the keys has too little, and in
// whatever order they are named, it is named by its prefix and rule, and no other key has
// lost anything.
func TestOneRefusesForAllAndNothingIsTaken(t *testing.T) {
	for _, keys := range [][]lease.Key{{"t/user/1", "t/route/r"}, {"t/route/r", "t/user/1"}, {"t/user/2", "t/route/r", "t/user/1"}} {
		l := newLedger(t, crossed)
		first := ask("a", 1, start, 0, "t/route/r")
		first.Need, first.Want = lease.Amount{Tokens: 4, Slots: 1}, lease.Amount{Tokens: 4, Slots: 1}
		turn(t, l, start, first)
		before := frees(l, 0)
		r := ask("b", 1, start, 0, keys...)
		r.Need, r.Want = lease.Amount{Tokens: 3, Slots: 1}, lease.Amount{Tokens: 3, Slots: 1}
		a := turn(t, l, start, r).Answers[0].Answer
		require.Equal(t, lease.Refused, a.Outcome)
		require.ErrorIs(t, a.Refusal.Reason, lease.ErrLimit)
		require.Equal(t, lease.Key("t/route/r"), a.Refusal.Key)
		require.Equal(t, "6/10s", a.Refusal.Rule)
		for k, free := range frees(l, 0) {
			if was, known := before[k]; known {
				require.Equal(t, was, free, "%s", k)
			} else {
				require.EqualValues(t, 10, free, "%s", k)
			}
		}
		rests(t, l, start)
	}
}

// TestKeyNamedTwiceOrWithItsPrefixIsChargedOnce.
func TestKeyNamedTwiceOrWithItsPrefixIsChargedOnce(t *testing.T) {
	for _, keys := range [][]lease.Key{
		{"t/user/1"}, {"t/user/1", "t/user/1"}, {"t/user/1", "t"}, {"t", "t/user/1"}, {"t/user/1/x", "t/user/1/y"},
	} {
		l := newLedger(t, crossed)
		r := ask("a", 1, start, 0, keys...)
		r.Need.Tokens, r.Want.Tokens = 7, 7
		require.NoError(t, r.Validate())
		require.Equal(t, lease.Granted, turn(t, l, start, r).Answers[0].Answer.Outcome)
		require.Equal(t, map[lease.Key]int64{"t": 93, "t/user/1": 3}, frees(l, 0), "%q", keys)
	}
}

// TestEachKeyHasToBeKnown: a key that no limit names is refused by name, though others
// beside it are limited; where the policy allows it, those bind alone.
func TestEachKeyHasToBeKnown(t *testing.T) {
	const text = `limits: [{key: t/user, rules: [5/1m]}, {key: t/route, rules: [unlimited]}]`
	l := newLedger(t, text)
	for i, keys := range [][]lease.Key{{"t/user/1", "t/rout/r"}, {"t/rout/r", "t/user/1"}, {"t/user/1", "t/route/r", "t/rout/r"}} {
		a := turn(t, l, start, ask("a", uint64(i+1), start, 0, keys...)).Answers[0].Answer
		require.Equal(t, lease.Refused, a.Outcome)
		require.Equal(t, lease.Refusal{Reason: lease.ErrUnknownKey, Key: "t/rout/r"}, a.Refusal)
	}
	require.Equal(t, lease.Granted, turn(t, l, start, ask("a", 9, start, 0, "t/user/1", "t/route/r")).Answers[0].Answer.Outcome)
	l = newLedger(t, text+"\nunknown: allow")
	require.Equal(t, lease.Granted, turn(t, l, start, ask("a", 1, start, 0, "t/rout/r", "t/user/1")).Answers[0].Answer.Outcome)
	require.EqualValues(t, 4, frees(l, 0)["t/user"])
}

// TestWantOfASlotNamesTheKeyThatHasTheRule.
func TestWantOfASlotNamesTheKeyThatHasTheRule(t *testing.T) {
	l := newLedger(t, crossed)
	a := turn(t, l, start, ask("a", 1, start, 0, "t/user/1", "t/route/r")).Answers[0].Answer
	require.Equal(t, lease.Refusal{Reason: lease.ErrNeedsSlot, Key: "t/route/r"}, a.Refusal)
}

// TestLeaseOnSeveralKeysIsRestoredAsItWas: whichever of its keys are loaded, and in
// whatever order, they are what they were before the takeover, and so is what becomes of
// them: a spend, a return, a slot, an overspend and the expiry move at every key.
func TestLeaseOnSeveralKeysIsRestoredAsItWas(t *testing.T) {
	keys := []lease.Key{"t/user/1", "t/route/r", "t/user/2"}
	orders := [][]lease.Key{{"t", "t/user/1", "t/route/r", "t/user/2"}, {"t/user/2", "t/route/r", "t/user/1", "t"}, {"t/route/r", "t/user/1", "t", "t/user/2"}}
	for _, order := range orders {
		l, m := newLedger(t, crossed), mirrored{}
		r := ask("a", 1, start, 0, keys...)
		r.Want = lease.Amount{Tokens: 5, Slots: 2, Units: lease.Units{{Unit: "w", N: 12}}}
		r.Need = r.Want
		m.keep(turn(t, l, start, r))
		told := &lease.Report{Holder: r.ID.Holder, Sent: time.Second, Counts: []lease.Count{{
			ID: r.ID, Keys: keys, Points: []lease.Point{{Count: 2, Units: lease.Units{{Unit: "w", N: 3}}}}, Returned: 1,
		}}}
		m.keep(turn(t, l, start.Add(time.Second), told))

		next := newLedger(t, crossed)
		next.Start(lease.Start{Epoch: 2, Instant: start.Add(time.Second)})
		for _, k := range order {
			next.Restore(m[k])
		}
		for _, at := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 12 * time.Second, time.Minute, 2 * time.Minute} {
			now := start.Add(at)
			var in []any
			if at == 2*time.Second {
				in = append(in, &lease.Report{Holder: r.ID.Holder, Sent: at, Heartbeat: true, Counts: []lease.Count{{
					ID: r.ID, Keys: keys, Points: []lease.Point{{Count: 3, Units: lease.Units{{Unit: "w", N: 9}}}}, Returned: 1, Freed: 1, Over: 1,
				}}})
			}
			turn(t, l, now, in...)
			turn(t, next, now, in...)
			was, is := l.Status(now, ""), next.Status(now, "")
			require.Equal(t, was.Keys, is.Keys, "loaded as %q, after %v", order, at)
			require.Equal(t, was.Held, is.Held)
		}
		rests(t, next, start.Add(2*time.Minute))
	}
}

// TestRecallNamesAllKeysOfTheLeasesItIsOf: what others wait for may be at any of them,
// and leases on other keys beside the same one are not of the same stock.
func TestRecallNamesAllKeysOfTheLeasesItIsOf(t *testing.T) {
	l := newLedger(t, crossed)
	slotted := func(holder string, seq uint64, n int64, patience time.Duration, keys ...lease.Key) *lease.Request {
		r := ask(holder, seq, start, patience, keys...)
		r.Need = lease.Amount{Tokens: n, Slots: 1}
		r.Want = r.Need
		return r
	}
	turn(t, l, start,
		slotted("a", 1, 2, 0, "t/user/1", "t/route/r"),
		slotted("a", 2, 2, 0, "t/user/1", "t/route/r"),
		slotted("a", 3, 2, 0, "t/user/1", "t/route/s"),
		slotted("b", 1, 2, 0, "t/user/1", "t/route/r", "t/user/3"))
	waits := turn(t, l, start, slotted("c", 1, 1, time.Minute, "t/user/2", "t/route/r"))
	require.Equal(t, []lease.Recall{
		{Holder: lease.Holder{Name: "a", Incarnation: 1}, Key: "t/user/1", More: []lease.Key{"t/route/r"}, Slots: 1},
		{Holder: lease.Holder{Name: "b", Incarnation: 1}, Key: "t/user/1", More: []lease.Key{"t/route/r", "t/user/3"}},
	}, waits.Recalls)
	require.True(t, waits.Recalls[0].On([]lease.Key{"t/user/1", "t/route/r"}))
	require.False(t, waits.Recalls[0].On([]lease.Key{"t/user/1", "t/route/s"}))
	require.False(t, waits.Recalls[0].On([]lease.Key{"t/user/1"}))

	acted(t, l, start, lease.Act{Verb: lease.VerbPause, Key: "t/route/r"})
	paused := turn(t, l, start.Add(time.Second))
	require.Equal(t, []lease.Recall{
		{Holder: lease.Holder{Name: "a", Incarnation: 1}, Key: "t/user/1", More: []lease.Key{"t/route/r"}, Slots: 2},
		{Holder: lease.Holder{Name: "b", Incarnation: 1}, Key: "t/user/1", More: []lease.Key{"t/route/r", "t/user/3"}, Slots: 1},
	}, paused.Recalls)
}
