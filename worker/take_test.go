package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// generous is a lessor that grants so many tokens to everybody.
type generous int64

func (g generous) Acquire(_ context.Context, r lease.Request) (lease.Answer, error) {
	return granted(r, int64(g), 0, rate), nil
}

func (generous) Report(context.Context, lease.Report) (lease.Reply, error) {
	return lease.Reply{}, nil
}

func (generous) Recalls(ctx context.Context, _ lease.Holder, _ func(lease.Recall)) error {
	<-ctx.Done()
	return nil
}

// A process may be stopped between the take and the reading of the clock, and
// find out. Were the clock read first, it could be stopped after that for any
// time, and would spend of a lease that is over.
func TestClockIsReadAfterTheTake(t *testing.T) {
	for name, spend := range map[string]func(*Limiter) bool{
		"AllowN": func(l *Limiter) bool { return l.AllowN(3) },
		"WaitN":  func(l *Limiter) bool { return l.WaitN(context.Background(), 3) == nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err := New(generous(losable*10), DefaultConfig())
				require.NoError(t, err)
				defer func() { require.NoError(t, w.Close(context.Background())) }()
				var stop func() // called where the clock is read
				w.clock.origin = 0
				w.clock.boot = func() (time.Duration, bool) {
					at := time.Since(w.clock.base)
					if stop != nil {
						stop()
					}
					return at, true
				}
				l := w.Limiter("k")
				require.NoError(t, l.Wait(t.Context()))
				synctest.Wait()
				h := l.lane.Load().pool.live.Load()
				require.NotNil(t, h, "there are tokens at hand")

				before, atReading := h.left(), int64(-1)
				stop = func() { atReading = h.left() }
				w.clock.looked.Store(-int64(time.Second)) // so that this reading looks
				require.True(t, spend(l))
				stop = nil
				require.Equal(t, before-3, atReading, "tokens at hand when the clock was read")
			})
		})
	}
}

func TestWhatIsSeenBeforeTheClockIsReadIsNoSpend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(generous(losable*10), DefaultConfig())
		require.NoError(t, err)
		defer func() { require.NoError(t, w.Close(context.Background())) }()
		var look func() // called where the clock is read
		w.clock.origin = 0
		w.clock.boot = func() (time.Duration, bool) {
			at := time.Since(w.clock.base)
			if look != nil {
				look()
			}
			return at, true
		}
		l := w.Limiter("k")
		require.NoError(t, l.Wait(t.Context()))
		synctest.Wait()
		lane := l.lane.Load()
		h := lane.pool.live.Load()
		require.NotNil(t, h, "there are tokens at hand")

		before := h.left()
		look = func() {
			look = nil
			lane.mu.Lock()
			lane.pool.Look()
			lane.mu.Unlock()
		}
		w.clock.looked.Store(-int64(time.Second)) // so that this reading looks
		require.True(t, l.AllowN(3), "there are more")
		require.EqualValues(t, 3, h.missed.Load(), "what may be dated before its spend")
		require.Equal(t, before-6, h.left())
	})
}

// A take that is looked at before its clock was read is lost, so of a few tokens none
// is taken like that.
func TestNothingIsLostOfAFewTokens(t *testing.T) {
	for name, c := range map[string]struct{ granted, cost, times int64 }{
		"one by one":         {3, 1, 2},
		"a third of a lease": {losable * 10, losable * 10 / 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err := New(generous(c.granted), DefaultConfig())
				require.NoError(t, err)
				defer func() { require.NoError(t, w.Close(context.Background())) }()
				l := w.Limiter("k")
				require.NoError(t, l.Wait(t.Context()))
				synctest.Wait()
				lane := l.lane.Load()
				w.clock.origin = 0
				w.clock.boot = func() (time.Duration, bool) {
					if lane.mu.TryLock() {
						lane.pool.Look()
						lane.mu.Unlock()
					}
					return time.Since(w.clock.base), true
				}
				for range c.times {
					w.clock.looked.Store(-int64(time.Second)) // so that the clock's reading looks
					require.True(t, l.AllowN(c.cost))
				}
				lane.mu.Lock()
				defer lane.mu.Unlock()
				held := lane.pool.Books()
				require.EqualValues(t, 1+c.times*c.cost, held.Spent, "%+v", held)
				require.Equal(t, held.Granted-held.Spent, held.Held, "%+v", held)
			})
		})
	}
}
