package diskbackend_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/diskbackend"
	"ration/lease"
)

// TestFullDiskIsAnErrorThatPasses: a turn for which there is no room is not recorded,
// and is when there is.
func TestFullDiskIsAnErrorThatPasses(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("only root has a small disk at hand:", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	ballast := filepath.Join(dir, "ballast")
	fill := func() { // what is left
		f, err := os.Create(ballast)
		require.NoError(t, err)
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		require.NoError(t, f.Close())
	}
	fill()
	_, err := diskbackend.Open(filepath.Join(dir, "state"))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "make room on its disk")
	require.NoError(t, os.Truncate(ballast, 500_000))

	m, err := diskbackend.Open(filepath.Join(dir, "state"))
	require.NoError(t, err)
	e := win(t, m)
	turn := func(seq uint64) *lease.Turn {
		next := numbered(e, seq)
		for i := range 200 {
			next.Changes = append(next.Changes, spent(lease.Key(fmt.Sprint(seq, "/", i)), 1))
		}
		return next
	}
	seq := uint64(1)
	for ; err == nil; seq++ {
		err = m.Apply(t.Context(), turn(seq))
	}
	seq--
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, fmt.Sprintf("recording turn %d in %s", seq, dir))
	require.ErrorContains(t, err, "make room on its disk")
	require.Equal(t, seq-1, look(t, m).Seq)
	require.ErrorIs(t, m.Apply(t.Context(), turn(seq)), syscall.ENOSPC, "again")
	records, err := m.Load(t.Context(), e, several)
	require.NoError(t, err)
	require.Equal(t, int64(seq-1), records[0].Windows[0].State.Spent, "what there was is there")
	require.NoError(t, os.Remove(ballast))
	require.NoError(t, m.Apply(t.Context(), turn(seq)))
	require.NoError(t, m.Close())
	m, err = diskbackend.Open(filepath.Join(dir, "state"))
	require.NoError(t, err)
	require.Equal(t, seq, hasTurn(t, m))
	require.NoError(t, m.Close())
}
