package lease

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

// TestTimersRingInOrder, whatever is set anew or stopped meanwhile: as a plain list
// that is looked through each time.
func TestTimersRingInOrder(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var ts timers
		leases := make([]*lease, 1+rnd.IntN(40))
		for i := range leases {
			leases[i] = &lease{}
		}
		set := map[*lease]timer{}
		for step := range 400 {
			le := leases[rnd.IntN(len(leases))]
			switch rnd.IntN(4) {
			case 0:
				ts.stop(&le.alarm)
				delete(set, le)
			case 1:
				now := algo.Instant(rnd.IntN(30))
				got, ok := ts.due(now)
				var want timer
				for _, x := range set {
					if x.at <= now && (want.lease == nil || x.at < want.at || x.at == want.at && x.order < want.order) {
						want = x
					}
				}
				require.Equal(t, want.lease != nil, ok, "seed %d, step %d", seed, step)
				require.Equal(t, want, got, "seed %d, step %d", seed, step)
				delete(set, want.lease)
			default:
				x := timer{at: algo.Instant(rnd.IntN(30)), lease: le}
				ts.set(x)
				x.order = ts.sets
				set[le] = x
			}
			require.Len(t, ts.heap, len(set), "seed %d, step %d", seed, step)
			for le := range set {
				require.Same(t, le, ts.heap[le.alarm-1].lease, "seed %d, step %d", seed, step)
			}
		}
	}
}
