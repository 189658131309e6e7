package sim

import (
	"time"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

// site is the store and the coordinators of a world.
type site struct {
	world    *World
	contract Contract
	store    *store
	all      []*lessor
	holders  map[lease.Holder]*holder
	walls    walls
	reforms  reforms
	steady   bool // nobody takes over, since windows begin by ledger time
	pauses   pauses
	latest   algo.Instant    // of any turn
	granted  map[string]bool // ids, with their keys
	outage   bool            // all coordinators are down, and none has led since
}

func newSite(w *World, p *lease.Policy, c Contract) *site {
	s := &site{
		world: w, contract: c, store: newStore(w), holders: map[lease.Holder]*holder{},
		pauses: pauses{}, granted: map[string]bool{},
	}
	s.store.restarted = s.pauses.restarted
	cfg := lease.DefaultConfig()
	if w.rand.IntN(2) == 0 {
		w.count("little room")
		cfg = littleRoom(cfg)
	}
	s.steady = c.onTheClock()
	for i := range 2 {
		l := newLessor(s, p, cfg, w.rand.Int64N(201)-100)
		l.node = i
		if s.steady {
			l.ppm = 0
		}
		s.all = append(s.all, l)
		if i == 0 || !s.steady {
			l.after(time.Duration(i)*30*time.Millisecond, l.stand)
		}
	}
	s.walls = newWalls(s, p, c)
	return s
}

// heard is what a coordinator hears of a leader, and of the other coordinator.
func (s *site) heard(by *lessor, epoch lease.Epoch) (h coordinator.Heard) {
	if h.Connected = !s.world.net.severed(&by.host); !h.Connected {
		return h
	}
	h.Silent = true
	for _, l := range s.all {
		frozen := s.world.now < l.paused
		switch {
		case l == by || s.world.net.severed(&l.host):
		case !s.world.net.routed(&by.host, &l.host):
			if l.serving && !frozen {
				s.world.count("standby hears nobody though the leader lives")
			}
		case frozen:
			h.Silent = h.Silent && !l.serving // its subscription is there
		default:
			number, _ := l.candidate.Known()
			if l.course != nil { // which it may have won anew
				number = max(number, l.course.Epoch().Number)
			}
			h.Number = max(h.Number, number)
			if l.serving {
				h.Led = max(h.Led, l.course.Epoch().Number)
			}
			h.Silent = h.Silent && !l.serving
			h.Served = h.Served || l.serving && (l.course.Epoch() == epoch || epoch == lease.Epoch{})
		}
	}
	h.Mute = !h.Silent && !h.Served
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
	serve, reached := 0, 0
	for _, l := range s.all {
		if !l.serving {
			continue
		}
		if serve++; !s.world.net.routed(from, &l.host) {
			continue
		}
		reached++
		led := l.course
		s.world.net.send(from, &l.host, func() {
			if l.serving && l.course == led {
				take(l)
			}
		})
	}
	switch {
	case serve > 1 && reached == 1:
		s.world.count("worker reaches one of two leaders")
	case serve > 1:
		s.world.count("two leaders at once")
	case serve > reached:
		s.world.count("worker is not on the leader's side")
	}
	return reached > 0
}
