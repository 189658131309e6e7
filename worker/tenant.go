package worker

import (
	"sync"
	"time"

	"ration/lease"
)

// tenant carries the reports of all lanes whose keys have the same first
// segment: they share one message.
type tenant struct {
	worker *Worker
	name   string
	alarm  *alarm

	mu      sync.Mutex         // taken before that of a lane
	lanes   map[*lane]struct{} // all that are not parked
	wanting map[*lane]struct{} // that have something to report
	beatAt  time.Duration
	past    Books // of lanes that were parked
}

func newTenant(w *Worker, name string) *tenant {
	t := &tenant{worker: w, name: name, lanes: map[*lane]struct{}{}, wanting: map[*lane]struct{}{}}
	t.alarm = newAlarm(w.scope, w.clock, w.late, t.ring)
	return t
}

// lane gives the keys' lane, made if there is none. From its making until it is
// parked it is among the lanes of its tenant, so that whoever goes through them
// all misses none that is in use, be it for the first time.
func (t *tenant) lane(key laneKey) *lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l, ok := t.worker.lanes.Load(key); ok {
		return l.(*lane)
	}
	l := newLane(t, key)
	t.lanes[l] = struct{}{}
	t.worker.classes.Store(key.class, nil)
	t.worker.lanes.Store(key, l)
	if t.beatAt == 0 {
		t.beatAt = t.worker.clock.now() + t.worker.cfg.Heartbeat
		t.alarm.set(t.beatAt)
	}
	return l
}

func (t *tenant) all() []*lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*lane, 0, len(t.lanes))
	for l := range t.lanes {
		all = append(all, l)
	}
	return all
}

// wants notes that the lane has something to report by an instant.
func (t *tenant) wants(l *lane, due time.Duration) {
	if due == Forever {
		return
	}
	t.mu.Lock()
	t.wanting[l] = struct{}{}
	t.mu.Unlock()
	t.alarm.set(due)
}

// ring sends what is due, and at a heartbeat all.
func (t *tenant) ring() {
	now := t.worker.clock.now()
	t.mu.Lock()
	beat := t.beatAt != 0 && now >= t.beatAt
	asked := t.wanting
	if beat {
		asked = t.lanes
	}
	lanes := make([]*lane, 0, len(asked))
	for l := range asked {
		lanes = append(lanes, l)
	}
	clear(t.wanting)
	t.mu.Unlock()

	life := t.worker.checkLife()
	sent := t.worker.clock.now()
	var parts []told
	for _, l := range lanes {
		part, due, holds := l.report(life, beat, sent)
		if len(part.counts)+len(part.givenUp) > 0 {
			parts = append(parts, part)
		}
		if holds {
			t.wants(l, due)
		} else if beat {
			t.park(l, now)
		}
	}
	t.nextBeat(now, beat)
	for _, message := range pack(parts, t.worker.cfg.MaxCounts) {
		t.worker.scope.spawn(func() {
			r := lease.Report{Holder: life.holder, Sent: sent, Heartbeat: beat}
			_ = t.tell(t.worker.scope.ctx, r, message)
		})
	}
}

// nextBeat sets the alarm for the next heartbeat, if any lane is in use.
func (t *tenant) nextBeat(now time.Duration, beat bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.lanes) == 0:
		t.beatAt = 0
		return
	case beat || t.beatAt == 0:
		t.beatAt = now + t.worker.cfg.Heartbeat
	}
	t.alarm.set(t.beatAt)
}

// report gives what the lane has to say now, and when it wants to say more. What
// is not due yet waits for company, unless it is a heartbeat.
func (l *lane) report(f *life, beat bool, sent time.Duration) (part told, due time.Duration, holds bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life != f {
		return told{}, Forever, l.pool.Holds()
	}
	if beat || l.pool.Due() <= sent+2*l.worker.cfg.Pool.Coalesce {
		l.pool.Look()
		part.lane = l
		part.counts, part.givenUp = l.pool.Report(l.worker.clock.now(), beat)
	}
	return part, l.pool.Due(), l.pool.Holds()
}

// park forgets a lane that has had nothing and wanted nothing for a while, but not
// what its books say. It is parked for good: who still has it takes the next
// one of its keys, since two lanes of the same keys and class would not share its tokens, and recalls
// reach one only.
func (t *tenant) park(l *lane, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.pool.Idle() || now-l.used < t.worker.cfg.Park {
		return
	}
	l.parked = true
	delete(t.lanes, l)
	t.worker.lanes.Delete(l.key)
	t.past.Add(l.pool.retire())
}

// books gives the books of all lanes that the tenant has and had.
func (t *tenant) books() Books {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.past
	for l := range t.lanes {
		l.mu.Lock()
		l.pool.Look()
		sum.Add(l.pool.Books())
		l.mu.Unlock()
	}
	return sum
}
