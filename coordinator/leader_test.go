package coordinator_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

func config(t testing.TB, text string) coordinator.Config {
	t.Helper()
	p, err := lease.ParsePolicy("test.yaml", []byte(text))
	require.NoError(t, err)
	return coordinator.DefaultConfig(p)
}

// leading runs f with a leader, in a bubble of its own time, and fails the test
// if anything outlives it.
func leading(t *testing.T, text string, f func(ctx context.Context, t *testing.T, l *coordinator.Leader)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { lead(t, config(t, text), f) })
}

// lead runs f, on the test's own goroutine, with a leader of a coordinator that
// stops afterwards.
func lead(t *testing.T, cfg coordinator.Config, f func(ctx context.Context, t *testing.T, l *coordinator.Leader)) {
	t.Helper()
	c, err := coordinator.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	leaders, done := make(chan *coordinator.Leader), make(chan error)
	go func() {
		done <- c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			leaders <- l
			<-ctx.Done()
			return nil
		})
	}()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()
	f(ctx, t, <-leaders)
}

func request(seq uint64, patience time.Duration) lease.Request {
	return lease.Request{
		ID:       lease.ID{Holder: lease.Holder{Name: "w", Incarnation: 1}, Seq: seq},
		Keys:     []lease.Key{"k"},
		Want:     lease.Amount{Tokens: 1},
		Need:     lease.Amount{Tokens: 1},
		Patience: patience,
	}
}

func TestLeaderLetsRequestsWaitUntilTheyCanBeGranted(t *testing.T) {
	leading(t, `limits: [{key: k, rules: [1/1s]}]`, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
		first, err := l.Acquire(ctx, request(1, time.Minute))
		require.NoError(t, err)
		require.Equal(t, lease.Granted, first.Outcome)
		require.Equal(t, l.Epoch(), first.Epoch)
		_, err = l.Report(ctx, lease.Report{
			Holder: first.ID.Holder,
			Counts: []lease.Count{{ID: first.ID, Keys: []lease.Key{"k"}, Points: []lease.Point{{Count: 1}}}},
		})
		require.NoError(t, err)
		began := time.Now()
		second, err := l.Acquire(ctx, request(2, time.Minute))
		require.NoError(t, err)
		require.Equal(t, lease.Granted, second.Outcome)
		require.Equal(t, time.Second+200*time.Microsecond, time.Since(began), "the window and the clock allowance")
		require.Positive(t, second.Waited)
	})
}

func TestLeaderAnswersTheNewestCopyOnly(t *testing.T) {
	leading(t, `limits: [{key: k, rules: [1/1h]}]`, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
		_, err := l.Acquire(ctx, request(1, 0))
		require.NoError(t, err)
		type got struct {
			lease.Answer
			error
		}
		ask := func(patience time.Duration) chan got {
			to := make(chan got, 1)
			go func() {
				a, err := l.Acquire(ctx, request(2, patience))
				to <- got{a, err}
			}()
			synctest.Wait()
			return to
		}
		older := ask(3 * time.Hour)
		newer := ask(2 * time.Hour)
		require.ErrorIs(t, (<-older).error, lease.ErrSuperseded)
		a := <-newer
		require.NoError(t, a.error)
		require.Equal(t, lease.Waiting, a.Outcome, "it was not asked again for long")
	})
}

func TestLeaderRefusesWhatMakesNoSense(t *testing.T) {
	leading(t, `limits: [{key: k, rules: [1/1h]}]`, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
		bad := request(1, 0)
		bad.Need.Tokens = -1
		_, err := l.Acquire(ctx, bad)
		require.ErrorIs(t, err, lease.ErrBadRequest)
		require.ErrorContains(t, err, "-1")
		bad = request(1, 0)
		bad.Keys = []lease.Key{"a//b"}
		_, err = l.Acquire(ctx, bad)
		require.ErrorIs(t, err, lease.ErrBadKey)
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		_, err = l.Acquire(cancelled, request(2, 0))
		require.ErrorIs(t, err, context.Canceled)
		s, err := l.Status(ctx, "")
		require.NoError(t, err)
		require.Zero(t, s.Stats.Granted, "nothing was taken")
	})
}

