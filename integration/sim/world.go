package sim

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"ration/integration/oracle"
)

// World is true time, and what happens in it.
type World struct {
	rand    *rand.Rand
	origin  int64         // Unix nanoseconds at which it begins
	now     time.Duration // true time since the beginning
	events  events
	orders  uint64
	net     network
	spends  []oracle.Spend
	charges []oracle.Spend // what was used elsewhere
	Faults  map[string]int // by name, how often each fired
	calls   calls
	calm    bool // no more faults
	// scripted says that nothing goes wrong but what a story tells.
	scripted bool
}

// origin is the Unix time at which worlds begin unless their contract says: a second before a full minute,
// so that every run crosses the boundary of fixed windows.
const origin = int64(1_800_000_059_000_000_000)

func newWorld(seed uint64) *World {
	w := &World{rand: rand.New(rand.NewPCG(seed, 0x7261_7469_6f6e)), origin: origin, Faults: none()}
	w.net.world = w
	return w
}

// after lets f happen in d of true time.
func (w *World) after(d time.Duration, f func()) {
	w.orders++
	heap.Push(&w.events, event{w.now + max(0, d), w.orders, f})
}

// run lets happen what happens until then.
func (w *World) run(until time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.happen()
	}
	w.now = until
}

// chance is true with probability p, but never when the world is calm or scripted.
func (w *World) chance(p float64, fault string) bool {
	if w.calm || w.scripted || w.rand.Float64() >= p {
		return false
	}
	if fault != "" {
		w.count(fault)
	}
	return true
}

// between draws a duration.
func (w *World) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rand.Int64N(int64(b-a)+1))
}

// unix is true time as the oracle reads it.
func (w *World) unix() int64 { return w.origin + int64(w.now) }

type event struct {
	at     time.Duration
	order  uint64
	happen func()
}

type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}

// host is a machine with a process: its clock, and whether the process runs.
type host struct {
	world   *World
	ppm     int64         // how fast its clock runs, in millionths beside true time
	pauseAt time.Duration // the last pause began
	paused  time.Duration // and ends
	life    int           // of the process; what an earlier one would have done is not done
	node    int           // of NATS, that it is connected to
}

// elapsed is the host's monotonic clock.
func (h *host) elapsed() time.Duration {
	return h.world.now + h.world.now/1000*time.Duration(h.ppm)/1000
}

// after lets f happen when the host's clock has advanced by d, unless the
// process has died; while it is paused nothing happens in it.
func (h *host) after(d time.Duration, f func()) {
	life := h.life
	var happen func()
	happen = func() {
		switch {
		case h.life != life:
		case h.world.now < h.paused:
			h.world.after(h.paused-h.world.now, happen)
		default:
			f()
		}
	}
	h.world.after(d-d/1000*time.Duration(h.ppm)/1000, happen)
}

// pause stops the process for d.
func (h *host) pause(d time.Duration) { h.pauseAt, h.paused = h.world.now, h.world.now+d }

// awake is the last instant at which the process surely knew that its leases
// lived: now, or if it wakes this very instant, when it was stopped.
func (h *host) awake() time.Duration {
	if h.world.now == h.paused {
		return h.pauseAt
	}
	return h.world.now
}
