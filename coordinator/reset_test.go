package coordinator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

// TestResetClockTakesTheWallClock: calendar time that follows a wall clock which is an hour
// apart, by a thousandth, is that clock at once; guards are as they were; and the next leader
// goes on from there.
func TestResetClockTakesTheWallClock(t *testing.T) {
	for _, apart := range []time.Duration{time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			cfg := config(t, `limits: [{key: k, rules: [10/1m fixed]}]`)
			memory := coordinator.NewMemory()
			cfg.Mirror, cfg.Elector = memory, memory
			began := algo.Instant(time.Now().Add(-apart).UnixNano())
			seat := lease.Seat{Epoch: lease.Epoch{Number: 1, Mark: 1}, Partitions: 1, Mirror: 3}
			require.NoError(t, memory.Campaign(t.Context(), lease.Seat{}, seat))
			require.NoError(t, memory.Renew(t.Context(), seat.Epoch, lease.Pulse{Beat: 1, Instant: began, Wall: algo.Instant(time.Now().UnixNano())}))
			require.NoError(t, memory.Resign(t.Context(), seat.Epoch))
			clock := func(ctx context.Context, l *coordinator.Leader) lease.Clock {
				s, err := l.Summary(ctx)
				require.NoError(t, err)
				return s.Clock
			}
			lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
				before := clock(ctx, l)
				require.InDelta(t, apart, before.Ahead, float64(time.Minute))
				require.NotZero(t, before.Wider)
				r, err := l.ResetClock(ctx)
				require.NoError(t, err)
				require.InDelta(t, apart, r.Moved, float64(time.Minute))
				require.Equal(t, before.Wider, r.Wider)
				require.Zero(t, clock(ctx, l).Ahead)
				require.Zero(t, clock(ctx, l).Wider)
				r, err = l.ResetClock(ctx)
				require.NoError(t, err)
				require.Zero(t, r.Moved)
				now, err := memory.Look(ctx)
				require.NoError(t, err)
				require.InDelta(t, apart, now.Dial.Offset, float64(time.Minute), "it is mirrored")
			})
			lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
				require.Zero(t, clock(ctx, l).Ahead)
			})
		})
	}
}

// TestResetClockIsToldWhenItIsRecorded, and not before.
func TestResetClockIsToldWhenItIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, `limits: [{key: k, rules: [10/1m fixed]}]`)
		mirror := newGate(coordinator.NewMemory())
		cfg.Mirror, cfg.Elector = mirror, mirror
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			release := mirror.hold()
			done := make(chan error, 1)
			go func() {
				_, err := l.ResetClock(ctx)
				done <- err
			}()
			synctest.Wait()
			require.Empty(t, done)
			release()
			require.NoError(t, <-done)
		})
	})
}

// TestResetClockIsNotToldWithoutTheMirror: under a policy that goes on without it, one that is
// not recorded fails, the one that finds the mirror away as those after it.
func TestResetClockIsNotToldWithoutTheMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, mirror, _ := availably(t, `limits: [{key: k, rules: [10/1m fixed]}]`, "fails")
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			granted(ctx, t, l, request(1, 0))
			mirror.away.Store(true)
			for range 3 {
				_, err := l.ResetClock(ctx)
				require.ErrorIs(t, err, lease.ErrMirrorAway)
			}
			mirror.away.Store(false)
			caughtUp(t, l)
			_, err := l.ResetClock(ctx)
			require.NoError(t, err)
		})
	})
}
