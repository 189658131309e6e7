package sim

import (
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
	face      face

	// While it leads.
	course  *coordinator.Course
	ledger  *lease.Ledger
	serving bool
	led     time.Duration // since then, of true time
	began   time.Duration // and of its own clock
	origin  algo.Instant
	heardAt time.Duration // when it could be asked last
	later   uint64        // the highest epoch that the other was ever heard to have seen
	pulse   lease.Pulse
	applied uint64
	unknown *lease.Turn // of which it is not known whether it is recorded
	busy    bool        // a turn is being loaded or recorded
	in      []lease.Message
	acts    []told
	reforms []*lease.Policy // that wait for a turn
	putOff  told            // until there is room for it; of several the last
	turning bool
	wakes   uint64 // tells a wake that a later one has replaced

	tickets lease.Ticket
	answers map[lease.Ticket]func(lease.Answer)
	replies map[lease.Ticket]func(lease.Reply)
	keys    map[lease.Ticket][]lease.Key // of requests that are not answered

	policy   *lease.Policy       // of its file
	known    coordinator.InForce // as far as it knows
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
		keys:    map[lease.Ticket][]lease.Key{},
		policy:  p,
		config:  cfg,
		givenUp: map[string]bool{},
	}
	l.candidate = newCandidate()
	l.known.Policy = p
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
	l.known = coordinator.InForce{Policy: l.policy}
	l.booted()
	l.after(0, l.stand)
}

// hear gives what is heard of the other, and the highest epoch that ever was.
func (l *lessor) hear() coordinator.Heard {
	h := l.site.heard(l, l.course.Epoch())
	l.later = max(l.later, h.Number)
	h.Number = l.later
	return h
}

// instant is ledger time.
func (l *lessor) instant() algo.Instant { return l.origin.Add(l.elapsed() - l.began) }

func (l *lessor) request(r lease.Request, answer func(lease.Answer)) {
	l.tickets++
	l.answers[l.tickets] = answer
	l.keys[l.tickets] = r.Keys
	l.take(lease.Message{Ticket: l.tickets, Arrived: l.instant(), Request: &r})
}

func (l *lessor) report(r lease.Report, reply func(lease.Reply)) {
	l.tickets++
	l.replies[l.tickets] = reply
	l.take(lease.Message{Ticket: l.tickets, Arrived: l.instant(), Report: &r})
}

func (l *lessor) take(m lease.Message) {
	l.in = append(l.in, m)
	l.soon()
}

// soon takes a turn when more has gathered.
func (l *lessor) soon() {
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
