package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// asks is ask with a class.
func asks(class, holder string, seq uint64, keys ...lease.Key) *lease.Request {
	r := ask(holder, seq, start, time.Hour, keys[0])
	r.Keys, r.Class = keys, class
	return r
}

// drained uses up all of every key.
func drained(t *testing.T, l *lease.Ledger, keys ...lease.Key) {
	t.Helper()
	for _, k := range keys {
		r := ask("used "+string(k), 1, start, 0, k)
		require.Equal(t, lease.Granted, turn(t, l, start, r).Answers[0].Answer.Outcome)
	}
}

// TestEachClassOfALineHasItsBound, and is refused at once beyond it.
func TestEachClassOfALineHasItsBound(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1/1m], line: {premium: 3, standard: 2, none: 0}}]`), lease.DefaultConfig())
	drained(t, l, "k")
	seq := uint64(0)
	refused := func(class string) (lease.Refusal, bool) {
		seq++
		answers := turn(t, l, start, asks(class, "w", seq, "k")).Answers
		if len(answers) == 0 {
			return lease.Refusal{}, false
		}
		return answers[0].Answer.Refusal, true
	}
	for class, bound := range map[string]int{"premium": 3, "standard": 2, "none": 0} {
		for range bound {
			_, no := refused(class)
			require.False(t, no, class)
		}
		for range 2 {
			r, no := refused(class)
			require.True(t, no, class)
			require.ErrorIs(t, r.Reason, lease.ErrLineFull)
			require.Equal(t, class, r.Class)
			require.Equal(t, lease.Key("k"), r.Key)
			require.Equal(t, 5*time.Second+time.Minute+12*time.Millisecond, r.Wait)
		}
	}
	r, no := refused("") // who names none is of the lowest
	require.True(t, no)
	require.Equal(t, "none", r.Class)
}

// TestPlainLineIsOneBound also where others have classes.
func TestPlainLineIsOneBound(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1/1m], line: 2}, {key: j, rules: [1/1m], line: {premium: 1, standard: 1}}]`), lease.DefaultConfig())
	drained(t, l, "k")
	require.Empty(t, turn(t, l, start, asks("premium", "a", 1, "k"), asks("standard", "a", 2, "k")).Answers)
	for i, class := range []string{"premium", "standard", ""} {
		answers := turn(t, l, start, asks(class, "a", uint64(3+i), "k")).Answers
		require.Len(t, answers, 1)
		require.ErrorIs(t, answers[0].Answer.Refusal.Reason, lease.ErrLineFull)
	}
	l = lease.NewLedger(policy(t, `limits: [{key: k, rules: [1/1m], line: 0}]`), lease.DefaultConfig())
	require.Equal(t, lease.Granted, turn(t, l, start, ask("a", 1, start, time.Hour, "k")).Answers[0].Answer.Outcome)
	require.ErrorIs(t, turn(t, l, start, ask("a", 2, start, time.Hour, "k")).Answers[0].Answer.Refusal.Reason, lease.ErrLineFull)
}

// TestLineCountsWhoLacksSomethingThere: who waits for a child alone takes up no place
// among those who wait for its parent.
func TestLineCountsWhoLacksSomethingThere(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: a, rules: [3/1m], line: 1}, {key: "a/{b}", rules: [1/1m]}]`), lease.DefaultConfig())
	drained(t, l, "a/x")
	require.Empty(t, turn(t, l, start, asks("", "w", 1, "a/x"), asks("", "w", 2, "a/x")).Answers)
	drained(t, l, "a/y")
	drained(t, l, "a/z") // the parent has nothing left
	require.Empty(t, turn(t, l, start, asks("", "w", 3, "a")).Answers)
	full := turn(t, l, start, asks("", "w", 4, "a")).Answers
	require.Len(t, full, 1)
	require.Equal(t, lease.Key("a"), full[0].Answer.Refusal.Key)
}

// TestPlanHasTheHighestClass that its keys may have: a caller may lower it, and not raise.
func TestPlanHasTheHighestClass(t *testing.T) {
	l := lease.NewLedger(policy(t, `
