package system

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/oracle"
	"ration/lease"
)

// TestCallOfThreeTTLsKeepsItsSlot: while it lasts the other waits, and then is
// served in the instant it ends.
func TestCallOfThreeTTLsKeepsItsSlot(t *testing.T) {
	within(t, "  - {key: k, rules: [1 concurrent]}\n", func(w *world) {
		h := acquired(t, w.join("long").Limiter("k"), 1)
		other := waits(w.join("other").Limiter("k"), 1)
		<-time.After(3 * lease.DefaultConfig().SlotTTL)
		require.NoError(t, h.Context().Err())
		require.False(t, other.decided())
		ended := time.Now()
		h.Finish()
		<-other.done
		require.NoError(t, other.err)
		require.Less(t, other.at.Sub(ended), 50*time.Millisecond)
		other.handle.Finish()
		require.Zero(t, w.status().Stats.SlotsExpired)
	})
}

// TestSlotIsHeldUntilTheCallReturns is B83: a call that minds no deadline works on
// when its own has passed. Its slot is nobody else's until it returns.
func TestSlotIsHeldUntilTheCallReturns(t *testing.T) {
	within(t, "  - {key: k, rules: [1 concurrent]}\n", func(w *world) {
		ctx, cancel := soon(time.Second)
		defer cancel()
		h, err := w.join("deaf").Limiter("k").Acquire(ctx, 1)
		require.NoError(t, err)
		other := waits(w.join("other").Limiter("k"), 1)
		<-h.Context().Done()
		require.ErrorIs(t, h.Context().Err(), context.DeadlineExceeded)
		<-time.After(time.Minute)
		require.False(t, other.decided(), "the call has not returned")
		h.Finish()
		<-other.done
		require.NoError(t, other.err)
		other.handle.Finish()
	})
}

// TestAbandonedCallsSlotIsFreeAGuardLater: the upstream may still be at work, for
// as long as the limit's guard says.
func TestAbandonedCallsSlotIsFreeAGuardLater(t *testing.T) {
	within(t, "  - {key: k, rules: [1 concurrent], guard: 700ms}\n", func(w *world) {
		h := acquired(t, w.join("one").Limiter("k"), 1)
		other := waits(w.join("other").Limiter("k"), 1)
		left := time.Now()
		h.Abandon()
		<-other.done
		require.NoError(t, other.err)
		require.GreaterOrEqual(t, other.at.Sub(left), 700*time.Millisecond)
		require.Less(t, other.at.Sub(left), 800*time.Millisecond)
		other.handle.Finish()
	})
}

// TestNoMoreAtOnceThanTheCap is B82: many callers of several workers come and go,
// some cancel and some abandon; never are more than two in.
func TestNoMoreAtOnceThanTheCap(t *testing.T) {
	within(t, "  - {key: k, rules: [2 concurrent]}\n", func(w *world) {
		var mu sync.Mutex
		var calls []oracle.Spend
		in, most := 0, 0
		enter := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			in += n
			most = max(most, in)
		}
		var callers sync.WaitGroup
		for i := range 3 {
			l := w.join(fmt.Sprint("w", i)).Limiter("k")
			for j := range 8 {
				callers.Go(func() {
					for k := range scaled(100, 2000) {
						ctx, cancel := soon(time.Duration(1+(i+j+k)%7) * 3 * time.Millisecond)
						h, err := l.Acquire(ctx, 1)
						if err != nil {
							cancel()
							continue
						}
						enter(1)
						<-time.After(time.Duration((j+k)%4) * time.Millisecond)
						enter(-1)
						call := spendOf(h, 1)
						call.Done = time.Now().UnixNano()
						switch k % 5 {
						case 0:
							h.Cancel()
						case 1:
							h.Abandon()
						default:
							h.Finish()
						}
						cancel()
						mu.Lock()
						calls = append(calls, call)
						mu.Unlock()
					}
				})
			}
		}
		callers.Wait()
		require.Equal(t, 2, most)
		require.Empty(t, oracle.Violations(calls, oracle.MustRules("2 concurrent")))
		require.Greater(t, len(calls), 200)
	})
}

// TestWaitOnAConcurrencyRuleIsRefused: a contract with a concurrency rule refuses
// callers that could not give a slot back, and takes nothing for them.
func TestWaitOnAConcurrencyRuleIsRefused(t *testing.T) {
	within(t, "  - {key: k, rules: [10/1s, 2 concurrent]}\n", func(w *world) {
		l := w.join("one").Limiter("k")
		require.ErrorIs(t, l.Wait(context.Background()), lease.ErrNeedsSlot)
		require.False(t, l.Allow())
		acquired(t, l, 1).Finish()
		require.False(t, l.Allow())
		require.ErrorIs(t, l.Wait(context.Background()), lease.ErrNeedsSlot)
		require.EqualValues(t, 1, w.books().Spent)
	})
}

