package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestExpiredLeaseIsNeverRenewed: a heartbeat that arrives at the expiry of the
// slots it names, and is taken up in the very turn in which they expire, renews
// nothing; one that arrives 1 ns earlier does, even if its turn comes later.
func TestExpiredLeaseIsNeverRenewed(t *testing.T) {
	for _, c := range []struct {
		name    string
		before  time.Duration // the expiry, of the arrival
		renewed int
	}{
		{"at the expiry", 0, 0},
		{"just before it", 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/1s, 1 concurrent]}]`), lease.DefaultConfig())
			r := ask("a", 1, start, 0, "k")
			r.Want.Slots, r.Need.Slots = 1, 1
			granted := turn(t, l, start, r).Answers[0].Answer
			require.Equal(t, lease.Granted, granted.Outcome)

			expiry := start.Add(granted.SlotTTL)
			beat := &lease.Report{
				Holder: r.ID.Holder, Sent: granted.SlotTTL - c.before, Heartbeat: true,
				Counts: []lease.Count{{ID: r.ID, Keys: r.Keys}},
			}
			got := l.Turn(expiry.Add(time.Millisecond), []lease.Message{{Arrived: expiry.Add(-c.before), Report: beat}})
			require.Len(t, got.Replies[0].Reply.Renewed, c.renewed)
			s := l.Status(expiry.Add(time.Millisecond), "k")
			require.EqualValues(t, c.renewed, s.Held.Slots)
			require.EqualValues(t, 1-c.renewed, s.Stats.SlotsExpired)
		})
	}
}
