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
	if w.rand.IntN(6) == 0 {
		s.walls.set(l)
	}
	if s.steady || w.now < l.paused || !s.store.knows() {
		return
	}
	if n := w.rand.IntN(14); n < 8 {
		s.befalls(l, n)
	} else if w.now >= s.store.away {
		s.befallsStore(l, n)
	}
}

// befalls lets something befall a coordinator, or all.
func (s *site) befalls(l *lessor, what int) {
	w := s.world
	switch what {
	case 0, 1:
		w.count("coordinator killed")
		l.crash(w.between(time.Millisecond, 2*time.Second))
	case 2:
		if l.serving && !l.busy {
			w.count("handover")
			l.resign()
			l.after(2*time.Millisecond, func() { l.crash(w.between(time.Millisecond, time.Second)) })
		}
	case 3:
		w.count("coordinator paused")
		if l.serving {
			w.count("leader paused")
		}
		l.pause(w.between(time.Millisecond, 3*time.Second))
	case 4:
		w.count("coordinator cut off from the store")
		w.net.part(&l.host, w.between(10*time.Millisecond, 3*time.Second))
	case 5:
		w.count("coordinator cut off from NATS")
		w.net.partition(&l.host, w.between(10*time.Millisecond, 3*time.Second))
	case 6:
		w.count("route between NATS nodes lost")
		w.net.loseRoute(w.between(50*time.Millisecond, 2*time.Second))
	case 7:
		w.count("all coordinators killed")
		for _, l := range s.all {
			l.crash(w.between(time.Millisecond, 3*time.Second))
		}
		s.outage = true
		s.walls.outage()
	}
}

// befallsStore lets something befall the store, and perhaps a coordinator with it.
func (s *site) befallsStore(l *lessor, what int) {
	w := s.world
	switch what {
	case 8:
		if s.allKnow() || s.leaderIsHeard() {
			w.count("store started empty")
			s.store.restart(w.between(time.Millisecond, 4*time.Second), true)
		}
	case 9:
		w.count("store started with old data")
		s.store.restart(w.between(time.Millisecond, time.Second), false)
	case 10:
		if s.twoKnow() {
			w.count("store started empty, and its leader killed")
			s.store.restart(w.between(time.Millisecond, 300*time.Millisecond), true)
			l.crash(w.between(time.Second, 2*time.Second))
		}
	case 11:
		if s.store.copiesKnow() {
			w.count("store started with old data, and its leader killed")
			s.store.restart(w.between(time.Millisecond, 300*time.Millisecond), false)
			l.crash(w.between(time.Millisecond, 2*time.Second))
		}
	default:
		w.count("store hung")
		s.store.hang(w.between(50*time.Millisecond, 4*time.Second))
	}
}

// allKnow says that every coordinator has seen a seat, so that none of them takes an empty
// store for a new one; twoKnow that they can campaign, too.
func (s *site) allKnow() bool {
	for _, l := range s.all {
		if number, _ := l.candidate.Known(); number == 0 {
			return false
		}
	}
	return true
}

func (s *site) twoKnow() bool {
	for _, l := range s.all {
		if s.world.now < l.paused || s.world.net.severed(&l.host) || s.world.net.parted(&l.host) {
			return false
		}
	}
	return s.allKnow()
}

// leaderIsHeard says that who has seen no seat hears the leader.
func (s *site) leaderIsHeard() bool {
	for _, l := range s.all {
		if l.serving && s.world.now >= l.paused && !s.world.net.severed(&l.host) && s.world.now >= s.world.net.split {
			return true
		}
	}
	return false
}
