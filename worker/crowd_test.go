package worker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// cable is the way to a lessor. It can be cut, for all who use it in one instant, and
// notes when they ask.
type cable struct {
	*scripted
	mu    sync.Mutex
	cut   chan struct{} // closed while it is
	asked map[lease.Holder][]time.Time
}

func (c *cable) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	c.mu.Lock()
	cut := c.cut
	c.asked[r.ID.Holder] = append(c.asked[r.ID.Holder], time.Now())
	c.mu.Unlock()
	select {
	case <-cut:
		return lease.Answer{}, lease.ErrNoCoordinator
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lost := make(chan struct{})
	go func() {
		select {
		case <-cut:
			close(lost)
			cancel()
		case <-ctx.Done():
		}
	}()
	a, err := c.scripted.Acquire(ctx, r)
	select {
	case <-lost:
		return lease.Answer{}, lease.ErrNoCoordinator
	default:
		return a, err
	}
}

func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cut {
		close(c.cut)
	} else {
		c.cut = make(chan struct{})
	}
}

// first is when each holder asked first after an instant.
func (c *cable) first(after time.Time) (all []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, asked := range c.asked {
		for _, at := range asked {
			if at.After(after) {
				all = append(all, at.Sub(after))
				break
			}
		}
	}
	return all
}

// TestACrowdAsksAgainAtMomentsOfItsOwn is B157, for requests: two hundred workers wait when
// their way to the coordinator is cut, all in one instant, and is there again later. Each
// time they ask again all over the pause that each draws from, and not together.
func TestACrowdAsksAgainAtMomentsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		c := &cable{scripted: newScripted(t, "limits: [{key: k, rules: [1/1h]}]"), cut: make(chan struct{}), asked: map[lease.Holder][]time.Time{}}
		cfg := DefaultConfig()
		cfg.MonotonicOnly = true
		ctx, stop := context.WithCancel(t.Context())
		var workers []*Worker
		var callers sync.WaitGroup
		for i := range n {
			cfg.Name, cfg.Seed = fmt.Sprint("w", i), uint64(i)+1
			w, err := New(c, cfg)
			require.NoError(t, err)
			workers = append(workers, w)
			callers.Go(func() { _ = w.Limiter("k").Wait(ctx) }) // one of them gets the one token
		}
		time.Sleep(300 * time.Millisecond)
		spread := func(most time.Duration) {
			t.Helper()
			at := time.Now()
			time.Sleep(5 * time.Second)
			first := c.first(at)
			require.GreaterOrEqual(t, len(first), n-1)
			slots := map[time.Duration]int{}
			for _, after := range first {
				require.LessOrEqual(t, after, most)
				slots[min(9, after*10/most)]++
			}
			require.GreaterOrEqual(t, len(slots), 8, "%v", slots)
			for _, asked := range slots { // a tenth of them in each, or up to twice that of what is left of pauses
				require.LessOrEqual(t, asked, 3*n/10, "%v", slots)
			}
		}
		c.set(true)
		spread(cfg.Pool.BackoffMin)
		c.set(false) // each asks when its pause is over
		spread(cfg.Pool.BackoffMax)
		stop()
		callers.Wait()
		c.end(t, workers...)
	})
}
