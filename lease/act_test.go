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

func acted(t *testing.T, l *lease.Ledger, now algo.Instant, a lease.Act) lease.Acted {
	t.Helper()
	require.NoError(t, a.Validate())
	done, err := l.Act(now, now, a)
	require.NoError(t, err)
	return done
}

// TestPauseIsKeptForAsLongAsItLasts: no broom takes the record of a pause without an end, nor of
// one that lasts longer than any window.
func TestPauseIsKeptForAsLongAsItLasts(t *testing.T) {
	for _, lasts := range []time.Duration{0, 50 * 24 * time.Hour} {
		l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/1s]}]`), lease.DefaultConfig())
		for _, key := range []lease.Key{"k", "bare"} {
			acted(t, l, start, lease.Act{Verb: lease.VerbPause, Key: key, For: lasts})
		}
		changes := turn(t, l, start).Changes
		require.Len(t, changes, 2)
		for _, c := range changes {
			require.True(t, c.Paused)
			if lasts == 0 {
				lasts = 200 * 365 * 24 * time.Hour
			}
			require.GreaterOrEqual(t, c.Keep, lasts, "%s", c.Key)
		}
	}
}

// TestPauseWhoseTimeIsOverLeavesNothing: of a key that no limit names, neither in memory nor in
// the mirror.
func TestPauseWhoseTimeIsOverLeavesNothing(t *testing.T) {
	records := mirrored{}
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/1s]}]`), lease.DefaultConfig())
	acted(t, l, start, lease.Act{Verb: lease.VerbPause, Key: "bare/x", For: time.Minute})
	records.keep(turn(t, l, start))
	require.Len(t, records, 1)
	for range 200 {
		at, ok := l.Next()
		if !ok {
			break
		}
		records.keep(turn(t, l, at))
	}
	require.Empty(t, records)
	require.Zero(t, l.Summary(start).Live)
}

// TestPauseBindsAKeyThatNothingLimits: under a policy that grants such, and by whichever of its
// keys a request is below it.
func TestPauseBindsAKeyThatNothingLimits(t *testing.T) {
	l := lease.NewLedger(policy(t, "unknown: allow\nlimits: [{key: k, rules: [10/1s]}]"), lease.DefaultConfig())
	acted(t, l, start, lease.Act{Verb: lease.VerbPause, Key: "t/x"})
	seq := uint64(0)
	ask := func(keys ...lease.Key) error {
		seq++
		return turn(t, l, start, ask("a", seq, start, 0, keys...)).Answers[0].Answer.Refusal.Reason
	}
	require.ErrorIs(t, ask("t/x"), lease.ErrPaused)
	require.ErrorIs(t, ask("t/x/y/z"), lease.ErrPaused)
	require.ErrorIs(t, ask("t/y", "t/x/y"), lease.ErrPaused)
	require.NoError(t, ask("t"))
	require.NoError(t, ask("t/xy"))
	require.NoError(t, ask("t/y"))
	acted(t, l, start, lease.Act{Verb: lease.VerbResume, Key: "t/x"})
	require.NoError(t, ask("t/x"))
}

