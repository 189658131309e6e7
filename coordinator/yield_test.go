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

// TestLeaderHandsOverInOrder: it resigns once all is answered, leaves the seat to the
// claimant, and stands by; who is not claimed for takes it after a quarter of the TTL.
func TestLeaderHandsOverInOrder(t *testing.T) {
	for name, taken := range map[string]bool{"the claimant takes it": true, "nobody does, and it leads again": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := coordinator.NewMemory()
				var claims, joined atomic.Bool // of the other
				var given atomic.Int64
				first := config(t, `limits: [{key: "{k}", rules: [1/1h]}]`)
				first.Mirror, first.Elector = memory, memory
				first.Hear = func(lease.Seat) coordinator.Heard { return coordinator.Heard{Connected: true, Left: claims.Load()} }
				first.Yield = func() string {
					if claims.Load() && given.Add(1) == 1 {
						return "other"
					}
					return ""
				}
				other := first
				other.Hear = func(lease.Seat) coordinator.Heard { return coordinator.Heard{Connected: joined.Load()} }
				other.Yield = nil

				led := make(chan string, 10)
				serve := func(name string) func(context.Context, *coordinator.Leader) error {
					return func(ctx context.Context, l *coordinator.Leader) error {
						led <- name
						<-ctx.Done()
						a, err := l.Acquire(context.WithoutCancel(ctx), of(lease.Key(name), 1))
						require.NoError(t, err, "what it was asked before it is over is answered")
						require.NotZero(t, a.Outcome)
						return nil
					}
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 2)
				for name, cfg := range map[string]coordinator.Config{"first": first, "other": other} {
					c, err := coordinator.New(cfg)
					require.NoError(t, err)
					go func() { ended <- c.Run(ctx, serve(name)) }()
				}
				require.Equal(t, "first", <-led)
				joined.Store(taken)
				claims.Store(true)
				began := time.Now()
				next := <-led
				passed := time.Since(began)
				if taken {
					require.Equal(t, "other", next)
					require.LessOrEqual(t, passed, first.RenewEvery+first.LookEvery)
				} else {
					require.Equal(t, "first", next)
					require.GreaterOrEqual(t, passed, first.Seat.TTL/4)
					require.LessOrEqual(t, passed, first.Seat.TTL/4+first.RenewEvery+2*first.LookEvery)
				}
				claims.Store(false)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Empty(t, led, "it stays where it is")
				stop()
				require.NoError(t, <-ended)
				require.NoError(t, <-ended)
			})
		})
	}
}

func TestClaimedSeatIsLeftForAQuarterOfTheTTLOnly(t *testing.T) {
	w := newWatcher(t)
	w.heard.Left = true
	w.watch(time.Second, seatAt(3, 1, 0))
	s := seatAt(3, 1, 0)
	s.Vacant = true
	_, after, campaigned := w.watch(time.Minute, s)
	require.True(t, campaigned)
	require.Equal(t, 500*time.Millisecond, after, "a seat that is left to somebody dead is taken")

	w = newWatcher(t) // of a leader that died, a claim changes nothing
	w.heard.Left, w.heard.Silent = true, true
	w.watch(time.Second, seatAt(3, 1, 0))
	_, after, campaigned = w.watch(time.Minute, seatAt(3, 2, 0))
	require.True(t, campaigned)
	require.Equal(t, 100*time.Millisecond, after)
}

// TestAnotherNumberOfPartitionsIsRefused: also beside a leader that is well, so that
// nobody stands by who could never lead.
func TestAnotherNumberOfPartitionsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordinator.NewMemory()
		cfg := config(t, `limits: [{key: "{k}", rules: [1/1h]}]`)
		cfg.Mirror, cfg.Elector, cfg.Seat.Partitions = memory, memory, 4
		other := cfg
		other.Seat.Partitions = 8
		lead(t, cfg, func(ctx context.Context, t *testing.T, _ *coordinator.Leader) {
			c, err := coordinator.New(other)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			err = c.Run(ctx, func(context.Context, *coordinator.Leader) error { panic("it leads") })
			require.ErrorIs(t, err, lease.ErrPartitions)
			require.ErrorContains(t, err, "its mirror has 4, this coordinator 8; start it with --partitions 4")
			select {
			case <-c.Agreed():
				t.Fatal("it agrees")
			default:
			}
		})
	})
}

// TestAgreementIsKnownFromASeatOrByWinningOne: until then nobody may lead another
// partition of the cell.
func TestAgreementIsKnownFromASeatOrByWinningOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordinator.NewMemory()
		cfg := config(t, `limits: [{key: "{k}", rules: [1/1h]}]`)
		cfg.Mirror, cfg.Elector = memory, memory
		deaf := cfg
		deaf.Hear = func(lease.Seat) coordinator.Heard { return coordinator.Heard{} }
		standby, err := coordinator.New(deaf)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- standby.Run(ctx, func(context.Context, *coordinator.Leader) error { panic("it leads") })
		}()
		time.Sleep(time.Second)
		require.True(t, standby.Well())
		select {
		case <-standby.Agreed():
			t.Fatal("there is no seat yet")
		default:
		}
		c, err := coordinator.New(cfg)
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context(), func(context.Context, *coordinator.Leader) error {
			<-c.Agreed()
			<-standby.Agreed()
			return nil
		}))
		stop()
		require.NoError(t, <-ended)
	})
}
