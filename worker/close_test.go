package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// Close that comes within the very first call of a lane finds it: who waits there
// fails, and does not wait for ever.
func TestCloseFindsALaneWithinItsFirstUse(t *testing.T) {
	for _, after := range []string{"its making", "it was parked"} {
		t.Run(after, func(t *testing.T) {
			bubble(t, "limits: [{key: k, rules: [10/1s]}]", func(t *testing.T, s *scripted) {
				w := s.start(t, "w")
				l := w.Limiter("k")
				if after == "it was parked" {
					require.NoError(t, l.Wait(t.Context()))
					parked(t, w)
				}
				at := w.lane(laneKey{keys: "k"})
				ids, closed, found := at.pool.ids, make(chan error, 1), false
				at.pool.ids = func() lease.ID { // called as a caller is put in the line
					at.pool.ids = ids
					for _, other := range w.allLanes() {
						found = found || other == at
					}
					go func() { closed <- w.Close(context.Background()) }()
					for !w.closed.Load() {
						runtime.Gosched()
					}
					for range 1000 { // time for Close to go on, and to miss the lane
						runtime.Gosched()
					}
					return ids()
				}
				waits := make(chan error, 1)
				go func() { waits <- l.Wait(context.Background()) }()
				require.NoError(t, <-closed)
				synctest.Wait()
				require.True(t, found, "the lane is in use, and Close could not know")
				select {
				case err := <-waits:
					require.ErrorIs(t, err, ErrClosed)
				default:
					require.Fail(t, "it waits on though the worker is closed")
				}
				s.stop()
			})
		})
	}
}

// silent is a lessor whose reports have no reply while it is down.
type silent struct{ *scripted }

func (l silent) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	if !l.down.Load() {
		return l.scripted.Report(ctx, r)
	}
	l.goodbyes.Add(1)
	<-ctx.Done()
	return lease.Reply{}, fmt.Errorf("reporting: %w", ctx.Err())
}

// holders gives a worker that has spent a token on each of n keys, which the
// lessor has not been told.
func holders(t *testing.T, s *scripted, n int, key func(i int) string) *Worker {
	cfg := DefaultConfig()
	cfg.Name, cfg.MonotonicOnly, cfg.MaxCounts = "w", true, 1
	w, err := New(silent{s}, cfg)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, w.Limiter(lease.Key(key(i))).Wait(t.Context()))
	}
	s.down.Store(true)
	return w
}

// With a lessor that is silent Close takes no longer than its context, or the one
// goodbye that it says in any case, however many there are to say.
func TestCloseKeepsToItsContextHoweverManyGoodbyesThereAre(t *testing.T) {
	for name, key := range map[string]func(i int) string{
		"tenants":                func(i int) string { return fmt.Sprint("t", i) },
		"messages of one tenant": func(i int) string { return fmt.Sprint("t/", i) },
	} {
		for _, span := range []time.Duration{0, 200 * time.Millisecond, 1700 * time.Millisecond, time.Hour} {
			t.Run(fmt.Sprint(name, span), func(t *testing.T) {
				bubble(t, "limits: [{key: 't', rules: [1000/1s]}, {key: '{k}', rules: [1000/1s]}]", func(t *testing.T, s *scripted) {
					w := holders(t, s, 50, key)
					ctx, cancel := context.WithTimeout(context.Background(), span)
					defer cancel()
					begun := time.Now()
					err := w.Close(ctx)
					took := time.Since(begun)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.Equal(t, 1, strings.Count(err.Error(), "reporting"), "the same is said once: %s", err)
					once := w.cfg.SendTimeout
					require.GreaterOrEqual(t, took, once)
					require.LessOrEqual(t, took, min(max(span, once), goodbyes*once+(goodbyes-1)*w.cfg.Pool.BackoffMax))
					require.GreaterOrEqual(t, s.goodbyes.Load(), int64(50))
					s.stop()
				})
			})
		}
	}
}

func TestAGoodbyeThatWasNotHeardIsSaidAgainWhileTheContextAllows(t *testing.T) {
	bubble(t, "limits: [{key: '{k}', rules: [1000/1s]}]", func(t *testing.T, s *scripted) {
		w := holders(t, s, 20, func(i int) string { return fmt.Sprint("t", i) })
		time.AfterFunc(w.cfg.SendTimeout, func() { s.down.Store(false) })
		require.NoError(t, w.Close(context.Background()))
		require.Zero(t, s.held())
		balanced(t, w.Stats(), "closed")
		s.stop()
	})
}

func TestErrorsOfManyAreJoinedAndTheSameIsSaidOnce(t *testing.T) {
	odd, even := errors.New("odd"), errors.New("even")
	err := atOnce([]int{1, 2, 3, 4, 0}, func(n int) error {
		return []error{nil, odd, even, odd, even}[n]
	})
	require.ErrorIs(t, err, odd)
	require.ErrorIs(t, err, even)
	require.Equal(t, 1, strings.Count(err.Error(), "odd"))
	require.NoError(t, atOnce([]int{0, 0}, func(int) error { return nil }))
}
