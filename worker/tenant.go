package worker

import (
	"context"
	"errors"
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

	mu      sync.Mutex
	lanes   map[*lane]struct{} // in use
	wanting map[*lane]struct{} // that have something to report
	beatAt  time.Duration
}

func newTenant(w *Worker, name string) *tenant {
	t := &tenant{worker: w, name: name, lanes: map[*lane]struct{}{}, wanting: map[*lane]struct{}{}}
	t.alarm = newAlarm(w.scope, w.clock, w.late, t.ring)
	return t
}

func (t *tenant) add(l *lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lanes[l] = struct{}{}
	l.active.Store(true)
	if t.beatAt == 0 {
		t.beatAt = t.worker.clock.now() + t.worker.cfg.Heartbeat
		t.alarm.set(t.beatAt)
	}
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

// told is what one lane has in a message.
type told struct {
	lane    *lane
	counts  []lease.Count
	givenUp []lease.GivenUp
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

// pack divides what lanes tell into messages of at most so many counts.
func pack(parts []told, most int) (messages [][]told) {
	var message []told
	room := most
	for _, part := range parts {
		for len(part.counts)+len(part.givenUp) > 0 {
			n := min(room, len(part.counts))
			m := min(room-n, len(part.givenUp))
			message = append(message, told{part.lane, part.counts[:n], part.givenUp[:m]})
			part.counts, part.givenUp = part.counts[n:], part.givenUp[m:]
			if room -= n + m; room == 0 {
				messages, message, room = append(messages, message), nil, most
			}
		}
	}
	if len(message) > 0 {
		messages = append(messages, message)
	}
	return messages
}

// tell sends one message and hands each lane what the reply says of it.
func (t *tenant) tell(ctx context.Context, r lease.Report, message []told) error {
	owner := map[lease.ID]int{}
	for i, part := range message {
		r.Counts = append(r.Counts, part.counts...)
		r.GivenUp = append(r.GivenUp, part.givenUp...)
		for _, c := range part.counts {
			owner[c.ID] = i
		}
		for _, g := range part.givenUp {
			owner[g.ID] = i
		}
	}
	ctx, cancel := context.WithTimeout(ctx, t.worker.cfg.SendTimeout)
	defer cancel()
	reply, err := t.worker.lessor.Report(ctx, r)
	replies := divide(reply, owner, len(message))
	for i, part := range message {
		own := lease.Report{Holder: r.Holder, Sent: r.Sent, Counts: part.counts, GivenUp: part.givenUp}
		part.lane.do(func(now time.Duration) {
			if err != nil {
				part.lane.pool.Unreported(now, own)
				return
			}
			part.lane.pool.Replied(now, own, replies[i])
		})
	}
	return err
}

// divide gives each part of a message its share of the reply.
func divide(reply lease.Reply, owner map[lease.ID]int, n int) []lease.Reply {
	own := make([]lease.Reply, n)
	for _, r := range reply.Renewed {
		if i, ok := owner[r.ID]; ok {
			own[i].Renewed = append(own[i].Renewed, r)
		}
	}
	for _, id := range reply.Ended {
		if i, ok := owner[id]; ok {
			own[i].Ended = append(own[i].Ended, id)
		}
	}
	for _, id := range reply.Acknowledged {
		if i, ok := owner[id]; ok {
			own[i].Acknowledged = append(own[i].Acknowledged, id)
		}
	}
	return own
}

// park forgets a lane that has had nothing and wanted nothing for a while.
func (t *tenant) park(l *lane, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.pool.Idle() || now-l.used < t.worker.cfg.Park {
		return
	}
	delete(t.lanes, l)
	l.active.Store(false)
	t.worker.forget(l, l.pool.takeBooks())
}

// goodbye tells the final counts of all lanes. It is tried again while ctx
// allows, and once even if it does not.
func (t *tenant) goodbye(ctx context.Context) error {
	clean := context.WithoutCancel(ctx)
	life := t.worker.life.Load()
	for try := 0; ; try++ {
		sent := t.worker.clock.now()
		var parts []told
		for _, l := range t.all() {
			if part, _, _ := l.report(life, true, sent); len(part.counts)+len(part.givenUp) > 0 {
				parts = append(parts, part)
			}
		}
		var failed error
		for _, message := range pack(parts, t.worker.cfg.MaxCounts) {
			r := lease.Report{Holder: life.holder, Sent: sent, Goodbye: true}
			failed = errors.Join(failed, t.tell(clean, r, message))
		}
		if failed == nil || try == 2 || ctx.Err() != nil {
			return failed
		}
		select {
		case <-ctx.Done():
		case <-time.After(t.worker.cfg.Pool.BackoffMax):
		}
	}
}
