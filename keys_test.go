package ration_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration"
	"ration/lease"
)

// matrix limits users and routes, each by itself, and their tenant; calls to one of the
// routes need a slot.
const matrix = `limits:
  - {key: t, rules: [1000/1h]}
  - {key: "t/user/{u}", rules: [10/1h], line: {premium: 9, standard: 9}}
  - {key: "t/route/{r}", rules: [15/1h, 40/1h unit=w], line: {premium: 9, standard: 9}}
  - {key: t/route/slow, rules: [20/1h, 1 concurrent]}
`

// under gives a client that is closed also where the test fails.
func under(t *testing.T, policy string) *ration.Client {
	t.Helper()
	client, err := ration.Local(policy)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func keyed(t *testing.T, client *ration.Client, key string, more ...string) *ration.Limiter {
	t.Helper()
	l, err := client.Limiter(key, more...)
	require.NoError(t, err)
	return l
}

// left is how many a limiter's keys give at once: what they have, since nobody waits.
func left(t *testing.T, l *ration.Limiter, most int64) int64 {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	for n := most; n > 0; n-- {
		if h, err := l.Acquire(ctx, n); err == nil {
			h.Cancel()
			time.Sleep(2 * time.Second) // until it has gone back
			return n
		}
	}
	return 0
}

// TestKeysThatCannotBeNamedTogetherSayWhy.
func TestKeysThatCannotBeNamedTogetherSayWhy(t *testing.T) {
	client := under(t, matrix)
	for says, keys := range map[string][]string{
		"ration: bad key: key 2 of 2: it is empty; give at least one segment":               {"t", ""},
		`ration: bad key: "t/a" and "u/a" are of two tenants; name keys of one`:             {"t/a", "u/a"},
		"ration: bad key: there are 9 keys; name 1 to 8":                                    strings.Fields("t/1 t/2 t/3 t/4 t/5 t/6 t/7 t/8 t/9"),
		`ration: bad key: key 1 of 2: segment 2 of "t//a" is empty; remove the extra slash`: {"t//a", "t"},
	} {
		_, err := client.Limiter(keys[0], keys[1:]...)
		require.ErrorIs(t, err, ration.ErrBadKey)
		require.ErrorContains(t, err, says)
	}
	l := keyed(t, client, "t/user/1", "t/route/a", "t/user/1", "t")
	require.Equal(t, []string{"t", "t/route/a", "t/user/1"}, l.Keys())
	require.Equal(t, "t", l.Key())
	require.Equal(t, []string{"t/user/1"}, keyed(t, client, "t/user/1").Keys())
	require.NoError(t, client.Close(t.Context()))
}

// TestACallOnSeveralKeysTakesFromAllOrFromNone: Wait, Allow, Acquire, Cancel and Settle
// move the same at each of the keys; what one of them refuses, the others have not lost.
func TestACallOnSeveralKeysTakesFromAllOrFromNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := under(t, matrix)
		user, route := keyed(t, client, "t/user/1"), keyed(t, client, "t/route/a")
		both := keyed(t, client, "t/user/1", "t/route/a")
		require.NoError(t, both.WaitN(t.Context(), 2))
		require.False(t, keyed(t, client, "t/route/a", "t/user/1").Allow(), "nothing is at hand yet")
		synctest.Wait()
		require.True(t, both.Allow())
		h, err := both.Acquire(t.Context(), 4, ration.Units{"w": 30})
		require.NoError(t, err)
		require.NoError(t, h.Settle(1, ration.Units{"w": 10}))
		h, err = both.Acquire(t.Context(), 3)
		require.NoError(t, err)
		h.Cancel()
		time.Sleep(time.Minute) // told by now, and what was at hand has expired or gone back
		spent := client.Stats().Spent
		require.EqualValues(t, 4, spent)
		require.Equal(t, 10-spent-client.Stats().Expired, left(t, user, 10))
		require.Equal(t, 15-spent-client.Stats().Expired, left(t, route, 15))

		others := keyed(t, client, "t/user/2", "t/route/a")
		require.NoError(t, route.WaitN(t.Context(), 8))
		time.Sleep(time.Second)
		before := client.Stats().Granted
		for _, l := range []*ration.Limiter{others, keyed(t, client, "t/user/2", "t/user/3", "t/route/a")} {
			var refused *ration.Refused
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			require.ErrorAs(t, l.WaitN(ctx, 10), &refused)
			stop()
			require.Equal(t, "t/route/a", refused.Key)
			require.Equal(t, "15/1h", refused.Rule)
			require.False(t, refused.Never)
			require.Positive(t, refused.Wait)
		}
		require.Equal(t, before, client.Stats().Granted)
		require.EqualValues(t, 10, left(t, keyed(t, client, "t/user/2"), 10), "the user has lost nothing")
		require.NoError(t, client.Close(t.Context()))
		balanced(t, client.Stats())
	})
}

// TestAKeyBesideOthersHasToBeKnown.
func TestAKeyBesideOthersHasToBeKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := under(t, `limits: [{key: t/user, rules: [5/1h]}]`)
		err := keyed(t, client, "t/user/1", "t/rout/a").Wait(t.Context())
		require.ErrorIs(t, err, lease.ErrUnknownKey)
		var refused *ration.Refused
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "t/rout/a", refused.Key)
		require.NoError(t, client.Close(t.Context()))
	})
}

// TestASlotOfOneOfTheKeysIsASlotOfTheCall: it is needed, it keeps others of that key out
// and of no other, and comes back to whoever waits for it under whichever keys.
func TestASlotOfOneOfTheKeysIsASlotOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := under(t, matrix)
		first, second := keyed(t, client, "t/user/1", "t/route/slow"), keyed(t, client, "t/user/2", "t/route/slow")
		require.ErrorIs(t, first.Wait(t.Context()), ration.ErrNeedsHandle)
		h, err := first.Acquire(t.Context(), 1)
		require.NoError(t, err)
		require.NoError(t, keyed(t, client, "t/user/1", "t/route/a").Wait(t.Context()))
		served := make(chan error, 1)
		go func() {
			h, err := second.Acquire(t.Context(), 1, ration.Class("premium"))
			if err == nil {
				h.Finish()
			}
			served <- err
		}()
		time.Sleep(20 * time.Second) // renewed meanwhile
		require.NoError(t, h.Context().Err())
		require.Empty(t, served)
		h.Finish()
		require.NoError(t, <-served)
		require.NoError(t, client.Close(t.Context()))
		balanced(t, client.Stats())
	})
}
