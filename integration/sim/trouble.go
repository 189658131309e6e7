package sim

import "time"

// trouble lets something befall the coordinators and their store. Data and everybody who
// knew it are never lost at once: that is not promised.
func (s *site) trouble() {
	w := s.world
	l := s.leader()
	if l == nil || w.rand.IntN(3) == 0 {
		l = s.all[w.rand.IntN(len(s.all))]
	}
	if s.steady || w.now < l.paused || !s.store.knows() || w.now < s.store.away {
		return
	}
	switch w.rand.IntN(12) {
	case 0, 1:
		w.Faults["coordinator killed"]++
		l.crash(w.between(time.Millisecond, 2*time.Second))
	case 2:
		if l.serving && !l.busy {
			w.Faults["handover"]++
			l.resign()
			l.after(2*time.Millisecond, func() { l.crash(w.between(time.Millisecond, time.Second)) })
		}
	case 3:
		w.Faults["coordinator paused"]++
		l.pause(w.between(time.Millisecond, 3*time.Second))
	case 4:
		w.Faults["coordinator cut off from the store"]++
		w.net.part(&l.host, w.between(10*time.Millisecond, 3*time.Second))
	case 5:
		w.Faults["coordinator cut off from NATS"]++
		w.net.partition(&l.host, w.between(10*time.Millisecond, 3*time.Second))
	case 6:
		w.Faults["route between NATS nodes lost"]++
		s.lost = max(s.lost, w.now+w.between(50*time.Millisecond, time.Second))
	case 7:
		w.Faults["store started empty"]++
		s.store.restart(w.between(time.Millisecond, 4*time.Second), true)
	case 8:
		w.Faults["store started with old data"]++
		s.store.restart(w.between(time.Millisecond, time.Second), false)
	case 9:
		if s.twoKnow() {
			w.Faults["store started empty, and its leader killed"]++
			s.store.restart(w.between(time.Millisecond, 300*time.Millisecond), true)
			l.crash(w.between(time.Second, 2*time.Second))
		}
	case 10:
		if s.store.copiesKnow() {
			w.Faults["store started with old data, and its leader killed"]++
			s.store.restart(w.between(time.Millisecond, 300*time.Millisecond), false)
			l.crash(w.between(time.Millisecond, 2*time.Second))
		}
	case 11:
		w.Faults["all coordinators killed"]++
		for _, l := range s.all {
			l.crash(w.between(time.Millisecond, 3*time.Second))
		}
	}
}

// twoKnow says that both coordinators run and have seen a seat.
func (s *site) twoKnow() bool {
	for _, l := range s.all {
		if number, _ := l.candidate.Known(); number == 0 || s.world.now < l.paused {
			return false
		}
	}
	return true
}
