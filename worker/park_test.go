package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// parked waits until all lanes of w are parked.
func parked(t *testing.T, w *Worker) {
	t.Helper()
	time.Sleep(2 * w.cfg.Park)
	synctest.Wait()
	require.Empty(t, w.allLanes())
}

// Who keeps a limiter over a long pause hears recalls all the same: others who
// want its slots get their share.
func TestALimiterKeptWhileItsLaneWasParkedHearsRecalls(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [1000/1s, 2 concurrent]}]", func(t *testing.T, s *scripted) {
		a, b := s.start(t, "a"), s.start(t, "b")
		kept, other := a.Limiter("k"), b.Limiter("k")
		h, err := kept.Acquire(t.Context(), 1)
		require.NoError(t, err)
		h.Finish()
		parked(t, a)

		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		work := func(l *Limiter, n *atomic.Int64) {
			for {
				h, err := l.Acquire(ctx, 1)
				if err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
				n.Add(1)
				h.Finish()
			}
		}
		var ofA, ofB atomic.Int64
		for range 8 {
			go work(kept, &ofA)
		}
		time.Sleep(100 * time.Millisecond)
		for range 8 {
			go work(other, &ofB)
		}
		<-ctx.Done()
		time.Sleep(time.Second)
		synctest.Wait()
		require.NotZero(t, a.Stats().Recalls)
		require.Greater(t, ofB.Load(), ofA.Load()/2, "b ran too little beside a's %d", ofA.Load())
		s.end(t, a, b)
	})
}

// All limiters of a key share its tokens, whichever is used first after a pause,
// and by whichever call: what one's request brought, the other has at hand.
func TestLimitersOfAKeyShareItsTokensAfterItsLaneWasParked(t *testing.T) {
	wait := func(t *testing.T, l *Limiter) { require.NoError(t, l.Wait(t.Context())) }
	allow := func(t *testing.T, l *Limiter) {
		require.False(t, l.Allow(), "nothing is at hand yet")
		synctest.Wait()
		require.True(t, l.Allow())
	}
	acquire := func(t *testing.T, l *Limiter) {
		h, err := l.Acquire(t.Context(), 1)
		require.NoError(t, err)
		h.Finish()
	}
	for name, use := range map[string]func(*testing.T, *Limiter){"Wait": wait, "Allow": allow, "Acquire": acquire} {
		for _, keptFirst := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, err := New(generous(1000), DefaultConfig())
					require.NoError(t, err)
					defer func() { require.NoError(t, w.Close(context.Background())) }()
					kept := w.Limiter("k")
					wait(t, kept)
					parked(t, w)
					first, second := kept, w.Limiter("k")
					if !keptFirst {
						first, second = second, first
					}
					use(t, first)
					synctest.Wait()
					before := w.Stats()
					require.True(t, second.Allow(), "the other has what is at hand")
					require.Equal(t, before.Granted, w.Stats().Granted)
					require.Len(t, w.allLanes(), 1)
				})
			})
		}
	}
}

// relieved is a lessor whose contract has a concurrency rule until it is told.
type relieved struct {
	generous
	told *atomic.Bool
}

func (l relieved) Acquire(_ context.Context, r lease.Request) (lease.Answer, error) {
	if l.told.Load() {
		return granted(r, 100, 0, rate), nil
	}
	return granted(r, 1, 1, capped), nil
}

// What a parked lane knew is forgotten with it: an Allow that is kept finds out
// that the key has no concurrency rule any more.
func TestAllowFindsOutWhatChangedSinceItsLaneWasParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lessor := relieved{told: new(atomic.Bool)}
		w, err := New(lessor, DefaultConfig())
		require.NoError(t, err)
		defer func() { require.NoError(t, w.Close(context.Background())) }()
		l := w.Limiter("k")
		h, err := l.Acquire(t.Context(), 1)
		require.NoError(t, err)
		h.Finish()
		require.False(t, l.Allow())
		lessor.told.Store(true)
		parked(t, w)
		require.False(t, l.Allow(), "it asks")
		synctest.Wait()
		require.True(t, l.Allow())
	})
}

// A handle may outlive its lane: its end changes nothing any more, and does not
// give the key a second lane.
func TestAHandleThatOutlivesItsLaneEndsInPeace(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1h]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		for _, end := range []func(*Handle){
			(*Handle).Finish, (*Handle).Cancel, (*Handle).Abandon,
			func(h *Handle) { require.NoError(t, h.Settle(1)) },
		} {
			h, err := w.Limiter("k").Acquire(t.Context(), 1)
			require.NoError(t, err)
			parked(t, w)
			end(h)
			require.ErrorIs(t, h.Context().Err(), context.Canceled)
			require.Empty(t, w.allLanes())
		}
		require.EqualValues(t, 4, w.Stats().Spent)
		s.end(t, w)
	})
}

func TestALimiterThatIsNeverUsedLeavesMemoryToo(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		time.Sleep(time.Hour) // a lane's pause begins with its making
		l := w.Limiter("k")
		time.Sleep(w.cfg.Park - w.cfg.Heartbeat)
		require.Len(t, w.allLanes(), 1)
		parked(t, w)
		_, ok := w.lanes.Load(laneKey{keys: "k"})
		require.False(t, ok)
		require.NoError(t, l.Wait(t.Context()))
		require.Len(t, w.allLanes(), 1)
		s.end(t, w)
	})
}
