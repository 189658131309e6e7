package sim

import (
	"fmt"
	"time"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

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
	since time.Duration       // true time at which it was sure
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

func (p pauses) recorded(a lease.Act, order turnOrder, pause *lease.Pause, at time.Duration) {
	if a.Verb == lease.VerbResume {
		pause = nil
	}
	x := p[a.Key]
	if (a.Verb == lease.VerbPause || a.Verb == lease.VerbResume) && order == x.order {
		x.sure, x.since, x.pause = true, at, pause
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

// ended says that no token of a key can be held any more: it is surely paused, until it is
// resumed, for longer than tokens live.
func (p pauses) ended(k lease.Key, now time.Duration) bool {
	for prefix := range k.Prefixes() {
		x := p[prefix]
		if x.sure && !x.lost && x.pause != nil && x.pause.Until == 0 && now-x.since > tokensLive {
			return true
		}
	}
	return false
}

// tokensLive is for how long a token lives at most after its grant.
var tokensLive = lease.DefaultConfig().TokenTTL + lease.DefaultConfig().TokenTTL/1000

// holdToEnd requires of a call that begins that the leases of what is paused have ended in
// their time.
func (s *site) holdToEnd(k lease.Key) {
	for _, key := range s.contract.keys(k) {
		if s.pauses.ended(key, s.world.now) {
			s.unlawful = append(s.unlawful, fmt.Sprintf("at %v a call on %s began, which is paused for longer than its tokens live", s.world.now, k))
		}
	}
}

// holdToPauses requires that nothing is granted anew of what is paused.
func (l *lessor) holdToPauses(t *lease.Turn) {
	order := orderOf(t)
	for _, a := range t.Answers {
		keys, ok := l.keys[a.Ticket]
		if !ok || a.Answer.Outcome != lease.Granted {
			continue
		}
		id := string(keys[0]) + " " + a.Answer.ID.String()
		for _, key := range keys {
			if !l.site.granted[id] && l.site.pauses.binds(key, order, l.course, t.Instant) {
				l.say("%s of %s was granted while %s is paused", a.Answer.ID, keys[0], key)
			}
		}
		l.site.granted[id] = true
	}
}
