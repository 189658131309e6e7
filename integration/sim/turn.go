package sim

import (
	"time"

	"ration/lease"
)

// turn does what the leader's turn loop does: load, read the instant, step the
// ledger, record, and only then answer. While one is under way what comes gathers.
func (l *lessor) turn() {
	if l.busy || l.course == nil {
		return
	}
	l.busy, l.turning = true, false
	in, acts := l.in, l.acts
	if l.putOff.done != nil {
		acts = append(acts, l.putOff)
	}
	l.in, l.acts, l.putOff = nil, nil, told{}
	l.reform()
	l.load(l.ledger.Unloaded(in, about(acts)...), func() { l.step(in, acts) })
}

func (l *lessor) step(in []lease.Message, acts []told) {
	now := l.instant()
	done := l.perform(acts, now)
	l.ledger.Wall(now, l.wall())
	l.site.walls.looked(l)
	t := l.ledger.Turn(now, in)
	l.holdTo(t, in)
	if l.site.contract.Most > 0 {
		l.holdToClasses(t, in)
	}
	if t.Instant%32 == 0 {
		l.check()
	}
	l.course.Number(l.ledger, t, l.wall())
	recorded := l.ordered(t, done)
	l.holdToPauses(t)
	l.furtherKeys(t)
	l.apply(t, recorded)
}

func (l *lessor) deliver(t *lease.Turn) {
	l.site.reforms.delivered(l)
	late := l.instant().Sub(t.Instant) > l.config.TokenTTL/2
	if late {
		l.ledger.TakeBack(t)
	}
	for _, a := range t.Answers {
		if late && a.Answer.Outcome == lease.Granted {
			a.Answer = lease.Answer{ID: a.Answer.ID, Outcome: lease.Ended}
		}
		if answer := l.answers[a.Ticket]; answer != nil {
			a.Answer.Epoch = t.Epoch
			answer(a.Answer)
		}
		delete(l.answers, a.Ticket)
		delete(l.keys, a.Ticket)
	}
	for _, r := range t.Replies {
		if reply := l.replies[r.Ticket]; reply != nil {
			r.Reply.Epoch = t.Epoch
			reply(r.Reply)
		}
		delete(l.replies, r.Ticket)
	}
	for _, ticket := range t.Dropped {
		delete(l.answers, ticket)
		delete(l.keys, ticket)
	}
	for _, r := range t.Recalls {
		if h := l.site.holders[r.Holder]; h != nil {
			l.world.net.send(&l.host, &h.host, func() { h.recalled(r) })
		}
	}
	l.busy = false
	if len(l.in)+len(l.acts) > 0 {
		l.turn()
		return
	}
	l.sleep()
}

// sleep sets the turn at which something comes about without a message.
func (l *lessor) sleep() {
	at, ok := l.ledger.Next()
	if !l.course.Loaded() {
		at, ok = min(at, l.instant().Add(5*time.Millisecond)), true
	}
	if !ok {
		return
	}
	l.wakes++
	wake, led := l.wakes, l.course
	l.after(max(0, at.Sub(l.instant()))+time.Microsecond, func() {
		if wake == l.wakes && l.course == led && !l.turning {
			l.turn()
		}
	})
}
