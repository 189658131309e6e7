package coordinator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
)

const actPolicy = `limits: [{key: k, rules: [10/1h]}]`

// TestActSurvivesItsLeader: a pause binds under the next leader from the first request on, and
// a charge that is told again there counts once; a reset is of all that the mirror has.
func TestActSurvivesItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, actPolicy)
		memory := coordinator.NewMemory()
		cfg.Mirror, cfg.Elector = memory, memory
		charge := lease.Act{Verb: lease.VerbCharge, Key: "k", ID: "a", N: 4}
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			act(ctx, t, l, charge)
			p := act(ctx, t, l, lease.Act{Verb: lease.VerbPause, Key: "k", Reason: "so", By: "alice"}).Pause
			require.Equal(t, "so", p.Reason)
		})
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			a, err := l.Acquire(ctx, request(1, 0))
			require.NoError(t, err)
			require.ErrorIs(t, a.Refusal.Reason, lease.ErrPaused)
			require.Equal(t, "alice", a.Refusal.Pause.By)
			require.True(t, act(ctx, t, l, charge).Again)
			require.Equal(t, int64(6), free(ctx, t, l))
			require.NotNil(t, act(ctx, t, l, lease.Act{Verb: lease.VerbResume, Key: "k"}).Pause)
			granted(ctx, t, l, request(2, 0))
		})
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			granted(ctx, t, l, request(3, 0))
			require.Equal(t, 1, act(ctx, t, l, lease.Act{Verb: lease.VerbReset, Key: "k"}).Reset)
			require.GreaterOrEqual(t, free(ctx, t, l), int64(8))
		})
	})
}

// TestActIsToldWhenItIsRecorded, and not before; one that cannot be done says why.
func TestActIsToldWhenItIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, actPolicy)
		mirror := newGate(coordinator.NewMemory())
		cfg.Mirror, cfg.Elector = mirror, mirror
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			release := mirror.hold()
			done := make(chan error, 1)
			go func() {
				_, err := l.Act(ctx, lease.Act{Verb: lease.VerbPause, Key: "k", For: time.Minute})
				done <- err
			}()
			synctest.Wait()
			require.Empty(t, done)
			release()
			require.NoError(t, <-done)
			_, err := l.Act(ctx, lease.Act{Verb: lease.VerbCharge, Key: "other", ID: "a", N: 1})
			require.ErrorIs(t, err, lease.ErrUnknownKey)
			_, err = l.Act(ctx, lease.Act{Verb: "stop", Key: "k"})
			require.ErrorIs(t, err, lease.ErrBadRequest)
		})
	})
}

// TestActIsNotToldWithoutTheMirror: under a policy that goes on without it, as of a reset of
// the clock; told again when it is back, a charge has counted once.
func TestActIsNotToldWithoutTheMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, mirror, _ := availably(t, actPolicy, "fails")
		charge := lease.Act{Verb: lease.VerbCharge, Key: "k", ID: "a", N: 4}
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			granted(ctx, t, l, request(1, 0))
			mirror.away.Store(true)
			for range 3 {
				_, err := l.Act(ctx, charge)
				require.ErrorIs(t, err, lease.ErrMirrorAway)
			}
			mirror.away.Store(false)
			caughtUp(t, l)
			act(ctx, t, l, charge)
			require.Equal(t, int64(5), free(ctx, t, l))
		})
	})
}

func act(ctx context.Context, t *testing.T, l *coordinator.Leader, a lease.Act) lease.Acted {
	t.Helper()
	acted, err := l.Act(ctx, a)
	require.NoError(t, err)
	return acted
}

func free(ctx context.Context, t *testing.T, l *coordinator.Leader) int64 {
	t.Helper()
	s, err := l.Status(ctx, "k")
	require.NoError(t, err)
	require.Len(t, s.Keys, 1)
	return s.Keys[0].Windows[0].Free
}
