package coordinator_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

// TestMemoryGivesBackWhatItWasGiven, to the last bit, for any numbers and bytes.
func TestMemoryGivesBackWhatItWasGiven(t *testing.T) {
	ctx := context.Background()
	m := coordinator.NewMemory()
	epoch, err := m.Campaign(ctx)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	want := map[lease.Key]lease.Record{}
	for seq := range uint64(2000) {
		r := anyRecord(random)
		if r.Empty() {
			delete(want, r.Key)
		} else {
			want[r.Key] = r
		}
		require.NoError(t, m.Apply(ctx, &lease.Turn{Epoch: epoch, Seq: seq + 1, Records: []lease.Record{r}}))
	}
	require.Greater(t, len(want), 50)
	for key, r := range want {
		got, err := m.Load(ctx, key)
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
	got, err := m.Load(ctx, "none")
	require.NoError(t, err)
	require.Equal(t, lease.Record{Key: "none"}, got)
}

func anyRecord(random *rand.Rand) lease.Record {
	number := func() int64 {
		switch random.IntN(4) {
		case 0:
			return 0
		case 1:
			return math.MinInt64 + random.Int64N(2)
		case 2:
			return math.MaxInt64 - random.Int64N(2)
		}
		return random.Int64N(1000) - 500
	}
	text := func() string { return fmt.Sprintf("\xff\x00/%d", random.IntN(100)) }
	r := lease.Record{Key: lease.Key(text())}
	for range random.IntN(4) {
		w := lease.WindowRecord{Rule: text(), State: algo.State{Seen: algo.Instant(number()), Held: number(), Spent: number(), Own: number()}}
		for range random.IntN(4) * random.IntN(20) {
			w.State.Marks = append(w.State.Marks, algo.Mark{At: algo.Instant(number()), N: number()})
		}
		r.Windows = append(r.Windows, w)
	}
	for range random.IntN(3) {
		le := lease.LeaseRecord{
			ID:    lease.ID{Holder: lease.Holder{Name: text(), Incarnation: random.Uint64()}, Seq: random.Uint64()},
			Keys:  []lease.Key{lease.Key(text())},
			Began: algo.Instant(number()),
		}
		part := func() lease.Part {
			return lease.Part{Granted: number(), Spent: number(), Returned: number(), Expires: algo.Instant(number())}
		}
		le.Tokens, le.Slots = part(), part()
		for range random.IntN(3) {
			le.Units = append(le.Units, lease.UnitPart{Unit: text(), Part: part()})
		}
		r.Leases = append(r.Leases, le)
	}
	return r
}
