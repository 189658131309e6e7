package sim

import (
	"fmt"
	"strings"
	"time"

	"ration/algo"
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

// pausable are the keys that are paused now and then: of one that lies below junk, junk is, and
// where keys are paths, prefixes of theirs too, also such that no limit names.
func (s *site) pausable() []lease.Key {
	c := s.contract
	keys := []lease.Key{s.charged(), c.key("other"), c.key(rare), "junk"}
	if c.levels() {
		keys = append(keys, above, above+"/key")
	}
	if c.Beside != "" {
		keys = append(keys, above+"/route")
	}
	if c.Across != "" {
		keys = append(keys, beside, across)
	}
	return keys
}

// charged is the key that is charged, and judged with it.
func (s *site) charged() lease.Key { return s.contract.key("k") }

// elsewhere is a key that nobody asks for, but what is charged there counts above.
func (s *site) elsewhere() lease.Key { return s.contract.key("elsewhere") }

// judged says that an act is a charge that others are judged with.
func (s *site) judged(a lease.Act) bool {
	return a.Verb == lease.VerbCharge && (a.Key == s.charged() || a.Key == s.elsewhere())
}

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
			o.after(o.lasts(), func() { o.tell(lease.Act{Verb: lease.VerbResume, Key: key}, func() {}) })
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

// chargeAbove charges again and again what the busy fleet would take of a prefix, no more at a
// time than comes back at once.
func (o *operator) chargeAbove() {
	if o.world.calls.stopped {
		return
	}
	o.charges++
	a := lease.Act{Verb: lease.VerbCharge, Key: o.site.elsewhere(), ID: fmt.Sprint("c", o.charges), N: 1}
	if strings.Contains(o.site.contract.Above, "unit=w") {
		a.N, a.Unit = busyUnits, "w"
	}
	o.tell(a, func() {
		o.world.count("charge above")
		o.after(o.world.between(100*time.Millisecond, time.Second), o.chargeAbove)
	})
}

// lasts is for how long a key is paused: where keys are paths, now and then for longer than
// their tokens live.
func (o *operator) lasts() time.Duration {
	w := o.world
	if o.site.contract.levels() && w.rand.IntN(6) == 0 {
		w.count("pause past the leases")
		return tokensLive + w.between(500*time.Millisecond, 3*time.Second)
	}
	return w.between(0, 1500*time.Millisecond)
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

// tell has an act done: it is told until it is answered, a charge of what is judged by itself
// only until the calm.
func (o *operator) tell(a lease.Act, then func()) {
	answered := false
	var again func()
	again = func() {
		if answered || o.world.calm && a.Verb == lease.VerbCharge && a.Key != o.site.elsewhere() {
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
		if l.site.judged(x.act) && !l.room(x.act, now) {
			l.world.count("charge without room")
			if x.act.Key == l.site.elsewhere() {
				l.putOff = x
			}
			continue
		}
		if x.act.Verb == lease.VerbReset && !l.course.Loaded() {
			continue // it waits until all is; it is told again
		}
		at := l.world.unix()
		was := l.held(x.act, now)
		acted, err := l.ledger.Act(now, l.wall(), x.act)
		if err != nil { // there may be no room for the key
			continue
		}
		l.holdToReset(x.act, now, was)
		all = append(all, performed{x.act, acted.Pause, func() {
			if l.site.judged(x.act) && !acted.Again {
				l.world.count("charge")
				l.world.charges = append(l.world.charges, charged(x.act, at))
			}
			x.done()
		}})
	}
	return all
}

// held is what leases hold of what a reset is of, by rules and their keys; nil for another act.
func (l *lessor) held(a lease.Act, now algo.Instant) map[string]int64 {
	if a.Verb != lease.VerbReset {
		return nil
	}
	held := map[string]int64{}
	l.eachReset(a, now, func(rule string, w lease.WindowStatus) { held[rule] = w.Held })
	return held
}

// eachReset calls do for each rule at and below the key of a reset.
func (l *lessor) eachReset(a lease.Act, now algo.Instant, do func(rule string, w lease.WindowStatus)) {
	for _, k := range l.ledger.Status(now, a.Key).Keys {
		for _, w := range k.Windows {
			if k.Key == a.Key || strings.HasPrefix(string(k.Key), string(a.Key)+"/") {
				do(string(k.Key)+" "+w.Rule, w)
			}
		}
	}
}

// holdToReset requires that a reset forgets all that was spent, and nothing that is held. What
// leases may hold that a mirror in doubt lacks may be held from then on.
func (l *lessor) holdToReset(a lease.Act, now algo.Instant, was map[string]int64) {
	if a.Verb != lease.VerbReset {
		return
	}
	if !l.ledger.Complete() {
		l.world.count("reset while the mirror is in doubt")
	}
	l.eachReset(a, now, func(rule string, w lease.WindowStatus) {
		if w.Spent != 0 || w.Held < was[rule] || w.Held > was[rule] && l.ledger.Complete() {
			l.say("%s: %d held and %d spent after a reset, and %d held before", rule, w.Held, w.Spent, was[rule])
		}
	})
}

// charged is what a charge says was spent.
func charged(a lease.Act, at int64) oracle.Spend {
	s := oracle.Spend{Key: string(a.Key), At: at, Done: at}
	if a.Unit == "" {
		s.Cost = a.N
	} else {
		s.Units = map[string]int64{a.Unit: a.N}
	}
	return s
}

// ordered notes in which turn acts were done, and gives what is to be done when that is
// recorded.
func (l *lessor) ordered(t *lease.Turn, all []performed) (recorded []func()) {
	order := orderOf(t)
	for _, x := range all {
		l.site.pauses.performed(x.act, order, l.course)
		recorded = append(recorded, func() {
			l.site.pauses.recorded(x.act, order, x.pause, l.world.now)
			x.then()
		})
	}
	return recorded
}

// room says that a charge breaks no limit by itself: all of it is free, and the coordinator has
// led for so long that it knows what is. While a policy changes it is judged by none.
func (l *lessor) room(a lease.Act, now algo.Instant) bool {
	if l.world.calm && a.Key != l.site.elsewhere() || l.world.now-l.led < 2*time.Second || !l.site.reforms.told(l) {
		return false
	}
	for _, k := range l.ledger.Status(now, a.Key).Keys {
		for _, w := range k.Windows {
			if counts(w.Rule, a.Unit) && w.Free < a.N {
				return false
			}
		}
	}
	return true
}

// counts says that a rule, as it is written, counts a unit, calls if that is empty, and no slots.
func counts(rule, unit string) bool {
	_, of, _ := strings.Cut(rule, "unit=")
	return of == unit && !strings.Contains(rule, "concurrent")
}
