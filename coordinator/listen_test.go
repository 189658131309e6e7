package coordinator_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
)

// heeding runs a coordinator that hears what hear gives, for f, and hands over each leader.
func heeding(t *testing.T, cfg coordinator.Config, hear func() coordinator.Heard, f func(ctx context.Context, t *testing.T, c *coordinator.Coordinator, leaders <-chan *coordinator.Leader)) {
	cfg.Hear = func(lease.Seat) coordinator.Heard { return hear() }
	c, err := coordinator.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	leaders, done := make(chan *coordinator.Leader, 100), make(chan error, 1)
	go func() {
		done <- c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			leaders <- l
			<-ctx.Done()
			return nil
		})
	}()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()
	f(ctx, t, c, leaders)
}

// listening is a coordinator over a mirror in memory that hears what it is told to, and at
// first that it is alone.
type listening struct {
	coordinator.Config
	memory  *coordinator.Memory
	hears   func(coordinator.Heard)
	leaders <-chan *coordinator.Leader
}

// hearing runs one under a policy, in a bubble of its own time, for f.
func hearing(t *testing.T, policy string, f func(ctx context.Context, t *testing.T, c listening)) {
	synctest.Test(t, func(t *testing.T) {
		var heard atomic.Pointer[coordinator.Heard]
		c := listening{Config: config(t, policy), memory: coordinator.NewMemory(), hears: func(h coordinator.Heard) { heard.Store(&h) }}
		c.Mirror, c.Elector = c.memory, c.memory
		c.hears(coordinator.Heard{Connected: true})
		heeding(t, c.Config, func() coordinator.Heard { return *heard.Load() }, func(ctx context.Context, t *testing.T, _ *coordinator.Coordinator, leaders <-chan *coordinator.Leader) {
			c.leaders = leaders
			f(ctx, t, c)
		})
	})
}

// TestLeaderOfASplitMirrorStops: another is heard to lead under no lower epoch, though this
// side of the mirror takes all that it is given. It answers nothing then, and does not lead
// again, while the other does, but under a higher one. A word that was late, or of a lower
// epoch, is none.
func TestLeaderOfASplitMirrorStops(t *testing.T) {
	for name, above := range map[string]uint64{"a higher epoch": 1, "the same": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := config(t, `limits: [{key: k, rules: [9/1h]}]`)
				memory := coordinator.NewMemory()
				cfg.Mirror, cfg.Elector = memory, memory
				before := seatAt(5, 1, 0)
				require.NoError(t, memory.Campaign(t.Context(), lease.Seat{}, before))
				require.NoError(t, memory.Resign(t.Context(), before.Epoch))
				var led atomic.Uint64
				hear := func() coordinator.Heard {
					return coordinator.Heard{Connected: true, Number: led.Load(), Led: led.Load()}
				}
				heeding(t, cfg, hear, func(ctx context.Context, t *testing.T, _ *coordinator.Coordinator, leaders <-chan *coordinator.Leader) {
					l := <-leaders
					own := l.Epoch().Number
					led.Store(own - 1) // as a leader says that was paused
					time.Sleep(10 * time.Second)
					granted(ctx, t, l, request(1, 0))
					led.Store(own + above)
					time.Sleep(900 * time.Millisecond)
					led.Store(0)
					time.Sleep(10 * time.Second)
					granted(ctx, t, l, request(2, 0))
					led.Store(own + above)
					time.Sleep(time.Second + 3*cfg.RenewEvery)
					_, err := l.Acquire(ctx, request(3, 0))
					require.ErrorIs(t, err, lease.ErrStopped)
					time.Sleep(10 * cfg.Seat.TTL)
					if above > 0 {
						require.Empty(t, leaders)
						led.Store(0)
					}
					l = <-leaders
					granted(ctx, t, l, request(4, 0))
					require.Greater(t, l.Epoch().Number, own)
				})
			})
		})
	}
}

// TestEpochThatWasWonBackIsTold: others compare it with theirs.
func TestEpochThatWasWonBackIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, `limits: [{key: k, rules: [9/1h]}]`)
		memory := coordinator.NewMemory()
		cfg.Mirror, cfg.Elector = memory, memory
		hear := func() coordinator.Heard { return coordinator.Heard{Connected: true} }
		heeding(t, cfg, hear, func(ctx context.Context, t *testing.T, c *coordinator.Coordinator, leaders <-chan *coordinator.Leader) {
			l := <-leaders
			before := l.Epoch().Number
			memory.Forget()
			granted(ctx, t, l, request(1, 0))
			require.Greater(t, l.Epoch().Number, before)
			time.Sleep(2 * cfg.RenewEvery)
			number, _, leads := c.Known()
			require.Equal(t, l.Epoch().Number, number)
			require.True(t, leads)
		})
	})
}

// black is an elector that never answers a renewal.
type black struct{ *coordinator.Memory }

func (black) Renew(ctx context.Context, _ lease.Epoch, _ lease.Pulse) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestDeafnessIsNoMatterOfTheMirror: a mirror that hangs makes neither a lapse of the network
// a lasting one, nor lets one that lasts go unnoticed.
func TestDeafnessIsNoMatterOfTheMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, `limits: [{key: k, rules: [9/1h]}]`)
		memory := coordinator.NewMemory()
		cfg.Mirror, cfg.Elector = memory, black{memory}
		began := time.Now()
		var deaf atomic.Bool
		hear := func() coordinator.Heard { // every other 300 ms are a lapse
			return coordinator.Heard{Connected: !deaf.Load() && time.Since(began)/(300*time.Millisecond)%2 == 0}
		}
		heeding(t, cfg, hear, func(ctx context.Context, t *testing.T, _ *coordinator.Coordinator, leaders <-chan *coordinator.Leader) {
			l := <-leaders
			time.Sleep(time.Minute)
			granted(ctx, t, l, request(1, 0))
			deaf.Store(true)
			time.Sleep(cfg.Seat.TTL/4 + 3*cfg.RenewEvery)
			_, err := l.Acquire(ctx, request(2, 0))
			require.ErrorIs(t, err, lease.ErrStopped)
		})
	})
}
