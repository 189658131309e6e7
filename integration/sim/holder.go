package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"ration/lease"
	"ration/worker"
)

// holder is a worker's process: pools, driven as worker.Worker drives them, and
// the callers of its program.
type holder struct {
	host
	name  string
	class string // of its calls
	id    lease.Holder
	seq   uint64
	site  *site
	keys  []lease.Key // by which its pools go
	pools map[lease.Key]*worker.Pool
	wakes map[lease.Key]uint64
	beat  time.Duration // the last heartbeat
	books worker.Books  // of pools that are gone
}

func newHolder(w *World, name, class string, s *site, ppm int64, keys []lease.Key) *holder {
	h := &holder{host: host{world: w, ppm: ppm}, name: name, class: class, site: s, keys: keys}
	h.begin()
	return h
}

// begin starts a new life of the process.
func (h *holder) begin() {
	h.id = lease.Holder{Name: h.name, Incarnation: h.world.rand.Uint64()}
	h.site.holders[h.id] = h
	h.pools, h.wakes = map[lease.Key]*worker.Pool{}, map[lease.Key]uint64{}
	for _, k := range h.keys {
		rnd := rand.New(rand.NewPCG(h.world.rand.Uint64(), 1))
		config := worker.DefaultPoolConfig()
		config.Class = h.class
		h.pools[k] = worker.NewPool(h.site.contract.keys(k), config, h.nextID, rnd)
	}
	h.beat = h.elapsed()
	h.after(lease.DefaultConfig().HeartbeatEvery(), h.heartbeat)
}

// restart takes a new incarnation, as a worker does that finds itself stopped
// for longer than its leases live.
func (h *holder) restart() {
	delete(h.site.holders, h.id)
	h.id.Incarnation = h.world.rand.Uint64()
	h.site.holders[h.id] = h
	for _, k := range h.keys {
		h.pools[k].Restart(h.elapsed())
		h.drive(k)
	}
}

func (h *holder) nextID() lease.ID {
	h.seq++
	return lease.ID{Holder: h.id, Seq: h.seq}
}

// crash kills the process; another one starts in its place after a while.
func (h *holder) crash(down time.Duration) {
	h.world.calls.died(h)
	for _, k := range h.keys {
		h.books.Add(h.pools[k].Books())
	}
	delete(h.site.holders, h.id)
	h.life++
	h.paused = h.world.now + down
	h.pools = nil
	h.world.after(down, func() {
		h.begin()
		h.world.calls.start(h)
	})
}

// drive does what came of a call to a pool: it wakes callers, sends what is to
// be sent, and sets the next tick.
func (h *holder) drive(k lease.Key) {
	p := h.pools[k]
	h.world.calls.decided(h, k, p.Served())
	now := h.elapsed()
	for _, r := range p.Requests(now) {
		h.ask(k, r)
	}
	h.world.calls.decided(h, k, p.Served())
	if p.Due() <= now {
		h.report(k, false)
	}
	next := min(p.Next(), p.Due())
	if next == worker.Forever {
		return
	}
	h.wakes[k]++
	wake := h.wakes[k]
	h.after(max(time.Microsecond, next-now), func() {
		if wake == h.wakes[k] {
			p.Look()
			p.Tick(h.elapsed())
			h.drive(k)
		}
	})
}

// ask sends one copy of a request and waits for its answer, for as long as the
// worker does. An answer that comes later is taken up too, as the worker would
// not: the pool must bear it.
func (h *holder) ask(k lease.Key, r lease.Request) {
	if err := r.Validate(); err != nil {
		panic(fmt.Sprintf("sim: holder %s: %v", h.name, err))
	}
	p, life := h.pools[k], h.life
	asked := h.site.toLeaders(&h.host, func(l *lessor) {
		l.request(r, func(a lease.Answer) {
			h.world.net.send(&l.host, &h.host, func() {
				if h.life == life {
					p.Answered(h.elapsed(), r.Sent, a)
					h.drive(k)
				}
			})
		})
	})
	if !asked {
		h.world.count("nobody leads")
		h.after(h.world.between(200*time.Microsecond, 2*time.Millisecond), func() {
			p.Failed(h.elapsed(), r.Sent, r.ID, lease.ErrNoCoordinator)
			h.drive(k)
		})
	}
	h.after(worker.DefaultPoolConfig().AskAgain, func() {
		p.Failed(h.elapsed(), r.Sent, r.ID, context.DeadlineExceeded)
		h.drive(k)
	})
}

func (h *holder) report(k lease.Key, heartbeat bool) {
	p, life, now := h.pools[k], h.life, h.elapsed()
	counts, ids := p.Report(now, heartbeat)
	if len(counts)+len(ids) == 0 {
		return
	}
	r := lease.Report{Holder: h.id, Sent: now, Heartbeat: heartbeat, Counts: counts, GivenUp: ids}
	if err := r.Validate(); err != nil {
		panic(fmt.Sprintf("sim: holder %s: %v", h.name, err))
	}
	replied := false
	h.site.toLeaders(&h.host, func(l *lessor) {
		l.report(r, func(reply lease.Reply) {
			h.world.net.send(&l.host, &h.host, func() {
				if h.life == life {
					replied = true
					p.Replied(h.elapsed(), r, reply)
					h.drive(k)
				}
			})
		})
	})
	h.after(time.Second, func() {
		if !replied {
			p.Unreported(h.elapsed(), r)
			h.drive(k)
		}
	})
}

func (h *holder) heartbeat() {
	if h.elapsed()-h.beat > lease.DefaultConfig().SlotTTL {
		h.restart()
	}
	h.beat = h.elapsed()
	for _, k := range h.keys {
		p := h.pools[k]
		p.Look()
		p.Tick(h.elapsed())
		if p.Holds() {
			h.report(k, true)
		}
		h.drive(k)
	}
	h.after(lease.DefaultConfig().HeartbeatEvery(), h.heartbeat)
}

func (h *holder) recalled(r lease.Recall) {
	if r.Holder != h.id {
		return // of an earlier life
	}
	for _, k := range h.keys {
		if p := h.pools[k]; r.On(h.site.contract.keys(k)) {
			p.Recalled(h.elapsed(), r)
			h.drive(k)
		}
	}
}
