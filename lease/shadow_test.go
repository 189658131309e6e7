package lease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

func shadow(rules string) string { return "limits: [{key: k, shadow: true, rules: [" + rules + "]}]" }

// TestLimitInShadowRefusesNothingAndCountsWhatItWould: of 20 calls at once, whatever the rule.
func TestLimitInShadowRefusesNothingAndCountsWhatItWould(t *testing.T) {
	for rule, would := range map[string]int64{
		"5/1m": 15, "5/1h fixed": 15, "5/1h bucket": 15, "50/1h bucket burst=4": 16, "5/1h counter": 15, "0/1m": 20, "unlimited": 0, "20/1m": 0,
	} {
		l := newLedger(t, shadow(rule))
		for seq := range uint64(20) {
			r := taking(seq+1, 1, start, "k")
			require.Equal(t, lease.Granted, turn(t, l, start, r).Answers[0].Answer.Outcome, rule)
			turn(t, l, start, spending(r, 1))
		}
		require.Equal(t, would, l.Stats().WouldRefuse, rule)
		if rule == "unlimited" {
			continue
		}
		w := window(t, l, start, "k")
		require.True(t, w.Shadow)
		require.Equal(t, []int64{would, 20}, []int64{w.WouldRefuse, w.Held + w.Spent}, rule)
	}
}

// TestLimitInShadowKeepsCountAsIfItBound: under twice the limit it would refuse every other
// call, and not all once it is full. What is told late is judged by its date.
func TestLimitInShadowKeepsCountAsIfItBound(t *testing.T) {
	for _, rule := range []string{"10/1s", "10/1s bucket", "10/1s pace", "10/1s fixed"} {
		for _, late := range []time.Duration{0, 900 * time.Millisecond} {
			l := newLedger(t, shadow(rule))
			at := start
			for seq := range uint64(200) {
				at = at.Add(52 * time.Millisecond)
				r := taking(seq+1, 1, at.Add(-late), "k")
				require.Equal(t, lease.Granted, turn(t, l, at.Add(-late), r).Answers[0].Answer.Outcome)
				told := spending(r, 1)
				told.Counts[0].Points[0].Age = late
				turn(t, l, at, told)
			}
			require.InDelta(t, 94, l.Stats().WouldRefuse, 8, "%s %v", rule, late)
		}
	}
}

// TestLimitInShadowLeavesOthersAsTheyAre: a plan of the same key binds, and so does a limit
// below; a slot is needed by none.
func TestLimitInShadowLeavesOthersAsTheyAre(t *testing.T) {
	l := newLedger(t, `limits: [{key: k, rules: [2/1m, 1/1m unit=u], shadow: true}, {key: "k/{x}", rules: [100/1m]}]
plans: {p: {rules: [7/1m]}}
assign: {k: p}`)
	r := taking(1, 7, start, "k/x")
	r.Want.Units = lease.Units{{Unit: "u", N: 3}}
	r.Need.Units = r.Want.Units
	granted := turn(t, l, start, r).Answers[0].Answer
	require.Equal(t, lease.Granted, granted.Outcome)
	require.False(t, granted.Terms.Concurrent)
	refused := turn(t, l, start+1, taking(2, 1, start+1, "k/x")).Answers[0].Answer
	require.Equal(t, lease.Refused, refused.Outcome)
	require.Equal(t, []string{"7/1m", "p"}, []string{refused.Refusal.Rule, refused.Refusal.Plan})
	told := spending(r, 7)
	told.Counts[0].Points[0].Units = r.Want.Units
	turn(t, l, start+2, told)
	require.Equal(t, int64(5+2), l.Stats().WouldRefuse)
	require.Len(t, l.Status(start+2, "k").Keys[0].Windows, 3)
}

