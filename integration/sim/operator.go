package sim

import (
	"fmt"
	"time"

	"ration/algo"
	"ration/coordinator"
	"ration/integration/oracle"
	"ration/lease"
)

// operator is somebody who pauses keys and resumes them, charges what was used elsewhere, and
// resets a key that nobody judges. What is told may be lost, late or doubled, so it is told
// again until it is answered.
type operator struct {
	host
	site    *site
	charges int
}

func newOperator(w *World, s *site) *operator { return &operator{host: host{world: w}, site: s} }

// pausable are the keys that are paused now and then: of one that lies below junk, junk is.
func (s *site) pausable() []lease.Key {
	c := s.contract
	all := []lease.Key{s.charged(), c.key("other"), c.key(rare), "junk"}
	if c.Across != "" {
		all = append(all, beside, across)
	}
	return all
}

// charged is the key that is charged, and judged with it.
func (s *site) charged() lease.Key { return s.contract.key("k") }

func (o *operator) begin() {
	w := o.world
	if w.calm {
		o.finish(6)
		return
	}
	pausable := o.site.pausable()
	key := pausable[w.rand.IntN(len(pausable))]
	switch w.rand.IntN(4) {
	case 0:
		w.count("pause for a time")
		o.tell(lease.Act{Verb: lease.VerbPause, Key: key, For: w.between(50*time.Millisecond, 2*time.Second)}, func() {})
	case 1:
		w.count("pause until it is resumed")
		o.tell(lease.Act{Verb: lease.VerbPause, Key: key, Reason: "incident"}, func() {
			o.after(w.between(0, 1500*time.Millisecond), func() { o.tell(lease.Act{Verb: lease.VerbResume, Key: key}, func() {}) })
		})
	case 2:
		o.charges++
		o.tell(lease.Act{Verb: lease.VerbCharge, Key: o.site.charged(), ID: fmt.Sprint("c", o.charges), N: 1 + w.rand.Int64N(2)}, func() {})
	default:
		w.count("reset of a key")
		o.charges++
		o.tell(lease.Act{Verb: lease.VerbCharge, Key: "junk/0", ID: fmt.Sprint("c", o.charges), N: 1 + w.rand.Int64N(20)}, func() {
			o.tell(lease.Act{Verb: lease.VerbReset, Key: "junk"}, func() {})
		})
	}
	o.after(w.between(200*time.Millisecond, 2*time.Second), o.begin)
}

// finish resumes all, again and again, since a late word may pause a key once more.
func (o *operator) finish(times int) {
	for _, key := range o.site.pausable() {
		o.tell(lease.Act{Verb: lease.VerbResume, Key: key}, func() {})
	}
	if times > 0 {
		o.after(time.Second, func() { o.finish(times - 1) })
	}
}

// tell has an act done: it is told until it is answered, a charge only until the calm.
func (o *operator) tell(a lease.Act, then func()) {
	answered := false
	var again func()
	again = func() {
		if answered || o.world.calm && a.Verb == lease.VerbCharge {
			return
		}
		o.site.toLeaders(&o.host, func(l *lessor) {
			l.act(a, func() {
				o.world.net.send(&l.host, &o.host, func() {
					if !answered {
						answered = true
						then()
					}
				})
			})
		})
		o.after(500*time.Millisecond, func() {
			if !answered {
				o.world.count("act unheard")
			}
			again()
		})
	}
	again()
}

// told is an act that came to a coordinator, and what is done when it is recorded.
type told struct {
	act  lease.Act
	done func()
}

// act takes up an act for the next turn.
func (l *lessor) act(a lease.Act, done func()) {
	l.acts = append(l.acts, told{a, done})
	l.soon()
}

// about gives the keys of acts.
func about(acts []told) (keys []lease.Key) {
	for _, a := range acts {
		keys = append(keys, a.act.Key)
	}
	return keys
}

// performed is an act that was done, and what is to be done when it is recorded.
type performed struct {
	act   lease.Act
	pause *lease.Pause
	then  func()
}

