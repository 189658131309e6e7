package lease

import (
	"time"
)

// A run is a lease under a pace rule: its tokens are spent one call at a time,
// Terms.Spacing after each token spent before. While it has any left nobody else
// is granted, so it is given what it wants at once, and no longer than it needs.

// spacing is the largest gap over the pace rules of these accounts, or 0.
func spacing(accounts []*account) time.Duration {
	var gap time.Duration
	for _, a := range accounts {
		for _, r := range a.contract.rules {
			gap = max(gap, r.spec.Gap())
		}
	}
	return gap
}

// slack is how much longer a run lives than its gaps take: for the answer's way
// and late timers.
func (l *Ledger) slack() time.Duration { return l.config.TokenTTL / 10 }

// run is how many tokens w is granted under such a gap: what it needs and what it
// wants beyond, as many as can be spent within a token TTL. Once a run is held
// nothing of the rule is free, so there is no topping up at the end of the turn. Of
// other windows, what those in line need is left.
func (l *Ledger) run(w *waiter, need int64, gap time.Duration) int64 {
	more := w.req.Want.Tokens - need
	more = min(more, 1+int64((l.config.TokenTTL-l.slack())/gap)-need)
	for _, a := range w.accounts {
		for i, r := range a.contract.rules {
			if r.of != tokens {
				continue
			}
			w, now := a.window(i, l.now)
			free := w.Free(now) - need
			if r.spec.Gap() == 0 {
				free -= a.line.tokens
			}
			more = min(more, free)
		}
	}
	return need + max(0, more)
}

// runTTL is how long a run of n tokens lives: until the last of them is due, and
// the slack, but no longer than other leases.
func (l *Ledger) runTTL(n int64, gap time.Duration) time.Duration {
	room := l.config.TokenTTL - l.slack()
	if n-1 >= int64(room/gap) {
		return l.config.TokenTTL
	}
	return time.Duration(n-1)*gap + l.slack()
}
