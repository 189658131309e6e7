package lease_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestTurnThatCouldNotBeRecordedIsWrittenBackWhole: a mirror has lost what it had, and
// there are more keys than are written back in one turn. The turn that is answered next has
// what it changed, with all that is known of those keys.
func TestTurnThatCouldNotBeRecordedIsWrittenBackWhole(t *testing.T) {
	const keys = 300
	p := policy(t, `limits: [{key: "{k}", rules: [10/1m]}]`)
	l := lease.NewLedger(p, lease.DefaultConfig())
	for i := range uint64(keys) {
		require.Equal(t, lease.Granted, turn(t, l, start, ask("a", 1+i, start, 0, lease.Key(fmt.Sprint("k", i)))).Answers[0].Answer.Outcome)
	}
	for _, key := range []lease.Key{"k0", "k150", "k299"} {
		t.Run(string(key), func(t *testing.T) {
			last := turn(t, l, start, ask("b", uint64(len(key)), start, 0, key))
			records := mirrored{} // which has lost everything
			l.Rewrite(last)
			records.keep(last)
			require.Less(t, len(records), keys, "not all at once")
			require.Len(t, records[key].Windows, 1)
			require.Len(t, records[key].Batches, 1+1)
			heir := lease.NewLedger(p, lease.DefaultConfig())
			heir.Restore(records[key])
			heir.Turn(start, nil)
			require.Equal(t, int64(2), heir.Status(start, key).Keys[0].Windows[0].Held)
			for !last.Rewritten {
				last = turn(t, l, start)
				records.keep(last)
			}
			require.Len(t, records, keys)
		})
	}
}
