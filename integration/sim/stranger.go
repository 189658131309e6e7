package sim

import (
	"fmt"
	"time"

	"ration/lease"
)

// stranger is a holder that talks nonsense about leases of its own: counts above
// what it was granted, spends before the grant, the same again, and returns of
// what is over. It invents keys, holders and ids, more than there may be room for.
// It spends nothing. Whatever it says, it harms nobody but itself.
type stranger struct {
	host
	id   lease.Holder
	seq  uint64
	site *site
	keys []lease.Key
}

func newStranger(w *World, l *site, keys []lease.Key) *stranger {
	return &stranger{
		host: host{world: w},
		id:   lease.Holder{Name: "stranger", Incarnation: 1},
		site: l,
		keys: keys,
	}
}

func (s *stranger) begin() {
	if s.world.calm {
		return
	}
	switch {
	case s.world.chance(0.2, "flood"):
		s.flood()
	case s.world.chance(0.5, ""):
		s.ask()
	default:
		s.tell()
	}
	s.after(s.world.between(10*time.Millisecond, 500*time.Millisecond), s.begin)
}

func (s *stranger) ask() {
	s.seq++
	n := 1 + s.world.rand.Int64N(4)
	r := lease.Request{
		ID:       lease.ID{Holder: s.id, Seq: s.seq},
		Keys:     s.site.contract.keys(s.keys[s.world.rand.IntN(len(s.keys))]),
		Want:     lease.Amount{Tokens: n, Slots: 1},
		Need:     lease.Amount{Tokens: n, Slots: s.world.rand.Int64N(2)},
		Sent:     s.elapsed(),
		Patience: s.world.between(0, 200*time.Millisecond),
	}
	if n := s.world.rand.Int64N(8); n > 4 { // units that a rule may count, or none does
		r.Need.Units = lease.UnitsOf(map[string]int64{"v": n - 5, "w": n})
		r.Want.Units = lease.UnitsOf(map[string]int64{"v": n, "w": 2 * n})
	}
	s.site.toLeaders(&s.host, func(l *lessor) { l.request(r, func(lease.Answer) {}) })
}

func (s *stranger) tell() {
	if s.seq == 0 {
		return
	}
	w := s.world
	id := lease.ID{Holder: s.id, Seq: 1 + uint64(w.rand.Int64N(int64(s.seq)))}
	keys := s.site.contract.keys(s.keys[w.rand.IntN(len(s.keys))]) // perhaps not the lease's
	r := lease.Report{Holder: s.id, Sent: s.elapsed(), Heartbeat: w.rand.IntN(2) == 0}
	if w.chance(0.2, "nonsense given up") {
		r.GivenUp = append(r.GivenUp, lease.GivenUp{ID: id, Keys: keys})
	} else {
		w.count("nonsense counted")
		r.Counts = append(r.Counts, lease.Count{
			ID:       id,
			Keys:     keys,
			Points:   []lease.Point{{Count: w.rand.Int64N(6), Age: w.between(0, time.Minute)}, {Count: w.rand.Int64N(6)}},
			Returned: w.rand.Int64N(6),
			Freed:    w.rand.Int64N(3),
			Cut:      w.rand.Int64N(3),
		})
		c := &r.Counts[0]
		c.Points[w.rand.IntN(2)].Units = lease.UnitsOf(map[string]int64{"v": w.rand.Int64N(9), "w": w.rand.Int64N(20)})
		c.ReturnedUnits = lease.UnitsOf(map[string]int64{"u": w.rand.Int64N(2), "w": w.rand.Int64N(9)})
	}
	s.site.toLeaders(&s.host, func(l *lessor) { l.report(r, func(lease.Reply) {}) })
}

// flood asks for many new keys, in the name of many new holders, or gives up many
// ids, of which it then asks for one.
func (s *stranger) flood() {
	w := s.world
	keys := 40
	if w.chance(0.3, "flood of one key") {
		keys = 1
	}
	junk := func() []lease.Key { return []lease.Key{lease.Key(fmt.Sprintf("junk/%d", w.rand.IntN(keys)))} }
	ask := func(id lease.ID) {
		one := lease.Amount{Tokens: 1}
		r := lease.Request{ID: id, Keys: junk(), Want: one, Need: one, Sent: s.elapsed(), Patience: w.between(0, 2*time.Second)}
		s.site.toLeaders(&s.host, func(l *lessor) { l.request(r, func(lease.Answer) {}) })
	}
	const many = 40
	switch w.rand.IntN(3) {
	case 0:
		for range many {
			s.seq++
			ask(lease.ID{Holder: s.id, Seq: s.seq})
		}
	case 1:
		for range many {
			ask(lease.ID{Holder: lease.Holder{Name: "invented", Incarnation: w.rand.Uint64()}, Seq: 1})
		}
	default:
		r := lease.Report{Holder: s.id, Sent: s.elapsed()}
		for range many {
			s.seq++
			r.GivenUp = append(r.GivenUp, lease.GivenUp{ID: lease.ID{Holder: s.id, Seq: s.seq}, Keys: junk()})
		}
		w.rand.Shuffle(many, func(i, j int) { r.GivenUp[i], r.GivenUp[j] = r.GivenUp[j], r.GivenUp[i] })
		s.site.toLeaders(&s.host, func(l *lessor) { l.report(r, func(lease.Reply) {}) })
		id := lease.ID{Holder: s.id, Seq: s.seq - uint64(w.rand.IntN(many))}
		s.after(w.between(0, time.Second), func() { ask(id) })
	}
}