// perform does acts before a turn of that instant.
func (l *lessor) perform(acts []told, now algo.Instant) (all []performed) {
	for _, x := range acts {
		if x.act.Verb == lease.VerbCharge && x.act.Key == l.site.charged() && !l.room(x.act, now) {
			l.world.count("charge without room")
			continue
		}
		if x.act.Verb == lease.VerbReset && !l.ledger.Complete() {
			continue
		}
		at := l.world.unix()
		acted, err := l.ledger.Act(now, l.wall(), x.act)
		if err != nil { // there may be no room for the key
			continue
		}
		all = append(all, performed{x.act, acted.Pause, func() {
			if x.act.Verb == lease.VerbCharge && x.act.Key == l.site.charged() && !acted.Again {
				l.world.count("charge")
				l.world.charges = append(l.world.charges, oracle.Spend{Key: string(x.act.Key), At: at, Cost: x.act.N, Done: at})
			}
			x.done()
		}})
	}
	return all
}

// ordered notes in which turn acts were done, and gives what is to be done when that is
// recorded.
func (l *lessor) ordered(t *lease.Turn, all []performed) (recorded []func()) {
	order := orderOf(t)
	for _, x := range all {
		l.site.pauses.performed(x.act, order, l.course)
		recorded = append(recorded, func() {
			l.site.pauses.recorded(x.act, order, x.pause)
			x.then()
		})
	}
	return recorded
}

// room says that a charge breaks no limit by itself: all of it is free, and the coordinator has
// led for so long that it knows what is. While a policy changes it is judged by none.
func (l *lessor) room(a lease.Act, now algo.Instant) bool {
	if l.world.calm || l.world.now-l.led < 2*time.Second || !l.site.reforms.told(l) {
		return false
	}
	for _, k := range l.ledger.Status(now, a.Key).Keys {
		for _, w := range k.Windows {
			if w.Free < a.N {
				return false
			}
		}
	}
	return true
}

// turnOrder is the place of a turn among all that are recorded.
type turnOrder struct{ epoch, seq uint64 }

// orderOf gives the place of a turn that is numbered.
func orderOf(t *lease.Turn) turnOrder { return turnOrder{t.Epoch.Number, t.Seq} }

func (t turnOrder) before(u turnOrder) bool {
	return t.epoch < u.epoch || t.epoch == u.epoch && t.seq < u.seq
}

// pauses is what is known of the pauses of keys from the acts that were recorded.
type pauses map[lease.Key]pausing

type pausing struct {
	order turnOrder
	sure  bool
	pause *lease.Pause        // nil for none
	by    *coordinator.Course // under which it was done
	lost  bool                // the store may have lost it since, and no other leader has it
}

// performed says that it is not known what a key is by now: whether it is recorded is to come.
func (p pauses) performed(a lease.Act, order turnOrder, by *coordinator.Course) {
	if (a.Verb == lease.VerbPause || a.Verb == lease.VerbResume) && !order.before(p[a.Key].order) {
		p[a.Key] = pausing{order: order, by: by}
	}
}

func (p pauses) recorded(a lease.Act, order turnOrder, pause *lease.Pause) {
	if a.Verb == lease.VerbResume {
		pause = nil
	}
	x := p[a.Key]
	if (a.Verb == lease.VerbPause || a.Verb == lease.VerbResume) && order == x.order {
		x.sure, x.pause = true, pause
		p[a.Key] = x
	}
}

// restarted says that the store may have lost what it had: no leader but that which did it is
// held to a pause.
func (p pauses) restarted() {
	for k, x := range p {
		x.lost = true
		p[k] = x
	}
}

// binds says that a key is surely paused in a turn of a leadership, since it was recorded
// before.
func (p pauses) binds(k lease.Key, order turnOrder, by *coordinator.Course, now algo.Instant) bool {
	for prefix := range k.Prefixes() {
		x := p[prefix]
		if x.sure && (!x.lost || x.by == by) && x.pause != nil && x.order.before(order) && (x.pause.Until == 0 || now.Before(x.pause.Until)) {
			return true
		}
	}
	return false
}

// holdToPauses requires that nothing is granted anew of what is paused. A pause that has ended
// by the time of any leader has: the one after it may begin a little earlier.
func (l *lessor) holdToPauses(t *lease.Turn) {
	order := orderOf(t)
	l.site.latest = max(l.site.latest, t.Instant)
	for _, a := range t.Answers {
		keys, ok := l.keys[a.Ticket]
		if !ok || a.Answer.Outcome != lease.Granted {
			continue
		}
		id := string(keys[0]) + " " + a.Answer.ID.String()
		for _, key := range keys {
			if !l.site.granted[id] && l.site.pauses.binds(key, order, l.course, l.site.latest) {
				l.say("%s of %s was granted while %s is paused", a.Answer.ID, keys[0], key)
			}
		}
		l.site.granted[id] = true
	}
}