func TestLeaderDeliversRecalls(t *testing.T) {
	leading(t, `limits: [{key: k, rules: [1/1h]}]`, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
		got := make(chan lease.Recall, 1)
		listening, stop := context.WithCancel(ctx)
		done := make(chan error)
		go func() {
			done <- l.Recalls(listening, lease.Holder{Name: "w", Incarnation: 1}, func(r lease.Recall) { got <- r })
		}()
		synctest.Wait()
		_, err := l.Acquire(ctx, request(1, 0))
		require.NoError(t, err)
		other := request(1, 2*time.Hour)
		other.ID.Holder.Name = "x"
		asked := make(chan error, 1)
		go func() {
			_, err := l.Acquire(listening, other)
			asked <- err
		}()
		r := <-got
		require.Equal(t, lease.Key("k"), r.Key)
		stop()
		require.NoError(t, <-done)
		require.ErrorIs(t, <-asked, context.Canceled)
	})
}

// TestSuccessorKnowsWhatWasPromised: a second coordinator on the same mirror
// takes over when the first resigns, and honours what that one granted.
func TestSuccessorKnowsWhatWasPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, `limits: [{key: k, rules: [1/1h]}]`)
		memory := coordinator.NewMemory()
		cfg.Mirror, cfg.Elector = memory, memory
		var told strings.Builder
		cfg.Log, cfg.Seat.Name = slog.New(slog.NewTextHandler(&told, nil)), "first"
		var granted lease.Answer
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			var err error
			granted, err = l.Acquire(ctx, request(1, 0))
			require.NoError(t, err)
			require.Equal(t, lease.Granted, granted.Outcome)
			require.Contains(t, told.String(), `msg="won the seat" epoch=1 after=""`)
		})
		cfg.Seat.Name = "second"
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			require.Contains(t, told.String(), `msg="won the seat" epoch=2 after=first`)
			require.NotEqual(t, granted.Epoch, l.Epoch())
			a, err := l.Acquire(ctx, request(2, 0))
			require.NoError(t, err)
			require.Equal(t, lease.Refused, a.Outcome, "it is held")
			a, err = l.Acquire(ctx, request(1, 0))
			require.NoError(t, err)
			require.Equal(t, lease.Granted, a.Outcome, "the same request has the same grant")
		})
	})
}

func TestConfigSaysWhatIsWrong(t *testing.T) {
	bad := coordinator.Config{Lease: lease.Config{TokenTTL: -time.Second}}
	_, err := coordinator.New(bad)
	for _, part := range []string{"no policy", "mirror", "renewal interval 0s", "looks 0s", "0 partitions", "no log", "token TTL -1s"} {
		require.ErrorContains(t, err, part)
	}
}

func TestLookSeesTheLedgerBetweenTurns(t *testing.T) {
	leading(t, `limits: [{key: k, rules: [2/1h]}]`, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
		_, err := l.Acquire(ctx, request(1, 0))
		require.NoError(t, err)
		require.NoError(t, l.Look(ctx, func(now algo.Instant, ledger *lease.Ledger) {
			require.Equal(t, int64(1), ledger.Status(now, "k").Held.Tokens)
		}))
	})
}

// TestSeatWonInTheLastInstantIsGivenUp: a coordinator whose context has ended
// leaves the seat free, also where the elector gives it one.
func TestSeatWonInTheLastInstantIsGivenUp(t *testing.T) {
	cfg := config(t, `limits: [{key: k, rules: [1/1s]}]`)
	memory := coordinator.NewMemory()
	ctx, cancel := context.WithCancel(t.Context())
	cfg.Mirror, cfg.Elector = memory, &lateElector{memory, cancel}
	c, err := coordinator.New(cfg)
	require.NoError(t, err)
	require.NoError(t, c.Run(ctx, func(context.Context, *coordinator.Leader) error {
		t.Error("served after the end")
		return nil
	}))
	seat, err := memory.Look(t.Context())
	require.NoError(t, err)
	require.True(t, seat.Vacant)
}

// lateElector wins a seat just as the context ends.
type lateElector struct {
	*coordinator.Memory
	end func()
}

func (e *lateElector) Campaign(ctx context.Context, seen, next lease.Seat) error {
	defer e.end()
	return e.Memory.Campaign(ctx, seen, next)
}

// The instant of a turn is read after its last message was taken up: an earlier
// one would come before what the messages tell of, and a lease that begins in it
// would be shorter than it is told.
func TestTurnIsDatedAfterItsMessages(t *testing.T) {
	leading(t, `limits: [{key: k, rules: [10/1h]}]`, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
		for seq := range uint64(5) {
			time.Sleep(300 * time.Millisecond)
			a, err := l.Acquire(ctx, request(seq, 0))
			require.NoError(t, err)
			require.Equal(t, lease.DefaultConfig().TokenTTL, a.TokenTTL)
		}
	})
}