// TestPauseOfWhatNothingNamesKeepsUnknownKeysUnknown: they are refused as such.
func TestPauseOfWhatNothingNamesKeepsUnknownKeysUnknown(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/1s]}]`), lease.DefaultConfig())
	acted(t, l, start, lease.Act{Verb: lease.VerbPause, Key: "other"})
	a := turn(t, l, start, ask("a", 1, start, time.Hour, "other/x")).Answers
	require.ErrorIs(t, a[0].Answer.Refusal.Reason, lease.ErrUnknownKey)
}

// TestPauseKeepsTheLineOfOthersShort: those who wait for it hold nothing, and take no places, at
// the prefixes that they share with others.
func TestPauseKeepsTheLineOfOthersShort(t *testing.T) {
	config := lease.DefaultConfig()
	config.Line = 3
	l := lease.NewLedger(policy(t, `limits: [{key: "{t}", rules: [10/1s]}, {key: "{t}/{s}", rules: [10/1s]}]`), config)
	for i := range uint64(3) {
		large := ask("a", 1+i, start, time.Hour, "t/x")
		large.Need.Tokens, large.Want.Tokens = 10, 10
		if i == 0 {
			require.Equal(t, lease.Granted, turn(t, l, start, large).Answers[0].Answer.Outcome)
			continue
		}
		require.Empty(t, turn(t, l, start, large).Answers, "it waits, and more is kept for it than comes back")
	}
	acted(t, l, start, lease.Act{Verb: lease.VerbPause, Key: "t/x"})
	turn(t, l, start, &lease.Report{Holder: lease.Holder{Name: "a", Incarnation: 1}, Counts: []lease.Count{
		{ID: lease.ID{Holder: lease.Holder{Name: "a", Incarnation: 1}, Seq: 1}, Keys: []lease.Key{"t/x"}, Returned: 5, Points: []lease.Point{{Count: 5}}},
	}})
	for i := range uint64(5) {
		a := turn(t, l, start, ask("b", 1+i, start, time.Hour, "t/y")).Answers
		require.Len(t, a, 1)
		require.Equal(t, lease.Granted, a[0].Answer.Outcome)
	}
	turn(t, l, start, ask("c", 1, start, time.Hour, "t/x"))
	full := turn(t, l, start, ask("c", 2, start, time.Hour, "t/x")).Answers
	require.ErrorIs(t, full[0].Answer.Refusal.Reason, lease.ErrLineFull, "as many wait for the pause as may")
	require.Empty(t, turn(t, l, start, ask("d", 1, start, time.Hour, "t/y")).Answers, "there is room in the line")
}

// TestWhoWasLiftedStandsInItsClassAfterAPause: the share that is kept for lower classes is of a
// line that it has left, and was given back there.
func TestWhoWasLiftedStandsInItsClassAfterAPause(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/1s bucket burst=1], line: {premium: 9, standard: 9, lower: 50%}}]`), lease.DefaultConfig())
	now, granted := start, []string{}
	step := func(in ...any) {
		for _, a := range turn(t, l, now, in...).Answers {
			require.Equal(t, lease.Granted, a.Answer.Outcome)
			granted = append(granted, a.Answer.ID.Holder.Name)
			turn(t, l, now, &lease.Report{Holder: a.Answer.ID.Holder, Counts: []lease.Count{
				{ID: a.Answer.ID, Keys: []lease.Key{"k"}, Points: []lease.Point{{Count: 1}}},
			}})
		}
	}
	of := func(class, name string) *lease.Request {
		r := ask(name, 1, now, time.Hour, "k")
		r.Class = class
		return r
	}
	step(of("premium", "a"))
	step(of("standard", "b"), of("premium", "c"))
	now = now.Add(101 * time.Millisecond)
	step()
	require.Equal(t, []string{"a", "c"}, granted)
	require.EqualValues(t, 1, l.Stats().Lifted, "what c was granted is credit for b")
	acted(t, l, now, lease.Act{Verb: lease.VerbPause, Key: "k"})
	step()
	acted(t, l, now, lease.Act{Verb: lease.VerbResume, Key: "k"})
	step(of("premium", "d"))
	for range 2 {
		now = now.Add(101 * time.Millisecond)
		step()
	}
	require.Equal(t, []string{"a", "c", "d", "b"}, granted)
}

// TestPauseThatIsResumedAtOnceChangesNothing: taken up in one turn, the two leave who stands in
// line there, and he is granted when time has freed what he needs.
func TestPauseThatIsResumedAtOnceChangesNothing(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1/1s]}]`), lease.DefaultConfig())
	turn(t, l, start, spent(granted(t, turn(t, l, start, ask("a", 1, start, 0, "k"))), "k"))
	require.Empty(t, turn(t, l, start, ask("b", 1, start, time.Hour, "k")).Answers)
	acted(t, l, start, lease.Act{Verb: lease.VerbPause, Key: "k"})
	acted(t, l, start, lease.Act{Verb: lease.VerbResume, Key: "k"})
	require.Empty(t, turn(t, l, start).Answers)
	for {
		now, _ := l.Next()
		require.Less(t, now, start.Add(2*time.Second), "he still waits")
		if a := turn(t, l, now).Answers; len(a) > 0 {
			require.Equal(t, lease.Granted, a[0].Answer.Outcome)
			return
		}
	}
}

// TestPauseEndsWhatIsKept: how long it was somebody's turn before the pause gives him nothing after
// it, since he goes to the end of the line.
func TestPauseEndsWhatIsKept(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/1m, 10/1m unit=u]}]`), lease.DefaultConfig())
	some := ask("a", 1, start, 0, "k")
	some.Need = lease.Amount{Tokens: 9, Units: lease.Units{of("u", 10)}}
	some.Want = some.Need
	a := granted(t, turn(t, l, start, some))
	turn(t, l, start, &lease.Report{Holder: a.ID.Holder, Counts: []lease.Count{
		{ID: a.ID, Keys: some.Keys, Points: []lease.Point{{Count: 9, Units: some.Need.Units}}},
	}})
	all := ask("b", 1, start, time.Hour, "k")
	all.Need = lease.Amount{Tokens: 10, Units: lease.Units{of("u", 10)}}
	all.Want = all.Need
	require.Empty(t, turn(t, l, start, all).Answers, "it lacks two things")
	now := start.Add(3 * time.Second)
	for at, _ := l.Next(); at < now; at, _ = l.Next() {
		require.Empty(t, turn(t, l, at).Answers)
	}
	require.Equal(t, lease.Refused, turn(t, l, now, ask("c", 1, now, 0, "k")).Answers[0].Answer.Outcome, "the last is kept by now")
	acted(t, l, now, lease.Act{Verb: lease.VerbPause, Key: "k"})
	turn(t, l, now)
	acted(t, l, now, lease.Act{Verb: lease.VerbResume, Key: "k"})
	turn(t, l, now)
	granted(t, turn(t, l, now, ask("c", 2, now, 0, "k")))
}

