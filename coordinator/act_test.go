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

// TestResetIsDoneWhileTheMirrorIsInDoubt: what nobody knows counts as fully spent for as long
// as the longest window, and a reset is the way out of that.
func TestResetIsDoneWhileTheMirrorIsInDoubt(t *testing.T) {
	for name, doubt := range map[string]func(*lease.Seat){
		"it has lost records": func(s *lease.Seat) { s.Lost = lease.Doubt{Epoch: 2, At: s.Pulse.Instant} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := config(t, actPolicy)
				memory := coordinator.NewMemory()
				cfg.Mirror, cfg.Elector = memory, memory
				seat := lease.Seat{Epoch: lease.Epoch{Number: 2, Mark: 1}, Partitions: 1, Mirror: 3}
				seat.Pulse.Instant = algo.Instant(time.Now().UnixNano())
				doubt(&seat)
				require.NoError(t, memory.Campaign(t.Context(), lease.Seat{}, seat))
				require.NoError(t, memory.Apply(t.Context(), &lease.Turn{
					Epoch: seat.Epoch, Seq: 1, Instant: seat.Pulse.Instant, Changes: []lease.Change{{Key: "k"}},
				}))
				require.NoError(t, memory.Resign(t.Context(), seat.Epoch))
				lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
					ctx, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					time.Sleep(10 * time.Second) // what leases may hold that nobody remembers has expired
					refused(ctx, t, l, request(1, 0))
					time.Sleep(10 * time.Second) // and is spent
					refused(ctx, t, l, request(3, 0))
					began := time.Now()
					require.Equal(t, 1, act(ctx, t, l, lease.Act{Verb: lease.VerbReset, Key: "k"}).Reset)
					require.Less(t, time.Since(began), time.Second)
					granted(ctx, t, l, request(2, 0))
				})
			})
		})
	}
}

// TestActWhoseAskerHasGoneIsNotDone, however late the mirror lets its turn be taken: who heard
// nothing of it has done otherwise since.
func TestActWhoseAskerHasGoneIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, actPolicy)
		mirror := newGate(coordinator.NewMemory())
		cfg.Mirror, cfg.Elector = mirror, mirror
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			release := mirror.hold()
			go func() { _, _ = l.Acquire(ctx, request(1, time.Minute)) }() // a turn hangs
			synctest.Wait()
			soon, cancel := context.WithTimeout(ctx, time.Second/2)
			defer cancel()
			_, err := l.Act(soon, lease.Act{Verb: lease.VerbPause, Key: "k"})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			time.Sleep(time.Second / 2) // within a seat TTL, after which nobody is served
			release()
			s, err := l.Status(ctx, "k")
			require.NoError(t, err)
			require.Zero(t, s.Stats.Pauses)
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
			synctest.Wait() // no turn is held up but that of the act
			release := mirror.hold()
			done := make(chan error, 2)
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
