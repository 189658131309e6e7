package sim

import (
	"strings"
	"time"

	"ration/coordinator"
	"ration/lease"
)

// site is the store and the coordinators of a world.
type site struct {
	world   *World
	store   *store
	all     []*lessor
	holders map[lease.Holder]*holder
	onTime  bool          // wall clocks show true time, since windows begin by it
	steady  bool          // nobody takes over, since windows begin by ledger time
	lost    time.Duration // until then NATS answers for a leader that lives that there is none
}

func newSite(w *World, p *lease.Policy, c Contract) *site {
	s := &site{world: w, store: newStore(w), holders: map[lease.Holder]*holder{}}
	cfg := lease.DefaultConfig()
	if w.rand.IntN(2) == 0 {
		w.Faults["little room"]++
		cfg = littleRoom(cfg)
	}
	s.onTime = strings.Contains(c.Rules, "fixed")
	if s.steady = c.onTheClock(); s.onTime || s.steady {
		s.store.wallAt = 0
	}
	for i := range 2 {
		l := newLessor(s, p, cfg, w.rand.Int64N(201)-100)
		if s.steady {
			l.ppm = 0
		} else {
			l.wallAt = w.between(-3*time.Second, 3*time.Second)
		}
		s.all = append(s.all, l)
		if i == 0 || !s.steady {
			l.after(time.Duration(i)*30*time.Millisecond, l.stand)
		}
	}
	return s
}

// heard is what a coordinator hears of a leader, and of the other coordinator.
func (s *site) heard(by *lessor, epoch lease.Epoch) (h coordinator.Heard) {
	if h.Connected = !s.world.net.severed(&by.host); !h.Connected {
		return h
	}
	served := false
	for _, l := range s.all {
		if l == by || s.world.net.severed(&l.host) || s.world.now < l.paused {
			served = served || l != by && l.serving && s.world.now < l.paused // its subscription is there
			continue
		}
		number, _ := l.candidate.Known()
		h.Number = max(h.Number, number)
		if l.serving {
			served = true
			h.Served = h.Served || l.course.Epoch() == epoch || epoch == lease.Epoch{}
		}
	}
	h.Silent = !served || s.world.now < s.lost
	return h
}

// leader is who serves now, or nil.
func (s *site) leader() *lessor {
	for _, l := range s.all {
		if l.serving {
			return l
		}
	}
	return nil
}

// toLeaders carries a message to every coordinator that serves, as NATS does, and says
// whether there was one.
func (s *site) toLeaders(from *host, take func(l *lessor)) bool {
	any := false
	for _, l := range s.all {
		if l.serving && !(s.world.now < s.lost && l.world.rand.IntN(2) == 0) {
			any = true
			led := l.course
			s.world.net.send(from, &l.host, func() {
				if l.serving && l.course == led {
					take(l)
				}
			})
		}
	}
	return any
}

// stats adds up what all ledgers counted. What one adopted, another had granted.
func (s *site) stats() (sum lease.Stats) {
	sum.Refused = map[string]int64{}
	for _, l := range s.all {
		if l.course != nil {
			add(&sum, l.ledger.Stats())
		}
		for _, past := range l.past {
			add(&sum, past)
		}
	}
	return sum
}

// apart says that calendar time is not what the leader's wall clock shows.
func (s *site) apart() bool {
	l := s.leader()
	return l != nil && l.ledger.Summary(l.instant()).Clock.Wider > 0
}
