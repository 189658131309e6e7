package coordinator_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
)

func ruled(t *testing.T, rules string) *lease.Policy {
	t.Helper()
	p, err := lease.ParsePolicy("test", []byte("limits: [{key: k, rules: ["+rules+"]}]"))
	require.NoError(t, err)
	return p
}

// TestPolicyOfTheMirrorCountsAndNotThatOfAFile: where the mirror has one, unless it has gone
// back behind what is known.
func TestPolicyOfTheMirrorCountsAndNotThatOfAFile(t *testing.T) {
	file, later := ruled(t, "1/1s"), ruled(t, "2/1s")
	read := func() (lease.PolicyRecord, error) {
		return lease.PolicyRecord{Revision: 7, Text: later.String()}, nil
	}
	for seat, want := range map[uint64]coordinator.InForce{0: {Policy: file}, 7: {Policy: later, Revision: 7}} {
		got, err := coordinator.Force(lease.Seat{Revision: seat}, coordinator.InForce{Policy: file}, read)
		require.NoError(t, err)
		require.Equal(t, want.Revision, got.Revision)
		require.Equal(t, want.Policy.String(), got.Policy.String())
	}
	known := coordinator.InForce{Policy: file, Revision: 8}
	got, err := coordinator.Force(lease.Seat{Revision: 7}, known, read)
	require.NoError(t, err)
	require.Equal(t, known, got)
	_, err = coordinator.Force(lease.Seat{Revision: 9}, coordinator.InForce{Policy: file}, read)
	require.ErrorContains(t, err, "revision 9")
	_, err = coordinator.Force(lease.Seat{Revision: 7}, coordinator.InForce{Policy: file}, func() (lease.PolicyRecord, error) {
		return lease.PolicyRecord{Revision: 7, Text: "limits: [{key: k, later: true}]"}, nil
	})
	require.ErrorIs(t, err, lease.ErrFormat)
}

// TestChangeOutlivesItsLeaderAndOldFiles: one leader changes the policy, and the next one,
// which has another file, goes on with it.
func TestChangeOutlivesItsLeaderAndOldFiles(t *testing.T) {
	m := coordinator.NewMemory()
	lead := func(file *lease.Policy, do func(ctx context.Context, l *coordinator.Leader) error) {
		t.Helper()
		c := coordinator.DefaultConfig(file)
		c.Mirror, c.Elector = m, m
		made, err := coordinator.New(c)
		require.NoError(t, err)
		done := errors.New("done")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, made.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			if err := do(ctx, l); err != nil {
				return err
			}
			return done
		}), done)
	}
	in := func(ctx context.Context, l *coordinator.Leader, rule string, revision uint64) error {
		a, err := l.Acquire(ctx, request(revision*10+uint64(len(rule)), 0))
		switch got := l.Policy(); {
		case err != nil:
			return err
		case got.Revision != revision || got.Policy.Limits[0].Rules[0].String() != rule || a.Policy != revision:
			return fmt.Errorf("revision %d of %s, told %d; not %d of %s", got.Revision, got.Policy, a.Policy, revision, rule)
		}
		return nil
	}
	old, next := ruled(t, "100/1m"), ruled(t, "50/1m")
	lead(old, func(ctx context.Context, l *coordinator.Leader) error {
		if err := in(ctx, l, "100/1m", 1); err != nil {
			return err
		}
		for range 2 {
			if revision, err := l.Change(ctx, next, 0); err != nil || revision != 2 {
				return fmt.Errorf("revision %d, %w", revision, err)
			}
		}
		return in(ctx, l, "50/1m", 2)
	})
	lead(old, func(ctx context.Context, l *coordinator.Leader) error {
		if err := in(ctx, l, "50/1m", 2); err != nil {
			return err
		}
		_, err := l.Change(ctx, ruled(t, "40/1m"), 9)
		return err
	})
	lead(old, func(ctx context.Context, l *coordinator.Leader) error { return in(ctx, l, "40/1m", 9) })
}