// TestDeadWorkersHoldingsCountAsSpentAtExpiry is B71: a worker that falls silent
// for good has its slots back in others' hands after a TTL, its tokens a window
// later, and nobody has to do anything.
func TestDeadWorkersHoldingsCountAsSpentAtExpiry(t *testing.T) {
	within(t, "  - {key: k, rules: [43/1m, 3 concurrent]}\n", func(w *world) {
		silent := &mute{Lessor: w.leader}
		dead := w.joinBy(silent, "dead").Limiter("k")
		for _, cost := range []int64{20, 19, 1} {
			acquired(t, dead, cost)
		}
		<-time.After(time.Millisecond) // the last report before it dies
		granted := time.Now()
		silent.cut()
		l := w.join("heir").Limiter("k")
		acquired(t, l, 3).Finish()
		config := lease.DefaultConfig()
		require.GreaterOrEqual(t, time.Since(granted), config.SlotTTL-2*time.Second)
		require.LessOrEqual(t, time.Since(granted), config.SlotTTL+50*time.Millisecond)
		acquired(t, l, 43).Finish()
		require.GreaterOrEqual(t, time.Since(granted), time.Minute)
		require.LessOrEqual(t, time.Since(granted), config.SlotTTL+2*time.Minute)
		require.EqualValues(t, 3, w.status().Stats.SlotsExpired)
		require.EqualValues(t, 40, w.status().Stats.Expired)
	})
}

// mute is a lessor whose messages no longer arrive once it is cut.
type mute struct {
	lease.Lessor
	mu    sync.Mutex
	ended bool
}

func (m *mute) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
}

func (m *mute) gone() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return lease.ErrNoCoordinator
	}
	return nil
}

func (m *mute) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	if err := m.gone(); err != nil {
		return lease.Answer{}, err
	}
	return m.Lessor.Acquire(ctx, r)
}

func (m *mute) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	if err := m.gone(); err != nil {
		return lease.Reply{}, err
	}
	return m.Lessor.Report(ctx, r)
}

// TestEveryPathSpendsWhatWasGranted is B55: Allow, Wait, Acquire, the batch that is
// at hand, an expired lease, a cancelled and a settled call: what left never
// passes the contract, and the books know of each spend.
func TestEveryPathSpendsWhatWasGranted(t *testing.T) {
	const rules = "50/1s, 120/5s"
	withinBounds(t, "  - {key: k, rules: ["+rules+"]}\n", func(c *lease.Config) { c.TokenTTL = 300 * time.Millisecond }, func(w *world) {
		var mu sync.Mutex
		var spends []oracle.Spend
		spent := func(at time.Time, n int64) {
			mu.Lock()
			defer mu.Unlock()
			spends = append(spends, oracle.Spend{At: at.UnixNano(), Cost: n})
		}
		ctx, cancel := soon(time.Duration(scaled(20, 200)) * time.Second)
		defer cancel()
		var callers sync.WaitGroup
		for i := range 3 {
			l := w.join(fmt.Sprint("w", i)).Limiter("k")
			callers.Go(func() {
				for ctx.Err() == nil {
					if l.AllowN(2) {
						spent(time.Now(), 2)
					}
					<-time.After(7 * time.Millisecond)
				}
			})
			callers.Go(func() {
				for ctx.Err() == nil {
					if l.Wait(ctx) == nil {
						spent(time.Now(), 1)
					}
					<-time.After(11 * time.Millisecond)
				}
			})
			callers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					<-time.After(13 * time.Millisecond)
					h, err := l.Acquire(ctx, 3)
					if err != nil {
						continue
					}
					if n%3 == 0 {
						h.Cancel() // it never left
						continue
					}
					if n%3 == 1 {
						if err := h.Settle(2); err != nil {
							t.Error(err)
						}
						spent(h.Sent(), 2)
						continue
					}
					<-time.After(400 * time.Millisecond) // longer than its lease
					h.Finish()
					spent(h.Sent(), 3)
				}
			})
		}
		callers.Wait()
		require.Empty(t, oracle.Violations(spends, oracle.MustRules(rules)))
		for _, joined := range w.workers {
			require.NoError(t, joined.Close(context.Background()))
		}
		require.EqualValues(t, costs(spends), w.books().Spent, "%+v", w.books())
	})
}

var _ lease.Lessor = (*mute)(nil)
