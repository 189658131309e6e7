package diskbackend_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/diskbackend"
	"ration/lease"
)

// missed waits until the leader has won the seat anew.
func missed(t *testing.T, l *coordinator.Leader, before lease.Epoch) {
	t.Helper()
	require.Eventually(t, func() bool { return l.Epoch() != before }, time.Minute, 10*time.Millisecond)
}

// asks asks until the mirror is not so slow that who does not wait is told that it is away.
func asks(ctx context.Context, t *testing.T, l *coordinator.Leader, seq uint64) lease.Answer {
	t.Helper()
	for {
		a, err := l.Acquire(ctx, request(seq))
		if errors.Is(err, lease.ErrMirrorAway) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		require.NoError(t, err)
		return a
	}
}

// TestFileThatIsGoneIsMadeAgain: what is written to a file that nobody will find again is
// recorded nowhere. A leader writes all that it knows to a new one, for its successor.
func TestFileThatIsGoneIsMadeAgain(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, dir, old string){
		"the file is taken away":      func(t *testing.T, dir, _ string) { require.NoError(t, os.Remove(filepath.Join(dir, "ration.db"))) },
		"the directory is taken away": func(t *testing.T, dir, old string) { require.NoError(t, os.Rename(dir, old+" folder")) },
		"an older one is put there": func(t *testing.T, dir, old string) {
			require.NoError(t, os.Rename(old, filepath.Join(dir, "ration.db")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, old := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "old")
			m := open(t, dir)
			lead(t, m, func(ctx context.Context, l *coordinator.Leader) {
				asks(ctx, t, l, 1)
				all, err := os.ReadFile(filepath.Join(dir, "ration.db"))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(old, all, 0o600))
				a := asks(ctx, t, l, 2)
				require.Equal(t, lease.Granted, a.Outcome)
				before := l.Epoch()
				harm(t, dir, old)
				missed(t, l, before)
				a = asks(ctx, t, l, 3)
				require.Equal(t, lease.Refused, a.Outcome, "it knows what it granted")
			})
			require.NoError(t, m.Close())
			lead(t, open(t, dir), func(ctx context.Context, l *coordinator.Leader) {
				a := asks(ctx, t, l, 4)
				require.Equal(t, lease.Refused, a.Outcome, "its successor knows too")
			})
		})
	}
}

// TestFileThatAnotherHasMadeIsLeft: who takes the directory away and starts another
// coordinator in it has two. The first one grants nothing more.
func TestFileThatAnotherHasMadeIsLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	m := open(t, dir)
	e := win(t, m)
	require.NoError(t, os.RemoveAll(dir))
	other := open(t, dir)
	require.Eventually(t, func() bool { return m.Renew(t.Context(), e, lease.Pulse{}) != nil }, time.Minute, 10*time.Millisecond)
	require.ErrorIs(t, m.Apply(t.Context(), numbered(e, 1)), lease.ErrLost)
	_, err := m.Load(t.Context(), e, nil)
	require.ErrorIs(t, err, lease.ErrLost)
	_, err = m.Look(t.Context())
	require.ErrorIs(t, err, diskbackend.ErrInUse)
	require.ErrorIs(t, m.Campaign(t.Context(), lease.Seat{}, lease.Seat{}), lease.ErrMoved)

	require.NoError(t, other.Close())
	require.Zero(t, look(t, m).Epoch, "it goes on with what the other has left")
	require.NoError(t, m.Apply(t.Context(), numbered(win(t, m), 1)))
	require.NoError(t, m.Close())
}
