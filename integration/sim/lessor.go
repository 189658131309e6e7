package sim

import (
	"context"
	"reflect"
	"time"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

// lessor is a coordinator's process: a candidate for the seat and, while it leads, a
// ledger, how that is mirrored, and the inbox that gathers between turns. It does what
// the coordinator's own loops do.
type lessor struct {
	host
	site      *site
	candidate *coordinator.Candidate
	wallAt    time.Duration // by how much its wall clock is off

	// While it leads.
	course  *coordinator.Course
	ledger  *lease.Ledger
	serving bool
	began   time.Duration
	origin  algo.Instant
	heardAt time.Duration // when it could be asked last
	pulse   lease.Pulse
	applied uint64
	busy    bool // a turn is being loaded or recorded
	in      []lease.Message
	turning bool
	wakes   uint64 // tells a wake that a later one has replaced

	tickets lease.Ticket
	answers map[lease.Ticket]func(lease.Answer)
	replies map[lease.Ticket]func(lease.Reply)

	policy   *lease.Policy
	config   lease.Config
	givenUp  map[string]bool // ids that were acknowledged as given up, by this leader
	past     []lease.Stats   // of ledgers that are gone
	unlawful []string        // where a window's books were wrong
}

func newLessor(s *site, p *lease.Policy, cfg lease.Config, ppm int64) *lessor {
	l := &lessor{
		host:    host{world: s.world, ppm: ppm},
		site:    s,
		answers: map[lease.Ticket]func(lease.Answer){},
		replies: map[lease.Ticket]func(lease.Reply){},
		policy:  p,
		config:  cfg,
		givenUp: map[string]bool{},
	}
	l.candidate = newCandidate()
	return l
}

func newCandidate() *coordinator.Candidate {
	return coordinator.NewCandidate(coordinator.CandidateConfig{Partitions: 1, TTL: seatTTL, Early: seatEarly, Lag: lag})
}

// crash kills the process. After a while it starts anew, and knows nothing.
func (l *lessor) crash(down time.Duration) {
	l.end()
	l.life++
	l.pauseAt, l.paused = l.world.now, l.world.now+down
	l.candidate = newCandidate()
	l.after(0, l.stand)
}

// instant is ledger time.
func (l *lessor) instant() algo.Instant { return l.origin.Add(l.elapsed() - l.began) }

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
	led := l.course
	l.after(gather, func() {
		if l.course == led {
			l.turn()
		}
	})
}

// turn does what the leader's turn loop does: load, read the instant, step the
// ledger, record, and only then answer. While one is under way what comes gathers.
func (l *lessor) turn() {
	if l.busy || l.course == nil {
		return
	}
	l.busy, l.turning = true, false
	in := l.in
	l.in = nil
	l.load(l.ledger.Unloaded(in), func() { l.step(in) })
}

func (l *lessor) step(in []lease.Message) {
	now := l.instant()
	l.ledger.Wall(now, l.wall())
	t := l.ledger.Turn(now, in)
	l.holdTo(t, in)
	if t.Instant%32 == 0 {
		l.check()
	}
	l.course.Number(l.ledger, t, l.wall())
	l.apply(t)
}

// mirror asks the store under the leader's epoch until it does what it is asked, and then
// goes on. Where the store has lost something the leader wins it back first, and t can be
// applied then.
func (l *lessor) mirror(t *lease.Turn, do func(epoch lease.Epoch) call, then func()) {
	led := l.course
	again := func() { l.mirror(t, do, then) }
	l.site.store.call(&l.host, do(led.Epoch()), func(err error) {
		switch {
		case l.course != led:
		case err == nil:
			then()
		case l.course.Again(err):
			l.winBack(t, again)
		case lease.Code(err) == lease.ErrFenced.Code():
			l.world.Faults["deposed by a turn"]++
			l.depose()
		default:
			l.world.Faults["outcome unknown"]++
			l.after(10*time.Millisecond, func() {
				if l.course == led {
					again()
				}
			})
		}
	})
}

func (l *lessor) apply(t *lease.Turn) {
	l.mirror(t, func(lease.Epoch) call {
		sent := *t // what is late has its old content
		return func(ctx context.Context, m *coordinator.Memory) error { return m.Apply(ctx, &sent) }
	}, func() {
		l.applied = t.Seq
		l.course.Applied(l.ledger, t)
		l.deliver(t)
	})
}

// winBack campaigns for the seat of a store that has lost something, and goes on.
func (l *lessor) winBack(t *lease.Turn, then func()) {
	led := l.course
	later := func(err error) {
		switch {
		case l.course != led:
		case lease.Code(err) == lease.ErrFenced.Code():
			l.world.Faults["deposed by the store's loss"]++
			l.depose()
		default:
			l.after(10*time.Millisecond, func() {
				if l.course == led {
					then()
				}
			})
		}
	}
	var seen lease.Seat
	l.site.store.call(&l.host, func(ctx context.Context, m *coordinator.Memory) (err error) {
		seen, err = m.Look(ctx)
		return err
	}, func(err error) {
		if err != nil || l.course != led {
			later(err)
			return
		}
		next, won, err := l.course.Bid(l.ledger, seen, l.instant(), l.wall(), l.world.rand.Uint64())
		if err != nil {
			later(err)
			return
		}
		finish := func() {
			l.world.Faults["won back"]++
			l.course.Won(l.ledger, next, t, l.wall())
			then()
		}
		if won {
			l.world.Faults["won back unheard"]++
			finish()
			return
		}
		l.site.store.call(&l.host, func(ctx context.Context, m *coordinator.Memory) error {
			return m.Campaign(ctx, seen, next)
		}, func(err error) {
			if err != nil || l.course != led {
				later(err)
				return
			}
			finish()
		})
	})
}

// load restores keys, and now and then all there are.
func (l *lessor) load(keys []lease.Key, then func()) {
	if !l.course.Loaded() && l.world.rand.IntN(5) == 0 {
		var all []lease.Key
		l.mirror(nil, func(epoch lease.Epoch) call {
			return func(ctx context.Context, m *coordinator.Memory) (err error) {
				all, _, err = m.Keys(ctx, epoch, "")
				return err
			}
		}, func() {
			for _, k := range all {
				if !l.ledger.Has(k) {
					keys = append(keys, k)
				}
			}
			l.restore(keys, func() {
				l.course.AllLoaded(l.ledger)
				then()
			})
		})
		return
	}
	l.restore(keys, then)
}

func (l *lessor) restore(keys []lease.Key, then func()) {
	if len(keys) == 0 {
		then()
		return
	}
	var records []lease.Record
	l.mirror(nil, func(epoch lease.Epoch) call {
		return func(ctx context.Context, m *coordinator.Memory) error {
			got, err := m.Load(ctx, epoch, keys)
			if err == nil {
				records = got
			}
			return err
		}
	}, func() {
		for _, r := range records {
			l.ledger.Restore(r)
		}
		then()
	})
}

func (l *lessor) deliver(t *lease.Turn) {
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
	}
	for _, r := range t.Recalls {
		if h := l.site.holders[r.Holder]; h != nil {
			l.world.net.send(&l.host, &h.host, func() { h.recalled(r) })
		}
	}
	l.busy = false
	if len(l.in) > 0 {
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
