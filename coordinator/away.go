package coordinator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// away is whether the mirror works, as the turn loop finds.
type away struct {
	is    atomic.Bool // since is not zero
	mu    sync.Mutex
	since time.Time     // zero while it works
	back  chan struct{} // closed when it works again
	timer *time.Timer
	long  func()
	fired bool
	after time.Duration
}

// fails notes that the mirror has failed, and gives for how long it has.
func (a *away) fails() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		a.since = time.Now()
		a.is.Store(true)
		a.back = make(chan struct{})
		a.arm()
	}
	return time.Since(a.since)
}

// lasts says that the mirror has failed, or been slow, for that long.
func (a *away) lasts(d time.Duration) bool {
	if !a.is.Load() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.since.IsZero() && time.Since(a.since) >= d
}

// works notes that it has worked.
func (a *away) works() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		return
	}
	a.since = time.Time{}
	a.is.Store(false)
	close(a.back)
	if a.timer != nil {
		a.timer.Stop()
	}
}

func (a *away) arm() {
	if a.long == nil || a.since.IsZero() {
		return
	}
	since, long := a.since, a.long
	a.timer = time.AfterFunc(max(0, a.after-time.Since(since)), func() {
		a.mu.Lock()
		fire := a.since.Equal(since)
		a.fired = a.fired || fire
		a.mu.Unlock()
		if fire {
			long()
		}
	})
}

// onLong calls do once the mirror has been away for d. The function that it gives ends
// that, and says whether do was called.
func (a *away) onLong(d time.Duration, do func()) (done func() bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.after, a.long, a.fired = d, do, false
	a.arm()
	return func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.long = nil
		if a.timer != nil {
			a.timer.Stop()
		}
		return a.fired
	}
}

// wait waits until the mirror works, or for the error of ctx.
func (a *away) wait(ctx context.Context) error {
	a.mu.Lock()
	back := a.back
	works := a.since.IsZero()
	a.mu.Unlock()
	if works {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-back:
		return nil
	}
}
