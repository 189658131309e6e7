package diskbackend_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/diskbackend"
	"ration/internal/mirrortest"
	"ration/lease"
)

// open opens the state in a directory, and closes it when the test ends.
func open(t testing.TB, dir string) *diskbackend.Mirror {
	t.Helper()
	m, err := diskbackend.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func TestDiskIsAMirror(t *testing.T) {
	mirrortest.Run(t, func(t *testing.T) mirrortest.Mirror { return open(t, t.TempDir()) })
}

// spent is a change that leaves a prefix with n tokens spent.
func spent(key lease.Key, n int64) lease.Change {
	return lease.Change{Key: key, Keep: 1 << 50, Windows: []lease.WindowRecord{{Rule: "10/1s", State: algo.State{Spent: n, Marks: []algo.Mark{{At: algo.Instant(n), N: n}}}}}}
}

// BenchmarkTurn takes turns of a prefix each, on the disk or left to the kernel.
func BenchmarkTurn(b *testing.B) {
	for _, synced := range []bool{true, false} {
		b.Run(map[bool]string{true: "synced", false: "unsynced"}[synced], func(b *testing.B) {
			m := open(b, b.TempDir())
			e := mirrortest.Seat(1).Epoch
			require.NoError(b, m.Campaign(b.Context(), lease.Seat{}, mirrortest.Seat(1)))
			if !synced {
				m.Unsync()
			}
			for seq := uint64(1); b.Loop(); seq++ {
				c := spent("acme/prod/search", int64(seq))
				c.Windows[0].State.Marks = append(c.Windows[0].State.Marks, algo.Mark{At: algo.Instant(seq - 100)})
				require.NoError(b, m.Apply(b.Context(), &lease.Turn{Epoch: e, Seq: seq, Changes: []lease.Change{c}}))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
		})
	}
}
