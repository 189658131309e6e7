package lease

import (
	"strings"
	"time"

	"ration/algo"
)

// sweep is how far a list has been looked through for what is at rest. A turn
// looks at a part of it, all of it in a round: Config.Memory, since nothing is
// remembered for less.
type sweep struct {
	next int
	long int // the list when the round began, since it shrinks meanwhile
	at   algo.Instant
}

// sweepMost is how many a turn looks at: no message waits for long, and the mirror
// is not told of many at once.
const sweepMost = 2048

// budget is how many of n a turn looks at.
func (s *sweep) budget(now algo.Instant, n int, round time.Duration) int {
	s.long = max(s.long, n)
	part := float64(now.Sub(s.at)) / float64(round)
	s.at = now
	return min(n, 1+int(min(sweepMost, float64(s.long)*part)))
}

// turn gives the next place of n to look at.
func (s *sweep) turn(n int) int {
	if s.next >= n {
		s.next, s.long = 0, n
	}
	return s.next
}

// sweepEvery is how often a turn is wanted for sweeping alone.
func (l *Ledger) sweepEvery() time.Duration {
	return min(time.Second, max(time.Millisecond, l.config.Memory/time.Duration(1+max(l.keys.long, l.heard.long)/sweepMost)))
}

// sweep lets go of what is equal to never having been: accounts at rest, silent
// holders, and ids past their time.
func (l *Ledger) sweep() {
	for range l.keys.budget(l.now, len(l.order), l.config.Memory) {
		a := l.order[l.keys.turn(len(l.order))]
		if l.lagged.Epoch == 0 {
			l.unblock(a) // nobody may ever ask for it
		}
		if a.acts != nil {
			l.use(a) // so that it is tidied
			l.forgetCharges(a)
		}
		if !a.touched && !a.used && a.idle(l.now) {
			l.gone(a)
			l.drop(a)
			continue
		}
		l.keys.next++
		l.lapse(a)
	}
	for range l.heard.budget(l.now, len(l.roster), l.config.Memory) {
		h := l.roster[l.heard.turn(len(l.roster))]
		if l.forgetEnded(h); h.idle(l.now, l.config.Memory) {
			l.part(h)
			continue
		}
		l.heard.next++
	}
}

// open makes the account of a prefix at which nothing has happened.
func (l *Ledger) open(prefix Key, c *contract) *account {
	a := newAccount(l.now, Key(strings.Clone(string(prefix))), c) // not the whole key it is part of
	l.order.enter(a)
	l.accounts.Put(a)
	return a
}

// drop lets go of an account at rest.
func (l *Ledger) drop(a *account) {
	l.order.leave(a)
	l.accounts.Delete(a.key)
	if a.kept {
		l.kept--
		l.tenantKeys.add(a.key.Tenant(), -1)
	}
}

// use gives an account room to be used in, and looks at the end of the turn
// whether it still is.
func (l *Ledger) use(a *account) {
	if a.busy == &resting {
		a.busy = new(busy)
	}
	if !a.used {
		a.used = true
		l.used = append(l.used, a)
	}
}

// retain counts an account as a key in memory, from its first change or waiter
// until it is dropped.
func (l *Ledger) retain(a *account) {
	if a.kept {
		return
	}
	a.kept = true
	l.kept++
	l.tenantKeys.add(a.key.Tenant(), 1)
}

// rest takes from the accounts that are used no more what only one in use needs.
// Those that were only asked for are gone: a refusal leaves nothing.
func (l *Ledger) rest() {
	for _, a := range l.used {
		a.used = false
		l.tidy(a)
		if !a.quiet() {
			continue
		}
		l.timers.stop(&a.line.alarm)
		a.busy = &resting
		if !a.kept {
			l.drop(a)
		}
	}
	clear(l.used)
	l.used = shrunk(l.used[:0])
}
