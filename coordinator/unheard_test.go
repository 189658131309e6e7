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