limits: [{key: "{a}", rules: [1/1m], line: {gold: 1, silver: 1, lead: 1}}, {key: "{a}/{b}", rules: [9/1m]}]
plans: {free: {rules: [5/1m], class: silver}, paid: {rules: [5/1m], class: gold}, none: {rules: [5/1m]}}
assign: {"s/{x}": free, "g/{x}": paid, "n/{x}": none}
`[1:]), lease.DefaultConfig())
	seq := uint64(0)
	for _, c := range []struct {
		key             lease.Key
		class, stands   string
		unknown, second bool
	}{
		{"s/x", "gold", "silver", false, false},
		{"s/x", "", "silver", false, true},
		{"s/x", "lead", "lead", false, false},
		{"g/x", "", "gold", false, false},
		{"g/x", "silver", "silver", false, false},
		{"n/x", "", "lead", false, false},
		{"n/x", "gold", "gold", false, false},
		{"n/x", "brass", "", true, false},
	} {
		if seq == 0 {
			drained(t, l, "s/x", "g/x", "n/x")
		}
		seq++
		answers := turn(t, l, start, asks(c.class, "w", seq, c.key)).Answers
		switch {
		case c.unknown:
			require.Len(t, answers, 1)
			require.ErrorIs(t, answers[0].Answer.Refusal.Reason, lease.ErrUnknownClass)
			require.Equal(t, "brass", answers[0].Answer.Refusal.Class)
		case c.second: // as the first one was lowered to it
			require.Len(t, answers, 1)
			require.ErrorIs(t, answers[0].Answer.Refusal.Reason, lease.ErrLineFull)
			require.Equal(t, c.stands, answers[0].Answer.Refusal.Class)
		default:
			require.Empty(t, answers, c)
		}
	}
}

// TestClassIsOfNoMeaningWhereNoLineHasOne, so that callers may say it before the policy does.
func TestClassIsOfNoMeaningWhereNoLineHasOne(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1/1m]}]`), lease.DefaultConfig())
	require.Equal(t, lease.Granted, turn(t, l, start, asks("premium", "a", 1, "k")).Answers[0].Answer.Outcome)
}

// TestOneIDHasOneClass.
func TestOneIDHasOneClass(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1/1m], line: {premium: 9, standard: 9}}]`), lease.DefaultConfig())
	drained(t, l, "k")
	require.Empty(t, turn(t, l, start, asks("standard", "a", 1, "k")).Answers)
	require.ErrorIs(t, turn(t, l, start, asks("premium", "a", 1, "k")).Answers[0].Answer.Refusal.Reason, lease.ErrBadRequest)
}

// TestStatusTellsOfEachClass: who waits, was granted and was refused, at each key and in
// all.
func TestStatusTellsOfEachClass(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "{a}", rules: [1/1m], line: {premium: 3, standard: 2}}, {key: "{a}/{b}", rules: [9/1m]}]`), lease.DefaultConfig())
	turn(t, l, start, asks("premium", "a", 1, "k/x"))
	for seq := range uint64(3) {
		turn(t, l, start, asks("standard", "b", seq, "k/x"))
	}
	turn(t, l, start, asks("premium", "c", 1, "k/x"), asks("premium", "d", 1, "j"))
	s := l.Status(start, "k")
	require.Equal(t, []lease.ClassStatus{{"premium", -1, 1, 2, 0}, {"standard", -1, 2, 0, 1}}, s.Classes)
	require.Len(t, s.Keys, 2)
	require.Equal(t, []lease.ClassStatus{{"premium", 3, 1, 1, 0}, {"standard", 2, 2, 0, 1}}, s.Keys[0].Classes)
	require.Equal(t, []lease.ClassStatus{{"premium", -1, 1, 1, 0}, {"standard", -1, 2, 0, 1}}, s.Keys[1].Classes)
	require.Equal(t, []lease.ClassStatus{{"premium", 3, 0, 0, 0}, {"standard", 2, 0, 0, 0}}, l.Status(start, "other").Keys[0].Classes)
}