// TestLimitThatBindsAfterItsShadowKnowsAllThatWasSpent: also what it would have refused, and
// over a failover; and when it goes into shadow again whoever waits is served at once.
func TestLimitThatBindsAfterItsShadowKnowsAllThatWasSpent(t *testing.T) {
	for _, rule := range []string{"10/1m", "10/1m bucket", "10/1h fixed", "10/1m counter"} {
		for _, failover := range []bool{false, true} {
			l, records := newLedger(t, shadow(rule)), mirrored{}
			r, held := taking(1, 30, start, "k"), taking(2, 5, start, "k")
			records.keep(turn(t, l, start, r, held))
			records.keep(turn(t, l, start+1, spending(r, 30)))
			if failover {
				l = lease.NewLedger(policy(t, shadow(rule)), lease.DefaultConfig())
				l.Start(lease.Start{Epoch: 2, Instant: start + 1, Revision: 1})
				l.Restore(records["k"].Clone())
			}
			_, changed := l.Change(policy(t, limits(rule)), 0)
			require.True(t, changed)
			l.Turn(start+2, nil)
			w := window(t, l, start+2, "k")
			require.Equal(t, []int64{0, 5, 30}, []int64{w.Free, w.Held, w.Spent}, "%s %v", rule, failover)
			require.False(t, w.Shadow)
			waits := ask("b", 1, start+2, 2*time.Hour, "k")
			require.Empty(t, l.Turn(start+2, []lease.Message{{Arrived: start + 2, Request: waits}}).Answers)
			l.Change(policy(t, shadow(rule)), 0)
			require.Equal(t, lease.Granted, l.Turn(start+3, nil).Answers[0].Answer.Outcome)
		}
	}
}

// TestLimitInShadowForgetsAndIsCharged as others are.
func TestLimitInShadowForgetsAndIsCharged(t *testing.T) {
	l := newLedger(t, shadow("10/1m"))
	_, err := l.Act(start, 0, lease.Act{Verb: lease.VerbCharge, Key: "k", ID: "c", N: 8})
	require.NoError(t, err)
	spend := func(seq uint64, would int64) {
		t.Helper()
		r := taking(seq, 5, start, "k")
		turn(t, l, start, r)
		turn(t, l, start, spending(r, 5))
		require.Equal(t, would, l.Stats().WouldRefuse)
	}
	spend(1, 3)
	_, err = l.Act(start, 0, lease.Act{Verb: lease.VerbReset, Key: "k"})
	require.NoError(t, err)
	spend(2, 3)
	spend(3, 3)
	spend(4, 8)
}

// TestShadowIsReadAndWritten as other fields are.
func TestShadowIsReadAndWritten(t *testing.T) {
	p := policy(t, shadow("10/1s"))
	require.True(t, p.Limits[0].Shadow)
	require.Equal(t, p.String(), policy(t, p.String()).String())
	require.NotEqual(t, p.String(), policy(t, limits("10/1s")).String())
	require.False(t, policy(t, "limits: [{key: k, shadow: false, rules: [1/1s]}]").Limits[0].Shadow)
	for text, want := range map[string]string{
		shadow("10/1s, 4 concurrent"):                         "p.yaml:1:48: 4 concurrent stands in a limit in shadow",
		"limits: [{key: k, shadow: 1, rules: [1/1s]}]":        "p.yaml:1:27: shadow is the number 1, neither true nor false; write shadow: true, or leave it out",
		"limits: [{key: k, shadow: , rules: [1/1s]}]":         "shadow is empty",
		"limits: [{key: k, shadow: \"true\", rules: [1/1s]}]": `shadow is the text "true"`,
		"limits: [{key: k, shadwo: true, rules: [1/1s]}]":     "write shadow",
	} {
		_, err := lease.ParsePolicy("p.yaml", []byte(text))
		require.ErrorContains(t, err, want, text)
	}
	loose := policy(t, fmt.Sprintf("limits: [{key: k, rules: [1/1s], shadow: true}, {key: %q, rules: [2/1s]}]", "k/{x}"))
	require.Empty(t, loose.Loose())
}
