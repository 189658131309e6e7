package lease_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

func of(unit string, n int64) lease.UnitAmount { return lease.UnitAmount{Unit: unit, N: n} }

// askUnits is ask with so much of unit u besides.
func (c *crowd) askUnits(holder string, need int64, patience time.Duration, key lease.Key) *lease.Request {
	c.seq++
	r := ask(holder, c.seq, c.now, patience, key)
	r.Need.Units = lease.Units{of("u", need)}
	r.Want.Units = r.Need.Units
	return r
}

// TestLargeRequestOfUnitsIsNotOvertakenForEver: the same as of tokens, also where it
// lacks tokens at one prefix and units at the other.
func TestLargeRequestOfUnitsIsNotOvertakenForEver(t *testing.T) {
	for _, rules := range [][2]string{
		{"[10/1s unit=u]", "[8/1s unit=u]"},
		{"[10/1s]", "[8/1s unit=u]"},
		{"[10/1s unit=u]", "[8/1s]"},
		{"[10/1s, 12/1s unit=u]", "[8/1s, 9/1s unit=u]"},
	} {
		l := lease.NewLedger(policy(t, `limits: [{key: "{t}", rules: `+rules[0]+`}, {key: "{t}/{s}", rules: `+rules[1]+`}]`), lease.DefaultConfig())
		w := crowd{ledger: l, now: start, live: map[lease.ID]lease.Key{}, keys: map[lease.ID]lease.Key{}, units: true}
		for range 50 {
			w.step(t)
		}
		large := w.askUnits("large", 5, time.Hour, "t/x")
		large.Need.Tokens, large.Want.Tokens = 5, 5
		w.large, w.largeID = large, large.ID
		for range 400 { // 20 s
			w.step(t)
		}
		require.Positive(t, w.granted, "rules %v: the large one waited 20 s; %d small ones were served", rules, w.served)
		require.Greater(t, w.served, 130, "rules %v", rules)
	}
}

// TestWhoLacksUnitsHoldsNobodyBackWhoNeedsNone: however long it waits.
func TestWhoLacksUnitsHoldsNobodyBackWhoNeedsNone(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/1s, 100/1h unit=u]}]`), lease.DefaultConfig())
	w := crowd{now: start}
	all := w.askUnits("a", 100, 0, "k")
	turn(t, l, start, all)
	turn(t, l, start, &lease.Report{Holder: all.ID.Holder, Counts: []lease.Count{
		{ID: all.ID, Keys: all.Keys, Points: []lease.Point{{Count: 1, Units: lease.Units{of("u", 100)}}}},
	}})
	require.Empty(t, turn(t, l, start, w.askUnits("b", 1, 2*time.Hour, "k")).Answers, "it waits")
	for i := range 9 {
		w.seq++
		got := turn(t, l, start, ask("c", w.seq, start, 0, "k")).Answers
		require.Len(t, got, 1)
		require.Equal(t, lease.Granted, got[0].Answer.Outcome, "call %d", i)
	}
	status := l.Status(start, "k").Keys[0]
	require.Zero(t, status.Windows[0].Free)
	require.Equal(t, 1, status.Waiting)
}

// TestUnitsAreGrantedInTheOrderOfTheLine: a small request does not take the units that
// become free for a larger one before it, and is served when that has its own.
func TestUnitsAreGrantedInTheOrderOfTheLine(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [100/1s unit=u]}]`), lease.DefaultConfig())
	w := crowd{now: start}
	all := w.askUnits("a", 100, 0, "k")
	turn(t, l, start, all)
	large, small := w.askUnits("b", 80, time.Minute, "k"), w.askUnits("c", 20, time.Minute, "k")
	turn(t, l, start, large)
	turn(t, l, start, small)
	back := func(n int64) *lease.Turn {
		return turn(t, l, start, &lease.Report{Holder: all.ID.Holder, Counts: []lease.Count{
			{ID: all.ID, Keys: all.Keys, ReturnedUnits: lease.Units{of("u", n)}},
		}})
	}
	require.Empty(t, back(79).Answers)
	got := back(80).Answers
	require.Len(t, got, 1)
	require.Equal(t, large.ID, got[0].Answer.ID)
	got = back(100).Answers
	require.Len(t, got, 1)
	require.Equal(t, small.ID, got[0].Answer.ID)
}

