package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

// store is the server of the mirror: a process with a clock of its own, that loses
// calls, answers and data.
type store struct {
	host
	memory    *coordinator.Memory
	run       int                   // which life of it this is
	away      time.Duration         // until then it answers nothing
	restarted func()                // is told of each restart, if it is not nil
	copies    []*coordinator.Memory // as it was, each some time after the other; the oldest first
	wallAt    time.Duration         // by how much its wall clock is off
}

// call is something that the store does.
type call func(ctx context.Context, m *coordinator.Memory) error

const (
	// lag is how much the store forgets at most when it starts again with its data.
	lag       = 300 * time.Millisecond
	copyEvery = 50 * time.Millisecond
)

var errAway = errors.New("sim: the store does not answer")

func newStore(w *World) *store {
	s := &store{host: host{world: w}}
	s.memory = s.fresh()
	s.keepCopies()
	return s
}

// fresh gives an empty mirror in the next life of the process.
func (s *store) fresh() *coordinator.Memory {
	s.run++
	m := coordinator.NewMemory()
	m.Life = fmt.Sprint(s.run)
	m.Clock = func() algo.Instant { return algo.Instant(s.world.origin).Add(s.elapsed() + s.wallAt) }
	return m
}

func (s *store) keepCopies() {
	s.copies = append(s.copies, s.memory.Copy())
	if n := int(lag/copyEvery) - 1; len(s.copies) > n {
		s.copies = s.copies[len(s.copies)-n:]
	}
	if !s.world.calm {
		s.world.after(copyEvery, s.keepCopies)
	}
}

// restart ends the process, and starts it again after a while, with what it had some
// time before, or with nothing.
func (s *store) restart(down time.Duration, empty bool) {
	s.away = max(s.away, s.world.now+down)
	if s.restarted != nil {
		s.restarted()
	}
	s.life++ // what is on its way to it is lost
	next := s.fresh()
	if !empty {
		next.Restore(s.copies[s.world.rand.IntN(len(s.copies))])
		if was, is := seatOf(s.memory), seatOf(next); was.Epoch != is.Epoch || was.Seq != is.Seq {
			s.world.count("store lost its tail")
		}
	}
	s.memory = next
	s.copies = []*coordinator.Memory{next.Copy()}
}

// call asks the store, and tells what came of it, unless who asks has died meanwhile. A
// call or its answer may be lost, be late, or be carried out twice.
func (s *store) call(from *host, do call, told func(error)) { s.ask(from, do, 0, told) }

// campaign asks for the seat.
func (s *store) campaign(from *host, seen, next lease.Seat, told func(error)) {
	s.ask(from, func(ctx context.Context, m *coordinator.Memory) error { return m.Campaign(ctx, seen, next) }, 0.2, told)
}

// ask is call, whose answer is lost with probability unheard besides.
func (s *store) ask(from *host, do call, unheard float64, told func(error)) {
	w, over := s.world, false
	tell := func(err error) {
		if !over {
			over = true
			told(err)
		}
	}
	wait := 60 * time.Millisecond
	from.after(wait, func() { tell(errAway) })
	arrive := func(answer func(error)) func() {
		life := s.life
		return func() {
			if s.life != life || w.now < s.away {
				return
			}
			answer(do(context.Background(), s.memory))
		}
	}
	answer := func(err error) {
		if w.chance(0.004, "answer of the mirror lost") || w.chance(unheard, "answer to a campaign lost") {
			return
		}
		w.after(w.between(20*time.Microsecond, 150*time.Microsecond), func() { from.after(0, func() { tell(err) }) })
	}
	if w.net.parted(from) || w.chance(0.003, "call of the mirror lost") {
		return
	}
	d := w.between(20*time.Microsecond, 300*time.Microsecond)
	if w.chance(0.004, "call of the mirror late") {
		d = w.between(10*time.Millisecond, 400*time.Millisecond)
	}
	w.after(d, arrive(answer))
	if w.chance(0.004, "call of the mirror carried out twice") {
		w.after(d+w.between(0, 300*time.Millisecond), arrive(func(error) {}))
	}
}

// hang lets the process not answer for a while, and lose nothing.
func (s *store) hang(d time.Duration) { s.away = max(s.away, s.world.now+d) }

// knows says that somebody has a seat in the store, so that no state is lost for good if
// any coordinator dies; copiesKnow that it would be so with old data.
func (s *store) knows() bool { return hasSeat(s.memory) }

func (s *store) copiesKnow() bool {
	return !slices.ContainsFunc(s.copies, func(m *coordinator.Memory) bool { return !hasSeat(m) })
}

func hasSeat(m *coordinator.Memory) bool { return seatOf(m).Epoch != lease.Epoch{} }

func seatOf(m *coordinator.Memory) lease.Seat {
	seat, _ := m.Look(context.Background()) // memory fails never
	return seat
}
