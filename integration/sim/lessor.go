package sim

import (
	"context"
	"fmt"
	"time"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

// lessor is the coordinator's process: the ledger, a mirror, and the inbox that
// gathers between turns.
type lessor struct {
	host
	ledger  *lease.Ledger
	mirror  *coordinator.Memory
	epoch   lease.Epoch
	seq     uint64
	tickets lease.Ticket
	in      []lease.Message
	answers map[lease.Ticket]func(lease.Answer)
	replies map[lease.Ticket]func(lease.Reply)
	turning bool
	wakes   uint64 // tells a wake that a later one has replaced
	holders map[lease.Holder]*holder
}

func newLessor(w *World, p *lease.Policy, ppm int64) *lessor {
	l := &lessor{
		host:    host{world: w, ppm: ppm},
		ledger:  lease.NewLedger(p, lease.DefaultConfig()),
		mirror:  coordinator.NewMemory(),
		answers: map[lease.Ticket]func(lease.Answer){},
		replies: map[lease.Ticket]func(lease.Reply){},
		holders: map[lease.Holder]*holder{},
	}
	var err error
	if l.epoch, err = l.mirror.Campaign(context.Background()); err != nil {
		panic(err)
	}
	return l
}

// instant is ledger time: the wall clock at the beginning, and from then on the
// host's own monotonic clock.
func (l *lessor) instant() algo.Instant { return algo.Instant(origin).Add(l.elapsed()) }

func (l *lessor) request(r lease.Request, answer func(lease.Answer)) {
	l.tickets++
	l.answers[l.tickets] = answer
	l.take(lease.Message{Ticket: l.tickets, Arrived: l.instant(), Request: &r})
}

func (l *lessor) report(r lease.Report, reply func(lease.Reply)) {
	l.tickets++
	l.replies[l.tickets] = reply
	l.take(lease.Message{Ticket: l.tickets, Arrived: l.instant(), Report: &r})
}

func (l *lessor) take(m lease.Message) {
	l.in = append(l.in, m)
	if l.turning {
		return
	}
	l.turning = true
	gather := l.world.between(0, 200*time.Microsecond)
	if l.world.chance(0.001, "stalled turn") {
		gather = l.world.between(100*time.Millisecond, 2500*time.Millisecond)
	}
	l.after(gather, l.turn)
}

// turn does what the leader's turn loop does: load, read the instant, step the
// ledger, record, and only then answer.
func (l *lessor) turn() {
	l.turning = false
	for _, key := range l.ledger.Unloaded(l.in) {
		r, err := l.mirror.Load(context.Background(), key)
		if err != nil {
			panic(err)
		}
		l.ledger.Restore(r)
	}
	t := l.ledger.Turn(l.instant(), l.in)
	l.in = nil
	l.seq++
	t.Epoch, t.Seq = l.epoch, l.seq
	if err := l.mirror.Apply(context.Background(), t); err != nil {
		panic(fmt.Sprintf("sim: turn %d: %v", t.Seq, err))
	}
	for _, a := range t.Answers {
		if answer := l.answers[a.Ticket]; answer != nil {
			a.Answer.Epoch = l.epoch
			answer(a.Answer)
		}
		delete(l.answers, a.Ticket)
	}
	for _, r := range t.Replies {
		if reply := l.replies[r.Ticket]; reply != nil {
			r.Reply.Epoch = l.epoch
			reply(r.Reply)
		}
		delete(l.replies, r.Ticket)
	}
	for _, ticket := range t.Dropped {
		delete(l.answers, ticket)
	}
	for _, r := range t.Recalls {
		if h := l.holders[r.Holder]; h != nil {
			l.world.net.send(&l.host, &h.host, func() { h.recalled(r) })
		}
	}
	l.sleep()
}

// sleep sets the turn at which something comes about without a message.
func (l *lessor) sleep() {
	at, ok := l.ledger.Next()
	if !ok {
		return
	}
	l.wakes++
	wake := l.wakes
	l.after(max(0, at.Sub(l.instant()))+time.Microsecond, func() {
		if wake == l.wakes && !l.turning {
			l.turn()
		}
	})
}
