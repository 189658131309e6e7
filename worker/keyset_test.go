package worker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestKeySetIsWhatItWasMadeOf: whatever bytes keys have, in whatever order and however
// often they are named, the set is the same, and gives them back; other keys are another.
func TestKeySetIsWhatItWasMadeOf(t *testing.T) {
	sets := map[keySet][]lease.Key{}
	for _, keys := range [][]lease.Key{
		{"t"}, {"t/a"}, {"t/a", "t/b"}, {"t/a/t/b"}, {"t", "t/a"}, {"t/a", "t/b", "t/c"}, {"t/a", "t/b/t/c"}, {"t/a/t/b", "t/c"},
		{"\x00", "\x00/\xff"}, {"\x00/\xff"}, {"t/,", "t/ ", "t/a b"},
	} {
		sorted := newKeySet(keys[0], keys[1:]).list()
		require.ElementsMatch(t, keys, sorted)
		for i := range keys {
			other := append(append([]lease.Key{}, keys[i:]...), keys[:i+1]...)
			require.Equal(t, newKeySet(keys[0], keys[1:]), newKeySet(other[0], other[1:]), "%q", other)
		}
		s := newKeySet(keys[0], keys[1:])
		require.Equal(t, keys[0].Tenant(), s.tenant())
		require.Equal(t, s, recalled(lease.Recall{Key: sorted[0], More: sorted[1:]}))
		require.Nil(t, sets[s], "%q and %q are the same", sets[s], keys)
		sets[s] = keys
	}
}

// leaves starts a worker that is closed also where the test fails.
func (s *scripted) leaves(t *testing.T, name string) *Worker {
	w := s.start(t, name)
	t.Cleanup(func() {
		_ = w.Close(context.Background())
		s.stop()
	})
	return w
}

const userAndRoute = `limits: [{key: "t/user/{u}", rules: [8/1h]}, {key: "t/route/{r}", rules: [10/1h, 20/1h unit=w]}]`

// TestLimitersOfTheSameKeysShareTheirTokens: in whatever order they are named; those of
// other keys have tokens of their own, though some of the keys are the same.
func TestLimitersOfTheSameKeysShareTheirTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(generous(1000), DefaultConfig())
		require.NoError(t, err)
		defer func() { require.NoError(t, w.Close(context.Background())) }()
		l := w.Limiter("t/user/1", "t/route/r")
		require.Equal(t, []lease.Key{"t/route/r", "t/user/1"}, l.Keys())
		require.NoError(t, l.Wait(t.Context()))
		synctest.Wait()
		require.True(t, w.Limiter("t/route/r", "t/user/1", "t/route/r").Allow())
		for _, other := range []*Limiter{w.Limiter("t/user/1"), w.Limiter("t/route/r"), w.Limiter("t/route/r", "t/user/2"), w.Limiter("t/route/r", "t/user/1", "t")} {
			require.False(t, other.Allow(), "%q", other.Keys())
		}
		require.Len(t, w.allLanes(), 5)
		require.Equal(t, l.Keys(), l.In("other").Keys())
	})
}

// TestEveryKeyIsChargedHoweverACallEnds: what is spent stays at each of the keys, what
// is cancelled or settled below its cost comes back to each.
func TestEveryKeyIsChargedHoweverACallEnds(t *testing.T) {
	bubble(t, userAndRoute, func(t *testing.T, s *scripted) {
		w := s.leaves(t, "a")
		l := w.Limiter("t/user/1", "t/route/r")
		require.NoError(t, l.WaitN(t.Context(), 2, lease.UnitAmount{Unit: "w", N: 5}))
		h, err := l.Acquire(t.Context(), 3, lease.UnitAmount{Unit: "w", N: 9})
		require.NoError(t, err)
		require.NoError(t, h.Settle(1, lease.UnitAmount{Unit: "w", N: 4}))
		h, err = l.Acquire(t.Context(), 2)
		require.NoError(t, err)
		h.Cancel()
		require.NoError(t, w.Close(context.Background()))

		got := map[string]int64{}
		for _, k := range s.ledger.Status(s.now(), "").Keys {
			for _, x := range k.Windows {
				got[string(k.Key)+" "+x.Rule] = x.Free
			}
		}
		require.Equal(t, map[string]int64{"t/user/1 8/1h": 5, "t/route/r 10/1h": 7, "t/route/r 20/1h unit=w": 11}, got)
		s.end(t, w)
	})
}

// TestRefusalOfSeveralKeysNamesWhichBinds: the prefix and the rule, whichever of the keys
// it is of; and nothing was taken.
func TestRefusalOfSeveralKeysNamesWhichBinds(t *testing.T) {
	bubble(t, userAndRoute, func(t *testing.T, s *scripted) {
		w := s.leaves(t, "a")
		require.NoError(t, w.Limiter("t/route/r").WaitN(t.Context(), 6))
		synctest.Wait()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		for _, want := range []struct {
			n         int64
			key, rule string
		}{{5, "t/route/r", "10/1h"}, {9, "t/user/1", "8/1h"}} {
			var refused *RefusedError
			require.ErrorAs(t, w.Limiter("t/user/1", "t/route/r").WaitN(ctx, want.n), &refused)
			require.Equal(t, want.key, string(refused.Key))
			require.Equal(t, want.rule, refused.Rule)
		}
		require.NoError(t, w.Limiter("t/user/1", "t/route/other").WaitN(t.Context(), 8), "nothing of the user is gone")
		s.end(t, w)
	})
}

// TestRecallReachesWhoHasSeveralKeys: b wants a slot of the route; a holds all of them
// under another user, idle, and gives one back at once.
func TestRecallReachesWhoHasSeveralKeys(t *testing.T) {
	bubble(t, `limits: [{key: "t/user/{u}", rules: [1000/1s]}, {key: "t/route/{r}", rules: [1000/1s, 2 concurrent]}]`, func(t *testing.T, s *scripted) {
		a, b := s.leaves(t, "a"), s.leaves(t, "b")
		ofA := a.Limiter("t/user/1", "t/route/r")
		var calls []*Handle
		for range 2 {
			h, err := ofA.Acquire(t.Context(), 1)
			require.NoError(t, err)
			calls = append(calls, h)
		}
		// While others of a wait, a slot that comes back serves them next: only a recall
		// brings it to b.
		var others sync.WaitGroup
		defer others.Wait()
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		for range 4 {
			others.Go(func() {
				for {
					h, err := ofA.Acquire(ctx, 1)
					if err != nil {
						return
					}
					time.Sleep(10 * time.Millisecond)
					h.Finish()
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		served := make(chan error, 1)
		others.Go(func() {
			h, err := b.Limiter("t/route/r", "t/user/2").Acquire(ctx, 1)
			if err == nil {
				h.Finish()
			}
			served <- err
		})
		synctest.Wait()
		require.NotZero(t, a.Stats().Recalls)
		for _, h := range calls {
			h.Finish()
		}
		require.NoError(t, <-served)
		stop()
		others.Wait()
		s.end(t, a, b)
	})
}