// TestPauseIsNoWaitInLine: with a line that sheds by time who waited for a pause has all of that
// time when it is over, and no more of it than others.
func TestPauseIsNoWaitInLine(t *testing.T) {
	config := lease.DefaultConfig()
	config.Silence = time.Minute
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1/1s], line: {one: 9, shed: 2s}}]`), config)
	acted(t, l, start, lease.Act{Verb: lease.VerbPause, Key: "k", For: 4 * time.Second})
	require.Empty(t, turn(t, l, start, ask("a", 1, start, time.Hour, "k"), ask("b", 1, start, time.Hour, "k"), ask("c", 1, start, time.Hour, "k")).Answers)
	over := start.Add(4 * time.Second)
	first := turn(t, l, over).Answers
	require.Len(t, first, 1)
	require.Equal(t, lease.Granted, first[0].Answer.Outcome)
	require.Empty(t, turn(t, l, over, spent(first[0].Answer, "k")).Answers)
	shed := 0
	for shed == 0 {
		now, _ := l.Next()
		for _, a := range turn(t, l, now).Answers {
			if a.Answer.Outcome == lease.Granted {
				require.Equal(t, "b", a.Answer.ID.Holder.Name)
				continue
			}
			shed++
			require.Equal(t, "c", a.Answer.ID.Holder.Name)
			require.ErrorIs(t, a.Answer.Refusal.Reason, lease.ErrShed)
			require.Equal(t, over.Add(2*time.Second), now)
		}
		require.LessOrEqual(t, now, over.Add(2*time.Second))
	}
}

// TestPauseThatEndsBeforeTheDeadlineRefusesNobody: however little before.
func TestPauseThatEndsBeforeTheDeadlineRefusesNobody(t *testing.T) {
	for _, c := range []struct {
		lasts time.Duration
		want  lease.Outcome
		at    time.Duration
	}{
		{9950 * time.Millisecond, lease.Granted, 9950 * time.Millisecond},
		{10*time.Second - 1, lease.Granted, 10*time.Second - 1},
		{10 * time.Second, lease.Refused, 9900 * time.Millisecond},
		{0, lease.Refused, 9900 * time.Millisecond},
	} {
		config := lease.DefaultConfig()
		config.Silence = time.Minute
		l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1/1s]}]`), config)
		acted(t, l, start, lease.Act{Verb: lease.VerbPause, Key: "k", For: c.lasts})
		require.Empty(t, turn(t, l, start, ask("a", 1, start, 10*time.Second, "k")).Answers)
		for {
			now, _ := l.Next()
			require.LessOrEqual(t, now, start.Add(c.at))
			if a := turn(t, l, now).Answers; len(a) > 0 {
				require.Equal(t, c.want, a[0].Answer.Outcome)
				require.Equal(t, c.at, now.Sub(start))
				if c.want == lease.Refused {
					require.ErrorIs(t, a[0].Answer.Refusal.Reason, lease.ErrPaused)
				}
				break
			}
		}
	}
}

