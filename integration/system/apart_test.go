package system

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/oracle"
	"ration/lease"
)

// apart is a way to a coordinator that is cut at times: then nobody answers.
type apart struct {
	lease.Lessor
	cut atomic.Bool
}

func (a *apart) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	if a.cut.Load() {
		return lease.Answer{}, lease.ErrNoCoordinator
	}
	return a.Lessor.Acquire(ctx, r)
}

func (a *apart) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	if a.cut.Load() {
		return lease.Reply{}, lease.ErrNoCoordinator
	}
	return a.Lessor.Report(ctx, r)
}

// TestWithoutACoordinatorNobodyMakesUpALimit is B136: four greedy workers lose their
// coordinator for ten seconds, and a fifth joins meanwhile. All of them together spend
// what was held and not a token more, and when it is back the whole limit is used again,
// and nothing is counted twice.
func TestWithoutACoordinatorNobodyMakesUpALimit(t *testing.T) {
	within(t, "  - {key: k, rules: [100/1s]}\n", func(w *world) {
		away := &apart{Lessor: w.leader}
		ctx, stop := context.WithCancel(context.Background())
		var mu sync.Mutex
		var spends []oracle.Spend
		var callers sync.WaitGroup
		greedy := func(name string) {
			l := w.joinBy(away, name).Limiter("k")
			for range 8 {
				callers.Go(func() {
					for {
						h, err := l.Acquire(ctx, 1)
						if err != nil {
							return
						}
						h.Finish()
						mu.Lock()
						spends = append(spends, spendOf(h, 1))
						mu.Unlock()
					}
				})
			}
		}
		for i := range 4 {
			greedy(fmt.Sprint("w", i))
		}
		time.Sleep(3*time.Second + 300*time.Millisecond)
		cut, held := time.Now(), w.status().Held.Tokens
		away.cut.Store(true)
		time.Sleep(2 * time.Second)
		greedy("fifth")
		time.Sleep(8 * time.Second)
		away.cut.Store(false)
		mended := time.Now()
		time.Sleep(4 * time.Second)
		stop()
		callers.Wait()

		count := func(from, to time.Time) (n int64) {
			for _, s := range spends {
				if s.At >= from.UnixNano() && s.At < to.UnixNano() {
					n++
				}
			}
			return n
		}
		require.LessOrEqual(t, count(cut, mended), held, "what was held is all there is")
		require.Zero(t, count(cut.Add(lease.DefaultConfig().TokenTTL), mended))
		oracle.Sort(spends)
		require.Empty(t, oracle.Violations(spends, oracle.MustRules("100/1s")))
		again := mended.Add(time.Second)
		require.GreaterOrEqual(t, count(again, again.Add(2*time.Second)), int64(190), "the limit is used again")
		require.EqualValues(t, len(spends), w.books().Spent)
	})
}

// TestWhatIsReportedLateStaysInItsWindow is B142: a worker spends 8 of 10 a minute, and is
// cut off before it can say so, for a minute and a half. What it says then is of a window
// that is over, and the present one has all of its tokens.
func TestWhatIsReportedLateStaysInItsWindow(t *testing.T) {
	const rule = "10/1m fixed"
	within(t, "  - {key: k, rules: ["+rule+"]}\n", func(w *world) {
		time.Sleep(10 * time.Second) // into a minute
		away := &apart{Lessor: w.leader}
		late := w.joinBy(away, "late")
		h, err := late.Limiter("k").Acquire(context.Background(), 8)
		require.NoError(t, err)
		away.cut.Store(true)
		h.Finish()
		time.Sleep(30 * time.Second)
		win := window(t, w.status(), "k", rule)
		require.EqualValues(t, 8, win.Spent, "it counts as spent though nobody has said so")

		time.Sleep(time.Minute)
		away.cut.Store(false)
		time.Sleep(5 * time.Second) // it says all it has to
		other := w.join("other").Limiter("k")
		began := time.Now()
		for range 10 {
			acquired(t, other, 1).Finish()
		}
		require.Less(t, time.Since(began), time.Second, "virtual time: the present window is untouched")
		acquired(t, other, 1).Finish()
		require.GreaterOrEqual(t, time.Since(began), 14*time.Second, "and has no more than its ten")
		require.EqualValues(t, 8, late.Stats().Spent)
	})
}
