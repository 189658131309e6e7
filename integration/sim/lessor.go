package sim

import (
	"context"
	"fmt"
	"reflect"
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

	policy   *lease.Policy
	config   lease.Config
	givenUp  map[string]bool // ids that were acknowledged as given up
	past     []lease.Stats   // of ledgers that are gone
	unlawful []string        // where a window's books were wrong
}

func newLessor(w *World, p *lease.Policy, ppm int64) *lessor {
	cfg := lease.DefaultConfig()
	if w.rand.IntN(2) == 0 {
		w.Faults["little room"]++
		cfg = littleRoom(cfg)
	}
	l := &lessor{
		host:    host{world: w, ppm: ppm},
		ledger:  lease.NewLedger(p, cfg),
		mirror:  coordinator.NewMemory(),
		answers: map[lease.Ticket]func(lease.Answer){},
		replies: map[lease.Ticket]func(lease.Reply){},
		holders: map[lease.Holder]*holder{},
		policy:  p,
		config:  cfg,
		givenUp: map[string]bool{},
	}
	l.campaign()
	return l
}

func (l *lessor) campaign() {
	ctx := context.Background()
	seen, err := l.mirror.Look(ctx)
	if err != nil {
		panic(err)
	}
	next := seen
	next.Epoch = lease.Epoch{Number: seen.Epoch.Number + 1, Mark: l.world.rand.Uint64()}
	if err := l.mirror.Campaign(ctx, seen, next); err != nil {
		panic(err)
	}
	l.epoch, l.seq = next.Epoch, 0
	l.ledger.SetDial(next.Dial)
}

// crash kills the process. After a while another one leads: all it knows is what
// the mirror has, and it loads that as it is asked for.
func (l *lessor) crash(down time.Duration) {
	l.past = append(l.past, l.ledger.Stats())
	l.life++
	l.pauseAt, l.paused = l.world.now, l.world.now+down
	l.in, l.turning = nil, false
	clear(l.answers)
	clear(l.replies)
	if err := l.mirror.Resign(context.Background(), l.epoch); err != nil {
		panic(err)
	}
	clear(l.givenUp)
	l.ledger = lease.NewLedger(l.policy, l.config)
	l.campaign()
	l.after(0, l.turn)
}

// stats adds up what all ledgers counted. What one adopted, another had granted.
func (l *lessor) stats() lease.Stats {
	sum := l.ledger.Stats()
	for _, s := range l.past {
		add(&sum, s)
	}
	return sum
}

// instant is ledger time: the wall clock at the beginning, and from then on the
// host's own monotonic clock.
func (l *lessor) instant() algo.Instant { return algo.Instant(l.world.origin).Add(l.elapsed()) }

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
	records, err := l.mirror.Load(context.Background(), l.epoch, l.ledger.Unloaded(l.in))
	if err != nil {
		panic(err)
	}
	for _, r := range records {
		l.ledger.Restore(r)
	}
	l.ledger.Wall(l.instant(), algo.Instant(l.world.unix())) // which is right
	t := l.ledger.Turn(l.instant(), l.in)
	l.holdTo(t)
	l.in = nil
	if l.seq%32 == 0 {
		l.check()
	}
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

// add adds the counts of s to those of sum.
func add(sum *lease.Stats, s lease.Stats) {
	to, from := reflect.ValueOf(sum).Elem(), reflect.ValueOf(s)
	for i := range to.NumField() {
		if f := to.Field(i); f.Kind() == reflect.Int64 {
			f.SetInt(f.Int() + from.Field(i).Int())
		}
	}
	for code, n := range s.Refused {
		sum.Refused[code] += n
	}
}