// TestPausesOfOneTurnRecallALeaseOnce, and those who stand in lines that several of them bind
// wait for that which is known to last longest.
func TestPausesOfOneTurnRecallALeaseOnce(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "{t}/{s}", rules: [1/1h]}]`), lease.DefaultConfig())
	granted(t, turn(t, l, start, ask("a", 1, start, 0, "t/x")))
	granted(t, turn(t, l, start, ask("a", 2, start, 0, "u/x")))
	require.Empty(t, turn(t, l, start, ask("b", 1, start, 2*time.Hour, "t/x"), ask("b", 2, start, 2*time.Hour, "u/x")).Answers)
	for _, act := range []lease.Act{{Key: "t"}, {Key: "t/x", For: 5 * time.Hour}, {Key: "t"}} {
		act.Verb = lease.VerbPause
		require.Equal(t, 1, acted(t, l, start, act).Leases)
	}
	got := turn(t, l, start)
	require.Len(t, got.Recalls, 1)
	require.Equal(t, lease.Key("t/x"), got.Recalls[0].Key)
	require.Len(t, got.Answers, 1)
	require.Equal(t, lease.Key("t/x"), got.Answers[0].Answer.Refusal.Key)
	require.Equal(t, 5*time.Hour, got.Answers[0].Answer.Refusal.Wait)
	require.Equal(t, 1, l.Summary(start).Waiting)
}

// TestPauseTakesOneKeyOfManyAtMost: where there is no room for more keys it is refused, and
// changes nothing.
func TestPauseTakesOneKeyOfManyAtMost(t *testing.T) {
	config := lease.DefaultConfig()
	config.Keys = 10
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/1s]}]`), config)
	for i := range 9 {
		acted(t, l, start, lease.Act{Verb: lease.VerbPause, Key: lease.Key(fmt.Sprint("t/", i))})
	}
	_, err := l.Act(start, start, lease.Act{Verb: lease.VerbPause, Key: "t/9"})
	require.ErrorIs(t, err, lease.ErrTooManyKeys)
	turn(t, l, start)
	require.Equal(t, 9, l.Summary(start).Live)
}

// TestChargesAreRememberedUpToABound: of more the oldest counts again, which is safe.
func TestChargesAreRememberedUpToABound(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1000000/1h]}]`), lease.DefaultConfig())
	charge := func(i int) bool {
		return acted(t, l, start, lease.Act{Verb: lease.VerbCharge, Key: "k", ID: fmt.Sprint("c", i), N: 1}).Again
	}
	for i := range 1025 {
		require.False(t, charge(i))
	}
	require.True(t, charge(1024))
	require.True(t, charge(1))
	require.False(t, charge(0))
	records := mirrored{}
	records.keep(turn(t, l, start))
	require.Len(t, records["k"].Charges, 1024)
}

// TestChargesPileUpForNoMirror: where none takes what they change, nothing of that is kept.
func TestChargesPileUpForNoMirror(t *testing.T) {
	for _, unmirrored := range []bool{false, true} {
		config := lease.DefaultConfig()
		config.Unmirrored = unmirrored
		l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1000000/1h]}]`), config)
		for i := range 2000 {
			acted(t, l, start, lease.Act{Verb: lease.VerbCharge, Key: "k", ID: fmt.Sprint("c", i), N: 1})
		}
		require.Equal(t, unmirrored, l.ChargesToRecord("k") == 0)
		turn(t, l, start)
		require.Zero(t, l.ChargesToRecord("k"))
	}
}

// TestChargeIsOfItsUnit: an id that is told of another unit is another charge, told by mistake.
func TestChargeIsOfItsUnit(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [100/1h, 100/1h unit=u]}]`), lease.DefaultConfig())
	act := lease.Act{Verb: lease.VerbCharge, Key: "k", ID: "night", N: 5}
	records := mirrored{}
	require.False(t, acted(t, l, start, act).Again)
	records.keep(turn(t, l, start))
	next := lease.NewLedger(policy(t, `limits: [{key: k, rules: [100/1h, 100/1h unit=u]}]`), lease.DefaultConfig())
	next.Restore(records["k"])
	for _, l := range []*lease.Ledger{l, next} {
		act.Unit = "call"
		require.True(t, acted(t, l, start, act).Again, "calls is what it was of")
		act.Unit = "u"
		_, err := l.Act(start, start, act)
		require.ErrorIs(t, err, lease.ErrBadRequest)
		require.ErrorContains(t, err, "of calls and not unit=u")
		require.EqualValues(t, 0, l.Status(start, "k").Keys[0].Windows[1].Spent)
	}
}

// TestChargeTellsOfWindowsAlone: its answer is as short whoever holds something.
func TestChargeTellsOfWindowsAlone(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [100/1h]}]`), lease.DefaultConfig())
	granted(t, turn(t, l, start, ask("a", 1, start, 0, "k")))
	keys := acted(t, l, start, lease.Act{Verb: lease.VerbCharge, Key: "k", ID: "c", N: 5}).Keys
	require.Len(t, keys, 1)
	require.Equal(t, lease.Key("k"), keys[0].Key)
	require.EqualValues(t, 94, keys[0].Windows[0].Free)
	require.Empty(t, keys[0].Holders)
	require.NotEmpty(t, l.Status(start, "k").Keys[0].Holders)
}

