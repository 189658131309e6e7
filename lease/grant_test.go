package lease_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// Tokens of a pace are a run, or there are none: who needs no token gets none besides
// its slot, since nobody would keep their gaps.
func TestSlotsOfAPaceComeWithoutTokens(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/10h pace, 4 concurrent]}]`), lease.DefaultConfig())
	r := ask("a", 1, start, 0, "k")
	r.Need, r.Want = lease.Amount{Slots: 1}, lease.Amount{Tokens: 10, Slots: 1}
	require.Equal(t, lease.Amount{Slots: 1}, granted(t, turn(t, l, start, r)).Granted)
	next := ask("b", 1, start, 0, "k")
	next.Need.Slots, next.Want = 1, lease.Amount{Tokens: 10, Slots: 1}
	require.Equal(t, lease.Amount{Tokens: 1, Slots: 1}, granted(t, turn(t, l, start, next)).Granted)
}

// Where nothing counts tokens or units, whoever wants all there are gets more than it
// can spend, and what all hold can be added up.
func TestWhatNobodyCountsAddsUp(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [5000 concurrent]}]`), lease.DefaultConfig())
	for seq := range uint64(1200) {
		r := ask("a", seq+1, start, 0, "k")
		r.Need = lease.Amount{Tokens: 1, Slots: 1, Units: lease.Units{of("u", 1)}}
		r.Want = lease.Amount{Tokens: math.MaxInt64, Slots: 1, Units: lease.Units{of("u", 1e15)}}
		a := granted(t, turn(t, l, start, r))
		require.Greater(t, a.Granted.Tokens, int64(1_000_000_000))
		require.Greater(t, a.Granted.Units.Of("u"), int64(1_000_000_000))
	}
	s := l.Status(start, "k")
	require.Positive(t, s.Held.Tokens)
	require.Positive(t, s.Held.Units.Of("u"))
	require.Positive(t, s.Stats.Granted)
	require.Positive(t, s.Stats.UnitsGranted)
	require.Positive(t, s.Keys[0].Holders[0].Held.Tokens)
}

// Of many keys a status has the first ones, in order, and says how many more there are:
// B155.
func TestStatusHasTheFirstKeysInOrder(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "{t}/{k}", rules: [1/1h]}]`), lease.DefaultConfig())
	var in []any
	for i := range 3000 {
		in = append(in, ask("a", uint64(i+1), start, 0, lease.Key(fmt.Sprintf("t/%04d", i*1777%3000))))
	}
	turn(t, l, start, in...)
	for _, key := range []lease.Key{"", "t"} {
		s := l.Status(start.Add(time.Second), key)
		require.Len(t, s.Keys, 500)
		require.Equal(t, 2500, s.More)
		for i, k := range s.Keys {
			require.Equal(t, lease.Key(fmt.Sprintf("t/%04d", i)), k.Key)
		}
	}
	s := l.Status(start, "t/0007")
	require.Len(t, s.Keys, 1)
	require.Zero(t, s.More)
}
