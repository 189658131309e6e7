package system

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/oracle"
	"ration/integration/upstream"
	"ration/lease"
	"ration/worker"
)

// TestThreeLevelsInVirtualTime plays what TestThreeLevelsTwoPlansAndThreeUnitsAreKeptAndUsed
// does where no machine is ever busy: each message takes two milliseconds, and a call
// arrives as it is sent. The upstream judges each level by itself and finds nothing; at
// least 0.97 of what binds is used by single calls; and the large request among them waits
// no longer than its turn takes to come round.
func TestThreeLevelsInVirtualTime(t *testing.T) {
	lasting := scaled(10*time.Second, time.Minute)
	within(t, strings.TrimPrefix(levelsPolicy, "\nlimits:\n"), func(w *world) {
		var contracts []upstream.Contract
		for _, l := range levels {
			c, err := upstream.ParseContract("/" + l.key + "=" + l.rules)
			require.NoError(w.t, err)
			contracts = append(contracts, c)
		}
		g := &levelCallers{strict: upstream.New(contracts, 10*time.Millisecond), lessor: &meter{Lessor: w.leader, granted: map[lease.ID]int64{}, heard: map[lease.ID]int64{}}}
		ctx, cancel := soon(2 * lasting)
		defer cancel()
		for _, p := range parties {
			for range p.workers {
				g.start(ctx, w, p.key, p.class, 4, 1)
			}
		}
		from := time.Now()
		<-time.After(lasting)
		again := time.Now()
		g.start(ctx, w, "acme/prod/list", "premium", 1, large)
		g.callers.Wait()

		for _, c := range g.strict.Report().Contracts {
			require.Empty(w.t, c.Violations, c.Prefix)
		}
		single, mixed := map[string]float64{}, 0.0
		for _, account := range []string{"acme", "beta"} {
			single[account] = useOf(w.t, g.spends, account, from.UnixNano(), again.UnixNano())
			require.GreaterOrEqual(w.t, single[account], 0.97)
		}
		standard := standards(g.spends, from.UnixNano(), again.UnixNano())
		require.GreaterOrEqual(w.t, standard, lowest)
		require.LessOrEqual(w.t, standard, highest)
		mixed = useOf(w.t, g.spends, "acme", again.UnixNano(), again.Add(lasting).UnixNano())
		served, longest, last := 0, time.Duration(0), again.UnixNano()
		for _, s := range g.spends {
			if s.Cost == large {
				served++
				longest, last = max(longest, time.Duration(s.At-last)), s.At
			}
		}
		w.t.Logf("single calls use %.4f of acme, of which standard has %.3f, and %.4f of beta; with one of %d at a time %.4f of acme, which was served %d times, each %v after the last at most; %d spends, 0 violations at %d levels",
			single["acme"], standard, single["beta"], large, mixed, served, longest, len(g.spends), len(levels))
		require.Less(w.t, longest, turnOfLarge, "it is served in its turn")
		require.GreaterOrEqual(w.t, served, int(lasting/turnOfLarge))
	})
}

// turnOfLarge is when the turn of the large request comes round, and the longest window
// besides: no more than thirteen holders want all of the 100 calls a second that acme has,
// and none of its class is served more than another.
const turnOfLarge = large*13*time.Second/100 + 2*time.Second

// levelCallers are the callers of that world.
type levelCallers struct {
	strict  *upstream.Server
	lessor  lease.Lessor
	callers sync.WaitGroup
	mu      sync.Mutex
	spends  []oracle.Spend
}

// start adds a worker with callers whose calls cost n times what one costs, until ctx ends.
func (g *levelCallers) start(ctx context.Context, w *world, key, class string, callers int, n int64) {
	l := w.joinBy(g.lessor, fmt.Sprint("w", len(w.workers))).Limiter(lease.Key(key)).In(class)
	for range callers {
		g.callers.Go(func() {
			for g.call(ctx, l, n) {
			}
		})
	}
}

// call makes one call, unless ctx ends before.
func (g *levelCallers) call(ctx context.Context, l *worker.Limiter, n int64) bool {
	units := map[string]int64{}
	for unit, cost := range levelsCost {
		units[unit] = n * cost
	}
	h, err := l.Acquire(ctx, n, lease.UnitsOf(units)...)
	if err != nil {
		return false
	}
	url := fmt.Sprintf("/%s?unit=tokens=%d&unit=kb=%d", l.Keys()[0], units["tokens"], units["kb"])
	g.strict.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, url, nil))
	h.Finish()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spends = append(g.spends, oracle.Spend{Key: string(l.Keys()[0]), At: h.Sent().UnixNano(), Cost: n, Units: units, Done: time.Now().UnixNano()})
	return true
}
