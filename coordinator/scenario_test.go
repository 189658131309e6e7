package coordinator_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

// A limit of 0 refuses, for good and without a wait, and leaves no record in the
// mirror.
func TestLimitOfZeroLeavesNothingInTheMirror(t *testing.T) {
	for _, rules := range []string{"0/1m", "0/1m fixed", "0/1m counter", "0/1m bucket", "0 concurrent", "10/1m, 0/1h"} {
		synctest.Test(t, func(t *testing.T) {
			cfg := config(t, "limits: [{key: k, rules: ["+rules+"]}, {key: other, rules: [1/1m]}]")
			m := coordinator.NewMemory()
			cfg.Mirror, cfg.Elector = m, m
			lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
				for seq := range uint64(10) {
					r := request(seq, time.Hour)
					r.Want.Slots, r.Need.Slots = 1, 1
					a, err := l.Acquire(ctx, r)
					require.NoError(t, err)
					require.ErrorIs(t, a.Refusal.Reason, lease.ErrNever, rules)
					require.Zero(t, a.Refusal.Wait)
				}
				of := func(key lease.Key) lease.Record {
					records, err := m.Load(ctx, l.Epoch(), []lease.Key{key})
					require.NoError(t, err)
					return records[0]
				}
				refused := of("k")
				require.True(t, refused.Empty(), "%s: %+v", rules, refused)
				other := request(10, 0)
				other.Keys = []lease.Key{"other"}
				_, err := l.Acquire(ctx, other)
				require.NoError(t, err)
				granted := of("other")
				require.False(t, granted.Empty(), "a grant leaves one")
			})
		})
	}
}

// A key is asked for, reported on and looked at from many goroutines at
// once. The race detector sees what the law does not.
func TestRequestsReportsAndLooksAtOnce(t *testing.T) {
	leading(t, `limits: [{key: k, rules: [100/1h, 8 concurrent]}, {key: "{other}", rules: [1/1s]}]`, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
		var granted atomic.Int64
		var callers sync.WaitGroup
		for i := range uint64(64) {
			callers.Go(func() {
				for seq := range uint64(20) {
					r := request(seq, 0)
					r.ID.Holder.Incarnation = i
					r.Want.Slots, r.Need.Slots = 1, 1
					if seq%4 == 3 {
						r.Keys = []lease.Key{lease.Key(fmt.Sprint("other", i, seq))} // comes and goes
					}
					a, err := l.Acquire(ctx, r)
					if err != nil || a.Outcome != lease.Granted {
						continue
					}
					if r.Keys[0] == "k" {
						granted.Add(1)
					}
					_, err = l.Report(ctx, lease.Report{Holder: r.ID.Holder, Counts: []lease.Count{
						{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: 1}}, Freed: 1},
					}})
					if err != nil {
						t.Error(err)
					}
				}
			})
			callers.Go(func() {
				if err := l.Look(ctx, func(now algo.Instant, ledger *lease.Ledger) {
					for _, k := range ledger.Status(now, "").Keys {
						for _, w := range k.Windows {
							if w.Free+w.Held+w.Spent != w.Limit {
								t.Errorf("%s %s: %d free, %d held, %d spent", k.Key, w.Rule, w.Free, w.Held, w.Spent)
							}
						}
					}
				}); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		require.Positive(t, granted.Load())
		require.LessOrEqual(t, granted.Load(), int64(100))
	})
}
