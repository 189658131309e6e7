package lease

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ration/algo"
)

// Pause is an operator's word that nothing of a prefix, nor of what lies below it, is
// granted. It needs no limit at that prefix. Leases that live are asked to give back what
// is idle, and end in their time.
//
// Who asks waits for its end, by its deadline: an operator may end a pause any second, and
// who were refused at once would only ask again. But a pause whose end is known to be
// beyond the deadline refuses at once, and one whose end is not known a little before the
// deadline, so that the reason is told while somebody listens.
//
// Who waits for a pause stands in no line: it holds nobody back and takes nobody's place
// there, and goes to the end of each when the pause is over.
type Pause struct {
	Reason string
	By     string // who paused it; empty if that is not known
	// Since is when it was paused, by the wall clock of the leader: for people.
	Since algo.Instant
	// Until is the instant of ledger time at which it ends; 0 is never by itself.
	Until algo.Instant
}

// String says since when, by whom and why.
func (p *Pause) String() string {
	text := "since " + time.Unix(0, int64(p.Since)).UTC().Format(time.RFC3339)
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// left is how long it lasts yet; for ever if it has no end.
func (p *Pause) left(now algo.Instant) time.Duration {
	if p.Until == 0 {
		return math.MaxInt64
	}
	return max(0, p.Until.Sub(now))
}

// paused is the pause of the account, nil for none.
func (a *account) paused() *Pause {
	if a.acts == nil {
		return nil
	}
	return a.acts.pause
}

// pause lets nothing of a prefix be granted from the next turn on.
func (l *Ledger) pause(act Act, wall algo.Instant) (Acted, error) {
	a, ok := l.accounts.Get(act.Key)
	if !ok {
		a = l.open(act.Key, l.contract(l.policy.boundOf(act.Key)))
	}
	l.use(a)
	if refusal, crowded := l.tooManyKeys([]*account{a}, &tenant{name: act.Key.Tenant()}); crowded {
		return Acted{}, fmt.Errorf("%w (%s)", refusal.Reason, refusal.Rule)
	}
	p := &Pause{Reason: act.Reason, By: act.By, Since: wall}
	if was := a.paused(); was != nil {
		p.Since = was.Since
	}
	if act.For > 0 {
		p.Until = l.now.Add(act.For)
	}
	l.setPause(a, p)
	l.touch(a)
	l.stats.Pauses++
	acted := Acted{Pause: p}
	for le := range l.leases.All() {
		if anyBelow(le.keys, act.Key) {
			acted.Leases++
		}
	}
	return acted, nil
}

func (l *Ledger) resume(act Act) Acted {
	a, ok := l.accounts.Get(act.Key)
	if !ok || a.paused() == nil {
		return Acted{}
	}
	was := a.paused()
	l.setPause(a, nil)
	l.touch(a)
	l.stats.Resumes++
	return Acted{Pause: was}
}

// setPause replaces the pause of an account, nil for none. While there is one, the
// account's timer is for its end, since nobody stands in its line.
func (l *Ledger) setPause(a *account, p *Pause) {
	t := l.acted(a)
	if t.pause != nil {
		l.pauses--
	}
	t.pause, t.paused = p, true
	a.line.wake = 0
	l.timers.stop(&a.line.alarm)
	if p == nil {
		l.resumed = append(l.resumed, a)
		l.stir(a) // somebody stands in line yet if no turn saw the pause
		return
	}
	l.pauses++
	l.newPauses = append(l.newPauses, a)
	if p.Until != 0 {
		l.timers.set(timer{at: p.Until, account: a})
	}
}

// endPause ends a pause whose time is over, and says whether there was one.
func (l *Ledger) endPause(a *account) bool {
	if p := a.paused(); p == nil || p.left(l.now) > 0 {
		return false
	}
	l.setPause(a, nil)
	l.touch(a)
	l.stats.PausesOver++
	return true
}

// matchPaused adds to the accounts of a key those of its prefixes that are paused: no
// limit may name them.
func (l *Ledger) matchPaused(found []*account, k Key) []*account {
	for p := range k.Prefixes() {
		if a, ok := l.accounts.Get(p); ok && a.paused() != nil && !slices.Contains(found, a) {
			l.use(a)
			found = append(found, a)
		}
	}
	return found
}

// pausedAmong gives the account whose pause binds: that which is known to last longest.
func pausedAmong(accounts []*account) (binds *account) {
	for _, a := range accounts {
		if p := a.paused(); p != nil && (binds == nil || p.Until > binds.paused().Until) {
			binds = a
		}
	}
	return binds
}

// refusal is that of a paused account.
func (a *account) refusal(now algo.Instant) Refusal {
	r := Refusal{Reason: ErrPaused, Key: a.key, Pause: a.paused()}
	if r.Pause.Until != 0 {
		r.Wait = r.Pause.left(now)
	}
	return r
}

// recallPaused asks for what is idle of a lease on a key that is paused.
func (l *Ledger) recallPaused(le *lease) {
	r := le.recall(le.slots.rest())
	if n := len(l.turn.Recalls); n > 0 && l.turn.Recalls[n-1].same(&r) {
		l.turn.Recalls[n-1].Slots += r.Slots
		return
	}
	l.stats.RecalledPaused++
	l.turn.Recalls = append(l.turn.Recalls, r)
}

// remind recalls a lease again that is told of while its key is paused: a recall may have
// been lost, and slots live for as long as they are told of.
func (l *Ledger) remind(le *lease) {
	if l.pauses == 0 {
		return
	}
	for _, k := range le.keys {
		for p := range k.Prefixes() {
			if a, ok := l.accounts.Get(p); ok && a.paused() != nil {
				l.recallPaused(le)
				return
			}
		}
	}
}

// below says that a key is the prefix or lies below it.
func (k Key) below(prefix Key) bool {
	rest, ok := strings.CutPrefix(string(k), string(prefix))
	return ok && (rest == "" || rest[0] == '/')
}

func anyBelow(keys []Key, prefix Key) bool {
	return slices.ContainsFunc(keys, func(k Key) bool { return k.below(prefix) })
}

// fresh is the pauses that no turn has seen, by their keys.
type fresh map[Key]*account

// binds gives the account of those above the keys whose pause binds, nil for none.
func (f fresh) binds(keys []Key) *account {
	var above []*account
	for _, k := range keys {
		for p := range k.Prefixes() {
			if a := f[p]; a != nil {
				above = append(above, a)
			}
		}
	}
	return pausedAmong(above)
}

// waitersBelow gives who waits for a key below the pauses, first come first. Who waits for
// another pause is tried again at its end.
func (l *Ledger) waitersBelow(f fresh) (all []*waiter) {
	for w := range l.waiting.All() {
		if (w.parked == nil || f[w.parked.key] == w.parked) && f.binds(w.req.Keys) != nil {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(x, y *waiter) int { return cmp.Compare(x.order, y.order) })
	return all
}

// leasesBelow gives the leases on a key below the pauses, those of a holder together.
func (l *Ledger) leasesBelow(f fresh) (all []*lease) {
	for le := range l.leases.All() {
		if f.binds(le.keys) != nil {
			all = append(all, le)
		}
	}
	slices.SortFunc(all, func(x, y *lease) int {
		return cmp.Or(cmp.Compare(x.id.Holder.Name, y.id.Holder.Name), cmp.Compare(x.id.Holder.Incarnation, y.id.Holder.Incarnation),
			slices.Compare(x.keys, y.keys), cmp.Compare(x.id.Seq, y.id.Seq))
	})
	return all
}