// TestUnitsThatMakeNoSenseAreRefused: the message is, whole.
func TestUnitsThatMakeNoSenseAreRefused(t *testing.T) {
	for says, units := range map[string]lease.Units{
		"0 of unit \"u\"; the least is 1":                {of("u", 0)},
		"-1 of unit \"u\"; the least is 1":               {of("u", -1)},
		"no rule could grant more than 1000000000000000": {of("u", 1_000_000_000_000_001)},
		"the unit \"u\" is named twice":                  {of("u", 1), of("u", 1)},
		"the units \"v\" and \"u\" are not in order":     {of("v", 1), of("u", 1)},
		"the unit \"U\" does not begin with one of a-z":  {of("U", 1)},
		"the name of the unit is missing":                {of("", 1)},
		"the unit \"call\" is what tokens count already": {of("call", 1)},
		"has 33 bytes, at most 32 are allowed":           {of(strings.Repeat("u", 33), 1)},
		"it names 9 units; name at most 8":               {of("a", 1), of("b", 1), of("c", 1), of("d", 1), of("e", 1), of("f", 1), of("g", 1), of("h", 1), of("i", 1)},
	} {
		wants := ask("a", 1, start, 0, "k")
		wants.Want.Units = units
		needs := ask("a", 1, start, 0, "k")
		needs.Need.Units = units
		told := lease.Report{Holder: wants.ID.Holder, Counts: []lease.Count{{ID: wants.ID, Keys: wants.Keys, Points: []lease.Point{{Count: 1, Units: units}}}}}
		returned := lease.Report{Holder: wants.ID.Holder, Counts: []lease.Count{{ID: wants.ID, Keys: wants.Keys, ReturnedUnits: units}}}
		for _, err := range []error{wants.Validate(), needs.Validate(), told.Validate(), returned.Validate()} {
			require.ErrorContains(t, err, says)
			require.ErrorIs(t, err, lease.ErrBadRequest)
		}
	}
	short := ask("a", 1, start, 0, "k")
	short.Need.Units, short.Want.Units = lease.Units{of("u", 5)}, lease.Units{of("u", 4)}
	require.ErrorContains(t, short.Validate(), "want of 4 u is below need of 5")
}

// TestAnIDIsOneRequestInUnitsToo: who uses it for another cost is refused.
func TestAnIDIsOneRequestInUnitsToo(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [100/1s unit=u]}]`), lease.DefaultConfig())
	w := crowd{now: start}
	first := w.askUnits("a", 60, 0, "k")
	turn(t, l, start, first)
	other := *first
	other.Need.Units = lease.Units{of("u", 61)}
	other.Want.Units = other.Need.Units
	got := turn(t, l, start, &other).Answers[0].Answer
	require.Equal(t, lease.Refused, got.Outcome)
	require.ErrorIs(t, got.Refusal.Reason, lease.ErrBadRequest)
	copied := turn(t, l, start, first).Answers[0].Answer
	require.Equal(t, first.Need.Units, copied.Granted.Units, "a copy hears what was granted")
}

// TestARuleAddedToAUnitStartsWithWhatIsHeld: a ledger that takes over under another
// policy counts what leases hold of the unit, and no more.
func TestARuleAddedToAUnitStartsWithWhatIsHeld(t *testing.T) {
	before := lease.NewLedger(policy(t, `limits: [{key: k, rules: [100/1s]}]`), lease.DefaultConfig())
	w := crowd{now: start}
	records := mirrored{}
	records.keep(turn(t, before, start, w.askUnits("a", 60, 0, "k")))
	require.Len(t, records, 1)
	after := lease.NewLedger(policy(t, `limits: [{key: k, rules: [100/1s, 90/1s unit=u, 9/1s unit=v]}]`), lease.DefaultConfig())
	after.Turn(start, nil)
	after.Restore(records["k"])
	lawful(t, after, start)
	windows := after.Status(start, "k").Keys[0].Windows
	require.EqualValues(t, 60, windows[1].Held)
	require.Zero(t, windows[2].Held)
}

// Amounts know when they are the same, and units are kept in order.
func TestUnitsAddUp(t *testing.T) {
	units := lease.UnitsOf(map[string]int64{"b": 2, "a": 1, "none": 0})
	require.Equal(t, lease.Units{of("a", 1), of("b", 2)}, units)
	require.Equal(t, "1 a, 2 b", units.String())
	units = units.Plus("ab", 5).Plus("b", -2).Plus("z", 0)
	require.Equal(t, lease.Units{of("a", 1), of("ab", 5)}, units)
	require.True(t, units.Covers(lease.Units{of("ab", 5)}))
	require.False(t, units.Covers(lease.Units{of("ab", 5), of("b", 1)}))
	require.True(t, lease.Amount{Tokens: 1, Units: units}.Equal(lease.Amount{Tokens: 1, Units: units.Plus("b", 0)}))
	require.False(t, lease.Amount{Units: units}.Zero())
}
