package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestFullerLineShedsItsLowerClasses: the last of the lowest class goes for one of a higher
// class, and who is of the lowest itself is refused.
func TestFullerLineShedsItsLowerClasses(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1/1m], line: {premium: 6, standard: 4, batch: 4, shed: 30%}}]`), lease.DefaultConfig()) // 4 of 14
	drained(t, l, "k")
	seq := uint64(0)
	come := func(class string) (shed string) {
		seq++
		answers := turn(t, l, start, asks(class, "w", seq, "k")).Answers
		if len(answers) == 0 {
			return ""
		}
		require.Len(t, answers, 1)
		refusal := answers[0].Answer.Refusal
		require.ErrorIs(t, refusal.Reason, lease.ErrShed)
		require.Equal(t, lease.Key("k"), refusal.Key)
		require.Equal(t, 5*time.Second+time.Minute+12*time.Millisecond, refusal.Wait)
		if answers[0].Answer.ID.Seq == seq {
			return "itself"
		}
		return refusal.Class
	}
	for _, c := range []struct{ class, shed string }{
		{"standard", ""}, {"batch", ""}, {"batch", ""}, {"standard", ""}, // full
		{"batch", "itself"}, {"standard", "batch"}, {"standard", "batch"}, {"standard", "line full"},
		{"premium", "standard"}, {"premium", "standard"}, {"premium", "standard"}, {"batch", "itself"}, {"standard", "itself"},
		{"premium", "standard"}, {"premium", "itself"},
	} {
		if c.shed == "line full" {
			continue // see TestEachClassOfALineHasItsBound
		}
		require.Equal(t, c.shed, come(c.class), "%d: %s", seq, c.class)
	}
	require.Equal(t, 4, l.Summary(start).Waiting)
}

// TestNobodyWaitsLongerThanALineMay.
func TestNobodyWaitsLongerThanALineMay(t *testing.T) {
	low := &member{name: "low", class: "standard", cost: 1, depth: 10}
	high := &member{name: "high", class: "premium", cost: 1, depth: 3, every: 100 * time.Millisecond}
	l := newLined(t, `limits: [{key: k, rules: [10/1s bucket burst=1], line: {premium: 99, standard: 99, lower: 10%, shed: 1500ms}}]`, low, high)
	l.run(time.Minute, 10*time.Millisecond)
	require.Greater(t, low.no["shed"], 100)
	require.Zero(t, high.no["shed"])
	for _, d := range low.waited {
		require.LessOrEqual(t, d, 1510*time.Millisecond)
	}
	require.Greater(t, low.got, int64(40))

	known := newLined(t, `limits: [{key: k, rules: [10/1m], line: {premium: 99, shed: 1500ms}}]`, &member{name: "a", class: "premium", cost: 10, depth: 1})
	known.run(time.Second, 100*time.Millisecond)
	require.Equal(t, 9, known.members[0].no["shed"], "it is known to wait for a minute")
}
