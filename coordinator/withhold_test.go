package coordinator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
)

// withholding runs f with a leader that has loaded "t/known", of which lease 10 is held, and
// not "t/b", of which lease 2 is, and whose mirror is away.
func withholding(t *testing.T, f func(ctx context.Context, t *testing.T, l *coordinator.Leader, back func())) {
	synctest.Test(t, func(t *testing.T) {
		cfg, mirror, _ := availably(t, `limits: [{key: "t/{k}", rules: [9/1h, 9 concurrent]}]`, "fails")
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			granted(ctx, t, l, slotOf("t/b", 2))
		})
		cfg.Mirror = &unpaged{absent: mirror}
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			granted(ctx, t, l, slotOf("t/known", 10))
			mirror.away.Store(true)
			granted(ctx, t, l, slotOf("t/known", 11))
			f(ctx, t, l, func() {
				mirror.away.Store(false)
				caughtUp(t, l)
			})
		})
	})
}

func slotOf(key lease.Key, seq uint64) lease.Request {
	r := of(key, seq)
	r.Want.Slots, r.Need.Slots = 1, 1
	return r
}

func countOf(key lease.Key, seq uint64) lease.Count {
	return lease.Count{ID: of(key, seq).ID, Keys: []lease.Key{key}}
}

// TestOneUnknownKeyFailsNoWholeMessage: what a message says of known keys is taken up though
// it names one that nobody knows while the mirror is away.
func TestOneUnknownKeyFailsNoWholeMessage(t *testing.T) {
	t.Run("a heartbeat renews the others", func(t *testing.T) {
		withholding(t, func(ctx context.Context, t *testing.T, l *coordinator.Leader, _ func()) {
			known, unknown := countOf("t/known", 10), countOf("t/b", 2)
			gone := lease.GivenUp{ID: of("t/b", 30).ID, Keys: []lease.Key{"t/b"}}
			counts := []lease.Count{unknown, known}
			reply, err := l.Report(ctx, lease.Report{Holder: known.ID.Holder, Heartbeat: true, Counts: counts, GivenUp: []lease.GivenUp{gone}})
			require.NoError(t, err)
			require.Len(t, reply.Renewed, 1)
			require.Equal(t, known.ID, reply.Renewed[0].ID)
			require.Empty(t, reply.Ended, "nobody knows")
			require.Empty(t, reply.Acknowledged, "it is named again")
			require.Equal(t, []lease.Count{unknown, known}, counts, "they are the holder's")
		})
	})
	t.Run("an overspend is told again", func(t *testing.T) {
		withholding(t, func(ctx context.Context, t *testing.T, l *coordinator.Leader, back func()) {
			known, unknown := countOf("t/known", 10), countOf("t/b", 2)
			unknown.Over = 5
			report := lease.Report{Holder: known.ID.Holder, Heartbeat: true, Counts: []lease.Count{unknown, known}}
			_, err := l.Report(ctx, report)
			require.ErrorIs(t, err, lease.ErrMirrorAway)
			back()
			reply, err := l.Report(ctx, report)
			require.NoError(t, err)
			require.Len(t, reply.Renewed, 2)
		})
	})
	t.Run("returns are taken, and told again", func(t *testing.T) {
		withholding(t, func(ctx context.Context, t *testing.T, l *coordinator.Leader, back func()) {
			known, unknown := countOf("t/known", 10), countOf("t/b", 2)
			known.Returned, known.Freed = 1, 1
			unknown.Returned, unknown.Freed = 1, 1
			held := func(key lease.Key) int64 {
				s, err := l.Status(ctx, key)
				require.NoError(t, err)
				require.Len(t, s.Keys, 1)
				return s.Keys[0].Windows[0].Held
			}
			require.Equal(t, int64(2), held("t/known"))
			report := lease.Report{Holder: known.ID.Holder, Goodbye: true, Counts: []lease.Count{unknown, known}}
			_, err := l.Report(ctx, report)
			require.ErrorIs(t, err, lease.ErrMirrorAway)
			require.Equal(t, int64(1), held("t/known"))
			back()
			_, err = l.Report(ctx, report)
			require.NoError(t, err)
			require.Zero(t, held("t/b"))
		})
	})
	t.Run("requests are answered one by one", func(t *testing.T) {
		withholding(t, func(ctx context.Context, t *testing.T, l *coordinator.Leader, back func()) {
			type told struct {
				answers []lease.Answer
				err     error
			}
			ask := func(rs ...lease.Request) told {
				to := make(chan told, 1)
				l.BeginAll(rs, func(as []lease.Answer, err error) { to <- told{as, err} })
				return <-to
			}
			both := ask(slotOf("t/b", 20), slotOf("t/known", 21))
			require.NoError(t, both.err)
			require.Equal(t, lease.Waiting, both.answers[0].Outcome)
			require.Equal(t, of("t/b", 20).ID, both.answers[0].ID)
			require.Equal(t, l.Epoch(), both.answers[0].Epoch)
			require.Equal(t, lease.Granted, both.answers[1].Outcome)
			require.ErrorIs(t, ask(slotOf("t/b", 20)).err, lease.ErrMirrorAway, "it is about nothing else")
			back()
			granted(ctx, t, l, slotOf("t/b", 20))
			time.Sleep(time.Second)
		})
	})
}