// TestLeaderLeadsAnewWhereThePolicySaysOtherwiseOfTheMirror: it goes on without it only then.
func TestLeaderLeadsAnewWhereThePolicySaysOtherwiseOfTheMirror(t *testing.T) {
	m := coordinator.NewMemory()
	c := coordinator.DefaultConfig(ruled(t, "100/1m"))
	c.Mirror, c.Elector = m, m
	made, err := coordinator.New(c)
	require.NoError(t, err)
	available, err := lease.ParsePolicy("test", []byte("mirror: available\nlimits: [{key: k, rules: [100/1m]}]"))
	require.NoError(t, err)
	done, led := errors.New("done"), 0
	require.ErrorIs(t, made.Run(t.Context(), func(ctx context.Context, l *coordinator.Leader) error {
		if led++; led == 2 {
			if l.Policy().Policy.Mirror != lease.AvailableMirror {
				return errors.New("it is strict still")
			}
			return done
		}
		if _, err := l.Change(ctx, available, 0); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}), done)
}

// TestChangeIsToldWhenItIsRecorded, and not before; one whose asker has gone before it is taken
// up is not done.
func TestChangeIsToldWhenItIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, actPolicy)
		mirror := newGate(coordinator.NewMemory())
		cfg.Mirror, cfg.Elector = mirror, mirror
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			granted(ctx, t, l, request(1, 0))
			release := mirror.hold()
			go func() { _, _ = l.Acquire(ctx, request(2, time.Minute)) }() // a turn hangs
			synctest.Wait()
			soon, cancel := context.WithTimeout(ctx, time.Second/2)
			defer cancel()
			_, err := l.Change(soon, ruled(t, "20/1h"), 0)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			release()
			require.Equal(t, int64(8), free(ctx, t, l))
			require.Equal(t, uint64(1), l.Policy().Revision)

			release = mirror.hold()
			done := make(chan error, 1)
			go func() {
				_, err := l.Change(ctx, ruled(t, "30/1h"), 0)
				done <- err
			}()
			synctest.Wait()
			require.Empty(t, done)
			require.Equal(t, uint64(1), l.Policy().Revision)
			release()
			require.NoError(t, <-done)
			require.Equal(t, uint64(2), l.Policy().Revision)
			require.Equal(t, int64(28), free(ctx, t, l))
		})
	})
}

// TestChangeWaitsUntilTheMirrorHasCaughtUp: under a policy that goes on without it, what it
// lacks is of the policy before.
func TestChangeWaitsUntilTheMirrorHasCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, mirror, _ := availably(t, actPolicy, "fails")
		next, err := lease.ParsePolicy("test", []byte("mirror: available\nlimits: [{key: k, rules: [20/1h]}]"))
		require.NoError(t, err)
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			granted(ctx, t, l, request(1, 0))
			mirror.away.Store(true)
			granted(ctx, t, l, request(2, 0))
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := l.Change(soon, next, 0)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			done := make(chan error, 1)
			go func() {
				_, err := l.Change(ctx, next, 0)
				done <- err
			}()
			granted(ctx, t, l, request(3, 0))
			require.Empty(t, done)
			require.Equal(t, int64(7), free(ctx, t, l))
			mirror.away.Store(false)
			require.NoError(t, <-done)
			require.Equal(t, int64(17), free(ctx, t, l))
		})
	})
}

