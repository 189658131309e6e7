package diskbackend_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

func size(t *testing.T, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "ration.db"))
	require.NoError(t, err)
	return info.Size()
}

// TestFileDoesNotGrowWithTurns: marks, leases and prefixes come and go, and the file
// has room for those that are there.
func TestFileDoesNotGrowWithTurns(t *testing.T) {
	turns := uint64(10_000)
	if proof {
		turns = 1_000_000
	}
	dir := t.TempDir()
	m := open(t, dir)
	e := win(t, m)
	m.Unsync()
	random := rand.New(rand.NewPCG(1, 2))
	marks := map[lease.Key][]algo.Mark{}
	most := int64(0)
	for seq := uint64(1); seq <= turns; seq++ {
		key := lease.Key(fmt.Sprint("acme/", random.IntN(20)))
		c := lease.Change{Key: key, Keep: time.Hour}
		if random.IntN(200) == 0 {
			c.Gone = true
			marks[key] = nil
		} else {
			now := algo.Mark{At: algo.Instant(seq), N: 1}
			changed := []algo.Mark{now}
			if marks[key] = append(marks[key], now); len(marks[key]) > 100 {
				changed = append([]algo.Mark{{At: marks[key][0].At}}, changed...)
				marks[key] = marks[key][1:]
			}
			c.Windows = []lease.WindowRecord{{Rule: "100/1m", State: algo.State{Seen: now.At, Spent: int64(len(marks[key])), Marks: changed}}}
			id := lease.ID{Holder: lease.Holder{Name: "w", Incarnation: 1}, Seq: seq}
			c.Batches = []lease.Batch{{ID: id, Keys: []lease.Key{key}, Leases: []lease.LeaseRecord{{Seq: seq, Tokens: lease.Part{Granted: 1}}}}}
			if old := id; seq > 50 {
				old.Seq -= 50
				c.Batches = append(c.Batches, lease.Batch{ID: old})
			}
		}
		turn := &lease.Turn{Epoch: e, Seq: seq, Instant: algo.Instant(seq), Changes: []lease.Change{c}}
		require.NoError(t, m.Apply(t.Context(), turn))
		if seq%100 == 0 {
			most = max(most, size(t, dir))
		}
		if seq == turns/10 {
			t.Logf("%d turns: %d bytes", seq, most)
		}
	}
	t.Logf("%d turns: %d bytes at most", turns, most)
	require.LessOrEqual(t, most, int64(4<<20))
}

// TestPrefixesPastTheirTimeGo: some in each turn, and those that time has passed while
// nobody led when the seat is won. Nothing goes before.
func TestPrefixesPastTheirTimeGo(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir)
	e := win(t, m)
	m.Unsync()
	begin := algo.Instant(1_800_000_000_000_000_000)
	turn := &lease.Turn{Epoch: e, Seq: 1, Instant: begin}
	for i := range 100 {
		c := spent(lease.Key(fmt.Sprint("short/", i)), 1)
		c.Keep = 25 * time.Hour
		turn.Changes = append(turn.Changes, c)
		c.Key, c.Keep = lease.Key(fmt.Sprint("long/", i)), 8*24*time.Hour
		turn.Changes = append(turn.Changes, c)
	}
	require.NoError(t, m.Apply(t.Context(), turn))
	seq, touched := uint64(1), spent("short/7", 2)
	touched.Keep = 25 * time.Hour
	after := func(d time.Duration, turns int) (count int) {
		for range turns {
			seq++
			require.NoError(t, m.Apply(t.Context(), &lease.Turn{Epoch: e, Seq: seq, Instant: begin.Add(d), Changes: []lease.Change{touched}}))
		}
		keys, next, err := m.Keys(t.Context(), e, "")
		require.NoError(t, err)
		require.Empty(t, next)
		return len(keys)
	}
	require.Equal(t, 200, after(25*time.Hour, 200), "nothing goes before its time")
	require.GreaterOrEqual(t, after(27*time.Hour, 1), 200-8, "some of them in each turn")
	require.Equal(t, 101, after(27*time.Hour, 60), "and all in time, but what was touched")
	r, err := m.Load(t.Context(), e, []lease.Key{"short/1", "short/7", "long/1"})
	require.NoError(t, err)
	require.True(t, r[0].Empty())
	require.Zero(t, r[0].Written)
	require.False(t, r[1].Empty())
	require.False(t, r[2].Empty())

	require.NoError(t, m.Close())
	m = open(t, dir)
	next := look(t, m)
	next.Epoch.Number++
	next.Pulse.Instant = begin.Add(9 * 24 * time.Hour)
	require.NoError(t, m.Campaign(t.Context(), look(t, m), next))
	keys, _, err := m.Keys(t.Context(), next.Epoch, "")
	require.NoError(t, err)
	require.Empty(t, keys)
}

// TestRecordOfNothingGoes, as that of a prefix whose only lease is over, and which has
// no rules.
func TestRecordOfNothingGoes(t *testing.T) {
	m := open(t, t.TempDir())
	e := win(t, m)
	b := lease.Batch{ID: lease.ID{Holder: lease.Holder{Name: "w", Incarnation: 1}, Seq: 1}, Keys: []lease.Key{"k"}, Leases: []lease.LeaseRecord{{Seq: 1}}}
	for seq, want := range []int{1, 0} {
		require.NoError(t, m.Apply(t.Context(), &lease.Turn{Epoch: e, Seq: uint64(seq + 1), Changes: []lease.Change{{Key: "k", Batches: []lease.Batch{b}}}}))
		keys, _, err := m.Keys(t.Context(), e, "")
		require.NoError(t, err)
		require.Len(t, keys, want)
		b.Leases = nil
	}
}

// TestAllAtOnce: turns, renewals and readers run side by side.
func TestAllAtOnce(t *testing.T) {
	m := open(t, t.TempDir())
	e := win(t, m)
	m.Unsync()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	also := func(do func(i uint64) error) {
		wg.Go(func() {
			for i := uint64(0); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := do(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	also(func(i uint64) error { return m.Renew(t.Context(), e, lease.Pulse{Beat: i}) })
	also(func(uint64) error { _, err := m.Look(t.Context()); return err })
	also(func(uint64) error { _, _, err := m.Keys(t.Context(), e, ""); return err })
	also(func(uint64) error {
		all, err := m.Load(t.Context(), e, several)
		for i := range all {
			if err == nil && len(all[i].Windows) != len(all[0].Windows) || len(all[0].Windows) > 0 && all[i].Windows[0].State.Spent != all[0].Windows[0].State.Spent {
				return fmt.Errorf("half a turn: %+v", all)
			}
		}
		return err
	})
	for seq := uint64(1); seq <= 200; seq++ {
		require.NoError(t, m.Apply(t.Context(), numbered(e, seq)))
	}
	close(stop)
	wg.Wait()
	require.Equal(t, uint64(200), hasTurn(t, m))
}
