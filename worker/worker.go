package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"ration/lease"
)

// Worker is one holder: it leases, spends and gives back for all callers of a
// process. It is safe for concurrent use.
type Worker struct {
	lessor lease.Lessor
	cfg    Config
	clock  *clock
	scope  *scope
	life   atomic.Pointer[life]
	lanes  sync.Map // laneKey to *lane, of all that are not parked
	// classes are those of which there was ever a lane.
	classes sync.Map

	mu      sync.Mutex
	tenants map[string]*tenant
	closed  atomic.Bool
}

// life is one incarnation.
type life struct {
	holder   lease.Holder
	seq      atomic.Uint64
	suspends int64 // what the clock had seen when it began
	began    time.Duration
	stop     context.CancelFunc
}

func (f *life) id() lease.ID { return lease.ID{Holder: f.holder, Seq: f.seq.Add(1)} }

// New starts a worker that leases from lessor. It sends nothing but a
// subscription to recalls until there is a caller. Close has to be called.
func New(lessor lease.Lessor, cfg Config) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	boot := bootTime
	if cfg.MonotonicOnly {
		boot = nil
	}
	w := &Worker{
		lessor: lessor, cfg: cfg,
		clock: newClock(boot), scope: newScope(),
		tenants: map[string]*tenant{},
	}
	w.begin(nil)
	return w, nil
}

// Name is the holder's name.
func (w *Worker) Name() string { return w.cfg.Name }

// Holder names the present incarnation.
func (w *Worker) Holder() lease.Holder { return w.life.Load().holder }

// begin takes a new incarnation, if old is still the present one.
func (w *Worker) begin(old *life) {
	ctx, stop := context.WithCancel(w.scope.ctx)
	next := &life{
		holder:   lease.Holder{Name: w.cfg.Name, Incarnation: rand.Uint64()},
		suspends: w.clock.suspends.Load(),
		began:    w.clock.now(),
		stop:     stop,
	}
	if !w.life.CompareAndSwap(old, next) {
		stop()
		return
	}
	w.scope.spawn(func() { w.listen(ctx, next.holder) })
	if old == nil {
		return
	}
	old.stop()
	w.cfg.Log.Warn("the process stood still: its leases are dropped, and it goes on as a new holder",
		"old", old.holder.String(), "new", next.holder.String())
	w.scope.spawn(func() {
		for _, l := range w.allLanes() {
			l.do(func(time.Duration) {})
		}
	})
}

// checkLife takes a new incarnation after a suspend.
func (w *Worker) checkLife() *life {
	f := w.life.Load()
	if f.suspends != w.clock.suspends.Load() {
		w.begin(f)
		f = w.life.Load()
	}
	return f
}

// late is told how late a timer rang. One that should have rung before this life
// began says nothing of it.
func (w *Worker) late(by time.Duration) {
	if f := w.life.Load(); by > w.cfg.PauseLimit && w.clock.now()-by >= f.began {
		w.begin(f)
	}
}

// listen takes in the recalls of a holder until ctx ends.
func (w *Worker) listen(ctx context.Context, h lease.Holder) {
	got := make(chan lease.Recall, 256)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for r := range got {
			w.recalled(r)
		}
	}()
	for ctx.Err() == nil {
		err := w.lessor.Recalls(ctx, h, func(r lease.Recall) {
			select {
			case got <- r:
			default: // a hint, and there are enough of them
			}
		})
		if ctx.Err() != nil {
			break
		}
		w.cfg.Log.Debug("recalls ended; listening again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(w.cfg.Pool.BackoffMax):
		}
	}
	close(got)
	<-done
}

// recalled hands a recall to the lanes of its keys, whatever their class.
func (w *Worker) recalled(r lease.Recall) {
	of := recalled(r)
	w.classes.Range(func(class, _ any) bool {
		if l, ok := w.lanes.Load(laneKey{of, class.(string)}); ok {
			l := l.(*lane)
			l.do(func(now time.Duration) { l.pool.Recalled(now, r) })
		}
		return true
	})
}

// Limiter gives the limiter of a key, or of several keys that each call takes of at
// once. They have to be valid, as lease.ParseKeys says. All limiters of the same keys,
// in whatever order, share their tokens, but for those that Limiter.In makes.
func (w *Worker) Limiter(key lease.Key, more ...lease.Key) *Limiter {
	return w.limiter(laneKey{newKeySet(key, more), w.cfg.Pool.Class})
}

func (w *Worker) limiter(key laneKey) *Limiter {
	l := &Limiter{worker: w, key: key}
	l.lane.Store(w.lane(key))
	return l
}

// lane gives the lane of keys and a class. It may be parked before it is used.
func (w *Worker) lane(key laneKey) *lane {
	if l, ok := w.lanes.Load(key); ok {
		return l.(*lane)
	}
	return w.tenant(key.keys.tenant()).lane(key)
}

func (w *Worker) tenant(name string) *tenant {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tenants[name]
	if t == nil {
		t = newTenant(w, name)
		w.tenants[name] = t
	}
	return t
}

func (w *Worker) allTenants() []*tenant {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*tenant, 0, len(w.tenants))
	for _, t := range w.tenants {
		all = append(all, t)
	}
	return all
}

func (w *Worker) allLanes() []*lane {
	var all []*lane
	for _, t := range w.allTenants() {
		all = append(all, t.all()...)
	}
	return all
}

// Stats gives the books of the worker as they stand.
func (w *Worker) Stats() Books {
	var sum Books
	for _, t := range w.allTenants() {
		sum.Add(t.books())
	}
	return sum
}

// Close ends all: callers who wait fail with ErrClosed, calls that hold slots
// see their context end, what is unspent goes back, and a goodbye to each lessor
// carries the final counts. It is said once in any case, which takes SendTimeout
// at most, and up to twice more while ctx allows; the error says what the lessors
// did not hear. Close waits for every goroutine of the worker. A second Close
// does nothing.
func (w *Worker) Close(ctx context.Context) error {
	if w.closed.Swap(true) {
		return nil
	}
	defer w.scope.end()
	tenants := w.allTenants()
	for _, t := range tenants {
		t.alarm.stop()
		for _, l := range t.all() {
			l.alarm.stop()
			l.do(func(time.Duration) {})
		}
	}
	err := atOnce(tenants, func(t *tenant) error { return t.goodbye(ctx) })
	if err != nil {
		return fmt.Errorf("worker: saying goodbye: %w; what was held is left to expire", err)
	}
	return nil
}