// TestNobodyIsGrantedMoreOnceTheChangeIsTold (B100): 10 of a million are used, and a hundred ask
// while it becomes one.
func TestNobodyIsGrantedMoreOnceTheChangeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, `limits: [{key: k, rules: [1000000/1d]}]`)
		memory := coordinator.NewMemory()
		cfg.Mirror, cfg.Elector = memory, memory
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			for seq := range uint64(10) {
				granted(ctx, t, l, request(seq+1, 0))
			}
			var told atomic.Bool
			var before, after atomic.Int64
			var callers sync.WaitGroup
			for n := range 100 {
				r := request(0, 0)
				r.ID.Holder.Name = fmt.Sprint("holder", n)
				callers.Go(func() {
					for asked := 0; asked < 10; r.ID.Seq++ {
						count := &before
						if told.Load() {
							asked, count = asked+1, &after
						}
						a, err := l.Acquire(ctx, r)
						if err != nil {
							t.Error(err)
						}
						if a.Outcome == lease.Granted {
							count.Add(1)
						}
					}
				})
			}
			_, err := l.Change(ctx, ruled(t, "1/1d"), 0)
			told.Store(true)
			require.NoError(t, err)
			callers.Wait()
			require.Zero(t, after.Load())
			s, err := l.Status(ctx, "k")
			require.NoError(t, err)
			w := s.Keys[0].Windows[0]
			require.Equal(t, []int64{1, 0, 10 + before.Load()}, []int64{w.Limit, w.Free, w.Held + w.Spent})
		})
	})
}

// TestLeaderOutlivesItsOwnChange: a renewal that names the policy before may come to the mirror
// after the turn of the change.
func TestLeaderOutlivesItsOwnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, actPolicy)
		mirror := &slowRenewals{Memory: coordinator.NewMemory()}
		cfg.Mirror, cfg.Elector = mirror, mirror
		next := ruled(t, "20/1h")
		require.Equal(t, 1, leadings(t, cfg, func(ctx context.Context, l *coordinator.Leader) error {
			under := make(chan struct{})
			mirror.wait.Store(&under)
			time.Sleep(2 * cfg.RenewEvery) // one is under way
			_, err := l.Change(ctx, next, 0)
			mirror.wait.Store(nil)
			close(under)
			time.Sleep(10 * cfg.RenewEvery)
			return err
		}))
		require.Equal(t, int32(1), mirror.late.Load())
	})
}

// TestLeaderOfAPolicyThatIsNoMoreInForceLeadsAnew: whoever has put another into force.
func TestLeaderOfAPolicyThatIsNoMoreInForceLeadsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, actPolicy)
		memory := coordinator.NewMemory()
		cfg.Mirror, cfg.Elector = memory, memory
		other := &lease.PolicyRecord{Revision: 9, Text: ruled(t, "20/1h").String()}
		require.Equal(t, 2, leadings(t, cfg, func(ctx context.Context, l *coordinator.Leader) error {
			if l.Policy().Revision == other.Revision {
				return nil
			}
			if _, err := l.Acquire(ctx, request(1, 0)); err != nil { // the policy is recorded
				return err
			}
			seat, err := memory.Look(ctx)
			if err == nil {
				err = memory.Apply(ctx, &lease.Turn{Epoch: seat.Epoch, Seq: seat.Seq + 1, Instant: seat.Pulse.Instant, Policy: other})
			}
			if err == nil {
				<-ctx.Done()
				err = ctx.Err()
			}
			return err
		}))
	})
}

// leadings runs a coordinator, and says how often it led until f was done with a leader that
// had not lost its seat.
func leadings(t *testing.T, cfg coordinator.Config, f func(context.Context, *coordinator.Leader) error) (led int) {
	t.Helper()
	made, err := coordinator.New(cfg)
	require.NoError(t, err)
	done := errors.New("done")
	require.ErrorIs(t, made.Run(t.Context(), func(ctx context.Context, l *coordinator.Leader) error {
		led++
		if err := f(ctx, l); err != nil || ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		return done
	}), done)
	return led
}

// slowRenewals is a mirror that lets renewals wait.
type slowRenewals struct {
	*coordinator.Memory
	wait atomic.Pointer[chan struct{}]
	late atomic.Int32 // that came after a policy
}

func (m *slowRenewals) Renew(ctx context.Context, e lease.Epoch, p lease.Pulse) error {
	if wait := m.wait.Load(); wait != nil {
		<-*wait
	}
	err := m.Memory.Renew(ctx, e, p)
	if errors.Is(err, lease.ErrPolicy) {
		m.late.Add(1)
	}
	return err
}
