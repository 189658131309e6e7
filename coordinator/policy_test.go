package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
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
