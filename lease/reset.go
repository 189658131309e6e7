package lease

// resetMost is how many prefixes one act resets: the turn that records it stays short.
const resetMost = 1024

// reset forgets what was spent of a prefix and of all that lies below it. What is held is
// held. It leaves the prefixes above alone: what counts there is others' too.
func (l *Ledger) reset(act Act) (acted Acted) {
	for i := range l.order { // from where the last one stopped, so that many rounds do not pass the first again and again
		at := (l.resetAt + i) % len(l.order)
		a := l.order[at]
		if !a.key.below(act.Key) || !l.hasSpent(a) {
			continue
		}
		if acted.Reset == resetMost {
			acted.More, l.resetAt = true, at
			break
		}
		acted.Reset++
		l.stats.Resets++
		l.unblock(a)
		for i := range a.windows {
			w, now := a.window(i, l.now)
			w.Forget(now)
		}
		a.castForget()
		if l.lost.Epoch != 0 {
			l.acted(a).pardoned = true
		}
		l.touch(a)
		l.stir(a)
	}
	return acted
}

// hasSpent says that something is spent, or may be that the mirror lacks.
func (l *Ledger) hasSpent(a *account) bool {
	if a.blocked != 0 && !l.now.Before(a.blocked) {
		return true
	}
	for i := range a.windows {
		if w, now := a.window(i, l.now); w.Spent(now) > 0 {
			return true
		}
	}
	return false
}
