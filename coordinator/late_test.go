package coordinator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

// TestGrantThatIsRecordedLateIsTakenBack: a mirror that hangs for half the TTL of tokens, and
// then works. What was granted meanwhile has hardly any life left: its asker is told that
// the lease is over, and all of it is free again. A grant that is recorded in time is told.
func TestGrantThatIsRecordedLateIsTakenBack(t *testing.T) {
	for late, outcome := range map[time.Duration]lease.Outcome{
		2400 * time.Millisecond: lease.Granted,
		2600 * time.Millisecond: lease.Ended,
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := config(t, `limits: [{key: k, rules: [2/1h]}]`)
			cfg.Seat.TTL = time.Minute // so that it goes on serving
			mirror := newGate(coordinator.NewMemory())
			cfg.Mirror, cfg.Elector = mirror, mirror
			lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
				synctest.Wait()
				release := mirror.hold()
				defer release()
				told := make(chan lease.Answer, 1)
				l.Begin(request(1, time.Minute), func(a lease.Answer, err error) {
					if err == nil {
						told <- a
					}
				})
				time.Sleep(late)
				synctest.Wait()
				require.Empty(t, told)
				release()
				require.Equal(t, outcome, (<-told).Outcome)
				var status lease.Status
				time.Sleep(time.Millisecond) // for the turn after it
				require.NoError(t, l.Look(ctx, func(now algo.Instant, ledger *lease.Ledger) { status = ledger.Status(now, "k") }))
				if outcome == lease.Granted {
					require.Equal(t, int64(1), status.Keys[0].Windows[0].Held)
					return
				}
				require.Equal(t, int64(1), status.Stats.TakenBack)
				require.Zero(t, status.Leases)
				require.Equal(t, int64(2), status.Keys[0].Windows[0].Free)
			})
		})
	}
}

// TestDeposedLeaderAnswersNothing: neither a refusal, nor an answer said again, nor a
// renewal, though nothing of them has to be recorded, once another has the seat.
func TestDeposedLeaderAnswersNothing(t *testing.T) {
	slotted := func(seq uint64) lease.Request {
		r := request(seq, 0)
		r.Want.Slots, r.Need.Slots = 1, 1
		return r
	}
	held := lease.ID{Holder: slotted(1).ID.Holder, Seq: 1}
	for name, ask := range map[string]func(ctx context.Context, l *coordinator.Leader) error{
		"a refusal": func(ctx context.Context, l *coordinator.Leader) error {
			_, err := l.Acquire(ctx, slotted(2))
			return err
		},
		"an answer said again": func(ctx context.Context, l *coordinator.Leader) error {
			_, err := l.Acquire(ctx, slotted(1))
			return err
		},
		"a renewal": func(ctx context.Context, l *coordinator.Leader) error {
			_, err := l.Report(ctx, lease.Report{
				Holder: held.Holder, Heartbeat: true,
				Counts: []lease.Count{{ID: held, Keys: []lease.Key{"k"}}},
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := config(t, `limits: [{key: k, rules: [1/1h, 1 concurrent]}]`)
				memory := coordinator.NewMemory()
				cfg.Mirror, cfg.Elector = memory, memory
				hear := func() coordinator.Heard { return coordinator.Heard{Connected: true} }
				heeding(t, cfg, hear, func(ctx context.Context, t *testing.T, _ *coordinator.Coordinator, leaders <-chan *coordinator.Leader) {
					old := <-leaders
					a, err := old.Acquire(ctx, slotted(1))
					require.NoError(t, err)
					require.Equal(t, lease.Granted, a.Outcome)
					require.NoError(t, ask(ctx, old), "as long as it leads")
					seen, err := memory.Look(ctx)
					require.NoError(t, err)
					next := seen
					next.Epoch = lease.Epoch{Number: seen.Epoch.Number + 1, Mark: 7}
					require.NoError(t, memory.Campaign(ctx, seen, next))
					require.ErrorIs(t, ask(ctx, old), lease.ErrStopped)
				})
			})
		})
	}
}
