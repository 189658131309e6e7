package failover

import (
	"context"
	"errors"
	"sync"
	"time"

	"ration"
	"ration/integration/oracle"
)

// load is workers of this process that want more than the contract allows.
type load struct {
	stop     context.CancelFunc
	done     sync.WaitGroup
	upstream *upstream

	mu     sync.Mutex
	spends []oracle.Spend
	cut    int // calls whose slot was lost
	errs   map[string]int
}

const (
	key  = "k"
	hold = 20 * time.Millisecond
)

func startLoad(w *world, workers, callers int) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{stop: stop, upstream: newUpstream(w.t), errs: map[string]int{}}
	for range workers {
		c, err := ration.Connect(w.nats, ration.WithConnectWait(10*time.Second))
		if err != nil {
			w.t.Fatal(err)
		}
		limiter, err := c.Limiter(key)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() {
			stop()
			l.done.Wait()
			closing, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			_ = c.Close(closing) // what is left expires
		})
		for range callers {
			l.done.Go(func() { l.call(ctx, limiter) })
		}
	}
	return l
}

// call makes one call after another.
func (l *load) call(ctx context.Context, limiter *ration.Limiter) {
	for ctx.Err() == nil {
		h, err := limiter.Acquire(ctx, 1)
		if err != nil {
			if ctx.Err() == nil {
				l.mu.Lock()
				l.errs[err.Error()]++
				l.mu.Unlock()
				time.Sleep(10 * time.Millisecond)
			}
			continue
		}
		err = l.upstream.call(h)
		ended := h.Sent().Add(time.Since(h.Sent()))
		lost := errors.Is(context.Cause(h.Context()), ration.ErrLeaseLost)
		if lost || err != nil {
			h.Abandon()
		} else {
			h.Finish()
		}
		l.mu.Lock()
		if lost {
			l.cut++
		}
		l.spends = append(l.spends, oracle.Spend{Key: key, At: h.Sent().UnixNano(), Cost: 1, Done: ended.UnixNano()})
		l.mu.Unlock()
	}
}

// all gives every call that has ended, in order.
func (l *load) all() []oracle.Spend {
	l.mu.Lock()
	defer l.mu.Unlock()
	spends := append([]oracle.Spend(nil), l.spends...)
	oracle.Sort(spends)
	return spends
}

// since tells how many calls have begun since then.
func (l *load) since(at time.Time) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.spends) - 1; i >= 0 && l.spends[i].Done > at.UnixNano(); i-- {
		if l.spends[i].At > at.UnixNano() {
			n++
		}
	}
	return n
}
