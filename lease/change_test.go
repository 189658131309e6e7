package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// mirrored is what a mirror has of each prefix.
type mirrored map[lease.Key]lease.Record

// keep takes up a turn.
func (m mirrored) keep(t *lease.Turn) {
	for _, c := range t.Changes {
		r := m[c.Key]
		r.Key = c.Key
		if r.Change(c, max(1, t.Epoch.Number)); r.Empty() {
			delete(m, c.Key)
			continue
		}
		m[c.Key] = r
	}
}

// TestRecordSaysNothingOfWhatWasNeverGranted, and all of what was.
func TestRecordSaysNothingOfWhatWasNeverGranted(t *testing.T) {
	l := lease.NewLedger(policy(t, "limits: [{key: k, rules: [10/1s, 4 concurrent]}]"), lease.DefaultConfig())
	l.Start(lease.Start{Epoch: 1, Instant: start, Complete: true})
	both, tokens := ask("a", 1, start, time.Second, "k"), ask("a", 2, start, time.Second, "k")
	both.Want.Slots, both.Need.Slots = 1, 1
	m := mirrored{}
	m.keep(turn(t, l, start, both, tokens))
	require.Len(t, m["k"].Batches, 1)
	held := lease.Part{Granted: 1, Expires: start.Add(lease.DefaultConfig().TokenTTL)}
	slot := lease.Part{Granted: 1, Expires: start.Add(lease.DefaultConfig().SlotTTL)}
	require.Equal(t, []lease.LeaseRecord{{Seq: 1, Tokens: held, Slots: slot}, {Seq: 2, Tokens: held}}, m["k"].Batches[0].Leases)
}
