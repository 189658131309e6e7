package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestHoldersAreToldTheTightestWindow: a holder reports within a third of it, so
// it is that in which what is spent comes back, and far less where a spend counts
// only once it is told.
func TestHoldersAreToldTheTightestWindow(t *testing.T) {
	for rules, want := range map[string]time.Duration{
		"10/1s, 100/1m":         time.Second,
		"10/1h fixed":           time.Hour,
		"10/1s bucket burst=5":  500 * time.Millisecond,
		"10/1s bucket burst=50": time.Second,
		"10/1s counter":         31250 * time.Microsecond,
		"10/1m, 10/32s counter": time.Second,
		"10/5ns counter":        1,
		"4 concurrent":          0,
		"4 concurrent, 10/1m":   time.Minute,
		"unlimited":             0,
	} {
		l := lease.NewLedger(policy(t, "limits: [{key: k, rules: ["+rules+"]}]"), lease.DefaultConfig())
		r := ask("a", 1, start, 0, "k")
		r.Want.Slots, r.Need.Slots = 1, 1
		got := turn(t, l, start, r).Answers[0].Answer
		require.Equal(t, want, got.Terms.Window, rules)
	}
}
