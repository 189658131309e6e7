package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// TestPrefixesLoadedApartAreBroughtToTheSameCount: a lease holds from three prefixes. A
// new leader has one of them in memory when its tokens and units expire, and loads the
// others later, in whatever order, or they are left to the leader after it. Whatever each
// record says, everything is free in the end: nothing is held for ever, and nothing is
// settled where nothing is held.
func TestPrefixesLoadedApartAreBroughtToTheSameCount(t *testing.T) {
	text := `limits: [{key: t, rules: [10/1s, 8/1s unit=w]}, {key: t/k, rules: [10/1s, 4 concurrent]}, {key: t/l, rules: [9/1s unit=w, 5 concurrent]}]`
	c := lease.DefaultConfig()
	prefixes := []lease.Key{"t", "t/k", "t/l"}
	for _, first := range prefixes {
		for _, second := range prefixes {
			if second == first {
				continue
			}
			for _, failover := range []bool{false, true} {
				l, m := lease.NewLedger(policy(t, text), c), mirrored{}
				l.Start(lease.Start{Epoch: 1, Instant: start, Complete: true})
				r := ask("a", 1, start, time.Second, "t/k", "t/l")
				r.Want = lease.Amount{Tokens: 3, Slots: 2, Units: lease.Units{{Unit: "w", N: 5}}}
				r.Need = r.Want
				m.keep(turn(t, l, start, r))

				epoch := uint64(1)
				next := func(now algo.Instant) {
					epoch++
					l = lease.NewLedger(policy(t, text), c)
					l.Start(lease.Start{Epoch: epoch, Instant: now})
				}
				pass := func(now algo.Instant) { m.keep(l.Turn(now, nil)) }
				next(start)
				l.Restore(m[first])
				now := start.Add(c.TokenTTL + time.Second)
				pass(now) // tokens and units are over
				if failover {
					next(now)
				}
				for _, k := range append([]lease.Key{second}, prefixes...) {
					if r := m[k]; !l.Has(k) && !r.Empty() {
						l.Restore(r)
						pass(now)
					}
				}
				balanced(t, l, now)
				for _, k := range l.Status(now, "").Keys {
					for _, w := range k.Windows {
						if w.Rule != "4 concurrent" && w.Rule != "5 concurrent" {
							require.Zero(t, w.Held, "%s of %s, where %s and then %s was loaded", w.Rule, k.Key, first, second)
						} else {
							require.EqualValues(t, 2, w.Held)
						}
					}
				}
				require.Equal(t, lease.Amount{Slots: 2}, l.Status(now, "").Held)
				now = now.Add(c.SlotTTL)
				pass(now)
				for _, k := range l.Status(now, "").Keys {
					for _, w := range k.Windows {
						require.Equal(t, w.Limit, w.Free, "%s of %s", w.Rule, k.Key)
					}
				}
				require.Equal(t, lease.Amount{}, l.Status(now, "").Held)
			}
		}
	}
}
