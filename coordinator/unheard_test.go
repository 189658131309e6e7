package coordinator_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
)

// unheard is a mirror that, once it is told to, lets a campaign win and its answer be lost.
type unheard struct {
	*coordinator.Memory
	next atomic.Bool
}

func (u *unheard) Campaign(ctx context.Context, seen, next lease.Seat) error {
	err := u.Memory.Campaign(ctx, seen, next)
	if u.next.CompareAndSwap(true, false) {
		time.Sleep(300 * time.Millisecond) // in which the seat is renewed, under the epoch before
		return errors.New("away")
	}
	return err
}

// TestLeaderThatHasWonUnheardStays: its mirror forgot, it has won the seat back, and has had
// no answer. A renewal under the epoch before is fenced then, by itself; what it knows must
// not be given up for that, since nobody else knows it.
func TestLeaderThatHasWonUnheardStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, `limits: [{key: "{k}", rules: [2/1h]}]`)
		mirror := &unheard{Memory: coordinator.NewMemory()}
		cfg.Mirror, cfg.Elector = mirror, mirror
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			_, err := l.Acquire(ctx, request(1, 0))
			require.NoError(t, err)
			before := l.Epoch()
			mirror.Forget()
			mirror.next.Store(true)
			a, err := l.Acquire(ctx, request(2, time.Minute))
			require.NoError(t, err, "it still leads")
			require.False(t, mirror.next.Load())
			require.Equal(t, lease.Granted, a.Outcome, "and knows that one is left")
			require.Greater(t, l.Epoch().Number, before.Number)
			a, err = l.Acquire(ctx, request(3, 0))
			require.NoError(t, err)
			require.Equal(t, lease.Refused, a.Outcome)
		})
	})
}

// TestAnyOfItsBidsMayHaveWon: a campaign that nobody answered may be carried out after the
// next one was begun.
func TestAnyOfItsBidsMayHaveWon(t *testing.T) {
	policy, err := lease.ParsePolicy("policy", []byte("limits: [{key: k, rules: [2/1h]}]"))
	require.NoError(t, err)
	ledger := lease.NewLedger(policy, lease.DefaultConfig())
	course := coordinator.NewCourse(lease.Seat{Epoch: lease.Epoch{Number: 5, Mark: 50}, Fresh: true}, ledger, 0)
	heard := coordinator.Heard{Connected: true}
	first, won, err := course.Bid(ledger, lease.Seat{}, heard, 0, 0, 60)
	require.NoError(t, err)
	require.False(t, won)
	second, won, err := course.Bid(ledger, lease.Seat{}, heard, 0, 0, 70)
	require.NoError(t, err)
	require.False(t, won)
	require.Greater(t, second.Epoch.Number, first.Epoch.Number)
	for _, seen := range []lease.Seat{first, second} {
		next, won, err := course.Bid(ledger, seen, heard, 0, 0, 80)
		require.NoError(t, err, "epoch %d is its own", seen.Epoch.Number)
		require.True(t, won)
		require.Equal(t, seen.Epoch, next.Epoch)
	}
	_, _, err = course.Bid(ledger, lease.Seat{Epoch: lease.Epoch{Number: first.Epoch.Number, Mark: 61}}, heard, 0, 0, 80)
	require.ErrorIs(t, err, lease.ErrFenced, "another has led under this number")
}