// TestActIsCheckedBeforeItIsDone.
func TestActIsCheckedBeforeItIsDone(t *testing.T) {
	long := strings.Repeat("a", 257)
	for want, acts := range map[string][]lease.Act{
		"bad_key": {{Verb: lease.VerbPause}, {Verb: lease.VerbReset, Key: "a//b"}},
		"bad_request": {
			{Key: "k"}, {Verb: "stop", Key: "k"},
			{Verb: lease.VerbPause, Key: "k", Reason: long}, {Verb: lease.VerbPause, Key: "k", By: long[:65]},
			{Verb: lease.VerbPause, Key: "k", Reason: "a\x1b[1m"}, {Verb: lease.VerbPause, Key: "k", Reason: "\xff"},
			{Verb: lease.VerbPause, Key: "k", For: -1}, {Verb: lease.VerbResume, Key: "k", For: 1}, {Verb: lease.VerbPause, Key: "k", N: 1},
			{Verb: lease.VerbCharge, Key: "k", ID: "a"}, {Verb: lease.VerbCharge, Key: "k", N: 1}, {Verb: lease.VerbCharge, Key: "k", ID: "a", N: -1},
			{Verb: lease.VerbCharge, Key: "k", ID: "a", N: algo.MaxLimit + 1}, {Verb: lease.VerbCharge, Key: "k", ID: "a", N: 1, Age: -1},
			{Verb: lease.VerbCharge, Key: "k", ID: "a", N: 1, Unit: "U"}, {Verb: lease.VerbCharge, Key: "k", ID: long[:65], N: 1},
		},
	} {
		for _, a := range acts {
			require.Equal(t, want, lease.Code(a.Validate()), "%+v", a)
		}
	}
	for _, a := range []lease.Act{
		{Verb: lease.VerbPause, Key: "k", Reason: long[:256], By: long[:64], For: 1},
		{Verb: lease.VerbCharge, Key: "k", ID: long[:64], N: algo.MaxLimit, Unit: "call", Age: algo.MaxPeriod},
	} {
		require.NoError(t, a.Validate(), "%+v", a)
	}
}

// TestWhoWaitedForAPauseIsHeldToTheBounds: those who go on at its end take room by then, of which
// there may be too little by now.
func TestWhoWaitedForAPauseIsHeldToTheBounds(t *testing.T) {
	config := lease.DefaultConfig()
	config.Keys = 10
	l := lease.NewLedger(policy(t, `limits: [{key: "{t}/{s}", rules: [1/1h]}]`), config)
	acted(t, l, start, lease.Act{Verb: lease.VerbPause, Key: "t"})
	for i := range uint64(12) {
		require.Empty(t, turn(t, l, start, ask("a", 1+i, start, time.Hour, lease.Key(fmt.Sprint("t/", i)))).Answers)
	}
	acted(t, l, start+1, lease.Act{Verb: lease.VerbResume, Key: "t"})
	outcomes := map[lease.Outcome]int{}
	for _, a := range turn(t, l, start+1).Answers {
		if outcomes[a.Answer.Outcome]++; a.Answer.Outcome == lease.Refused {
			require.ErrorIs(t, a.Answer.Refusal.Reason, lease.ErrTooManyKeys)
		}
	}
	require.Equal(t, 8, outcomes[lease.Granted], "a tenant has nine tenths, and the key that was paused is one")
	require.Equal(t, 4, outcomes[lease.Refused])
}

// TestPrefixWithoutALimitIsLoadedOnce: it may be paused, so nothing below it is granted before its
// record was asked for; and not again where there is none.
func TestPrefixWithoutALimitIsLoadedOnce(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "{t}/{s}", rules: [10/1s]}]`), lease.DefaultConfig())
	in := []lease.Message{{Request: ask("a", 1, start, 0, "t/x/deep")}}
	require.ElementsMatch(t, []lease.Key{"t", "t/x", "t/x/deep"}, l.Unloaded(in))
	l.Restore(lease.Record{Key: "t", Written: 1, Pause: &lease.Pause{Since: start}})
	l.Restore(lease.Record{Key: "t/x"})
	l.Restore(lease.Record{Key: "t/x/deep"})
	require.ElementsMatch(t, []lease.Key{"t/x"}, l.Unloaded(in), "a limited one is made when it is asked for")
	a := turn(t, l, start, in[0].Request).Answers[0].Answer
	require.ErrorIs(t, a.Refusal.Reason, lease.ErrPaused)
	require.Equal(t, lease.Key("t"), a.Refusal.Key)
	l.SetComplete()
	require.Empty(t, l.Unloaded(in))
}
