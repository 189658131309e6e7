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

type told[T any] struct {
	got T
	err error
}

// all asks together and waits for what is told.
func all(l *coordinator.Leader, rs ...lease.Request) told[[]lease.Answer] {
	to := make(chan told[[]lease.Answer], 2) // twice would be told twice
	l.BeginAll(rs, func(as []lease.Answer, err error) { to <- told[[]lease.Answer]{as, err} })
	return <-to
}

func outcomes(as []lease.Answer) (out []lease.Outcome) {
	for _, a := range as {
		out = append(out, a.Outcome)
	}
	return out
}

func returned(seq uint64) lease.Report {
	return lease.Report{
		Holder: request(seq, 0).ID.Holder,
		Counts: []lease.Count{{ID: request(seq, 0).ID, Keys: []lease.Key{"k"}, Returned: 1}},
	}
}

// TestRequestsOfOneMessageAreAnsweredInItsTurn: who of them has to wait is told
// so at once, keeps its place before who comes later, and finds its grant when
// it asks again.
func TestRequestsOfOneMessageAreAnsweredInItsTurn(t *testing.T) {
	leading(t, `limits: [{key: k, rules: [2/1h]}]`, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
		began := time.Now()
		got := all(l, request(1, 0), request(2, time.Hour), request(3, 2*time.Hour), request(4, 0), request(1, 0))
		require.NoError(t, got.err)
		require.Zero(t, time.Since(began), "they held their message back")
		require.Equal(t, []lease.Outcome{lease.Granted, lease.Granted, lease.Waiting, lease.Refused, lease.Granted}, outcomes(got.got))
		for i, seq := range []uint64{1, 2, 3, 4, 1} {
			require.Equal(t, request(seq, 0).ID, got.got[i].ID)
			require.Equal(t, l.Epoch(), got.got[i].Epoch)
		}

		later := make(chan told[lease.Answer], 2)
		l.Begin(request(5, 2*time.Hour), func(a lease.Answer, err error) { later <- told[lease.Answer]{a, err} })
		_, err := l.Report(ctx, returned(1))
		require.NoError(t, err)
		synctest.Wait()
		require.Empty(t, later, "it overtook who stood before it")
		a, err := l.Acquire(ctx, request(3, time.Hour))
		require.NoError(t, err)
		require.Equal(t, lease.Granted, a.Outcome)
		_, err = l.Report(ctx, returned(2))
		require.NoError(t, err)
		last := <-later
		require.NoError(t, last.err)
		require.Equal(t, lease.Granted, last.got.Outcome)
	})
}

// TestRequestOfManyThatIsNotAskedAgainLeavesTheLine: nobody answers for it, so
// it leaves as any does whose holder is silent.
func TestRequestOfManyThatIsNotAskedAgainLeavesTheLine(t *testing.T) {
	leading(t, `limits: [{key: k, rules: [1/1h]}]`, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
		require.Equal(t, []lease.Outcome{lease.Granted, lease.Waiting}, outcomes(all(l, request(1, 0), request(2, 2*time.Hour)).got))
		s, err := l.Status(ctx, "")
		require.NoError(t, err)
		require.Equal(t, int64(1), s.Stats.Waited)
		time.Sleep(lease.DefaultConfig().Silence)
		synctest.Wait()
		s, err = l.Status(ctx, "")
		require.NoError(t, err)
		require.Equal(t, int64(1), s.Stats.Silent)
	})
}

// TestCopyOfARequestOfManyTakesItsPlace: also where the newer one is of many, and
// of two in one message the later counts.
func TestCopyOfARequestOfManyTakesItsPlace(t *testing.T) {
	leading(t, `limits: [{key: k, rules: [1/1h]}]`, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
		require.Equal(t, []lease.Outcome{lease.Granted}, outcomes(all(l, request(1, 0)).got))
		alone := make(chan told[lease.Answer], 2)
		l.Begin(request(2, 2*time.Hour), func(a lease.Answer, err error) { alone <- told[lease.Answer]{a, err} })
		got := all(l, request(2, 2*time.Hour), request(2, 2*time.Hour))
		require.NoError(t, got.err)
		require.Equal(t, []lease.Outcome{0, lease.Waiting}, outcomes(got.got))
		require.ErrorIs(t, (<-alone).err, lease.ErrSuperseded)
	})
}

func TestRequestsOfOneMessageAreTakenUpTogetherOrNotAtAll(t *testing.T) {
	leading(t, `limits: [{key: k, rules: [2/1h]}]`, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
		bad := request(2, 0)
		bad.Want.Tokens = 0
		got := all(l, request(1, 0), bad)
		require.ErrorIs(t, got.err, lease.ErrBadRequest)
		require.ErrorContains(t, got.err, "request 2 of 2")
		require.Empty(t, all(l).got)
		s, err := l.Status(ctx, "")
		require.NoError(t, err)
		require.Zero(t, s.Stats.Granted)
	})
}

// TestEndOfLeadershipIsToldToAll: to who waits, to whose turn is not recorded,
// and to who comes too late, once each.
func TestEndOfLeadershipIsToldToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, `limits: [{key: k, rules: [1/1h]}]`)
		memory := coordinator.NewMemory()
		mirror := newGate(memory)
		cfg.Mirror, cfg.Elector = mirror, mirror
		c, err := coordinator.New(cfg)
		require.NoError(t, err)
		errs := make(chan error, 16)
		one := func(_ lease.Answer, err error) { errs <- err }
		many := func(_ []lease.Answer, err error) { errs <- err }
		heard := func(_ lease.Reply, err error) { errs <- err }
		ctx, cancel := context.WithCancel(t.Context())
		var was *coordinator.Leader
		var early int
		require.NoError(t, c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			was = l
			if _, err := l.Acquire(ctx, request(1, 0)); err != nil {
				return err
			}
			l.Begin(request(2, 2*time.Hour), one)
			synctest.Wait()
			mirror.hold()
			l.BeginAll([]lease.Request{request(3, 0)}, many)
			synctest.Wait() // its turn is being recorded
			l.BeginReport(returned(1), heard)
			l.Begin(request(4, 0), one)
			synctest.Wait()
			early = len(errs)
			cancel()
			return nil
		}))
		require.Zero(t, early, "it was told before the end")
		was.Begin(request(5, 0), one)
		was.BeginAll([]lease.Request{request(6, 0)}, many)
		was.BeginReport(returned(1), heard)
		require.ErrorIs(t, was.Look(t.Context(), nil), lease.ErrStopped)
		require.Len(t, errs, 7)
		for range 7 {
			require.ErrorIs(t, <-errs, lease.ErrStopped)
		}
	})
}
