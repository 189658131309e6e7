package lease

import (
	"math"
	"time"

	"ration/algo"
)

// broom is how much longer than it can matter a record is kept: clocks of mirrors
// step.
const broom = 24 * time.Hour

// record adds to the turn what has changed of each account.
func (l *Ledger) record() {
	if l.unrecorded {
		l.owe()
		l.turn.Behind = true
		return
	}
	l.recordPolicy()
	l.repay()
	l.rewrite()
	for _, b := range l.altered {
		for _, a := range b.accounts { // also where only some prefixes of a lease were loaded
			if !a.touched {
				l.touch(a)
			}
		}
	}
	longer := broom + 2*l.dial.Apart
	for _, a := range l.touched {
		a.touched = false
		a.change = uint32(len(l.turn.Changes))
		keep := min(max(l.lasts(a.contract), a.acts.keeps(l.now)), math.MaxInt64-longer) + longer
		c := Change{Key: a.key, Stale: a.blocked != 0, Since: a.trusted, Whole: a.written != l.generation || a.renamed, Keep: keep, Windows: make([]WindowRecord, len(a.windows))}
		if c.Whole {
			a.copied = nil
			c.Batches = l.batches(a)
		}
		for i, rule := range a.contract.all {
			c.Windows[i] = WindowRecord{Rule: rule.name(), State: a.since(l.now, i)}
		}
		a.acts.change(&c)
		l.turn.Changes = append(l.turn.Changes, c)
	}
	for i, b := range l.altered {
		b.changed = false
		l.altered[i] = nil
		r := b.record()
		for _, a := range b.accounts {
			if c := &l.turn.Changes[a.change]; !c.Whole {
				c.Batches = append(c.Batches, r)
			}
		}
		if len(b.leases) == 0 {
			b.accounts = nil
		}
	}
	l.altered = shrunk(l.altered[:0])
	for i, a := range l.touched {
		a.written, a.renamed = l.generation, false
		l.owed.remove(a.key)
		l.touched[i] = nil
	}
	l.touched = shrunk(l.touched[:0])
	l.turn.Behind = l.behind()
}

// since gives what has changed of a window since it was recorded last.
func (a *account) since(now algo.Instant, window int) algo.State {
	var copied []algo.Mark
	if a.copied != nil {
		copied = (*a.copied)[window]
	}
	w, now := a.window(window, now)
	changed, copied := w.Since(now, copied)
	if a.copied == nil && copied != nil {
		a.copied = a.copies()
	}
	if a.copied != nil {
		(*a.copied)[window] = copied
	}
	return changed
}

// copies gives room for those of each window.
func (a *account) copies() *copies {
	c := make(copies, len(a.windows))
	return &c
}

// lasts is for how long what is known of a prefix under a contract can matter.
func (l *Ledger) lasts(c *contract) time.Duration {
	if c.keep == 0 {
		for _, r := range c.all {
			c.keep = max(c.keep, r.spec.Lasts())
		}
		lived := max(l.config.TokenTTL, l.config.SlotTTL)
		c.keep = min(c.keep, math.MaxInt64-lived) + lived
	}
	return c.keep
}

// batches gives all that hold from an account.
func (l *Ledger) batches(a *account) (all []Batch) {
	seen := map[*batch]bool{}
	for _, le := range a.leases {
		if b := le.batch; !seen[b] {
			seen[b] = true
			all = append(all, b.record())
		}
	}
	return all
}

// rewriteMost is how many accounts are written back in one turn: no message waits for
// long.
const rewriteMost = 256

// Rewrite lets the turns from here on write back everything that the ledger knows,
// since the mirror has lost some: what changes at once, and of the rest a part each.
// Turn.Rewritten says when that is done. The turn t, which could not be recorded, is
// changed into one that can be; it is nil for none.
func (l *Ledger) Rewrite(t *Turn) {
	if l.generation++; l.generation == 0 {
		l.generation++
	}
	l.rewriting, l.toRewrite, l.unwritten = true, len(l.order), true
	if t == nil {
		return
	}
	changes := t.Changes
	t.Changes, t.Policy, t.Rewritten = nil, nil, false
	l.turn = t
	for _, c := range changes {
		if a, ok := l.accounts.Get(c.Key); ok {
			l.touch(a)
		} else {
			t.Changes = append(t.Changes, Change{Key: c.Key, Gone: true})
		}
	}
	l.record()
	l.turn = nil
}

// rewrite goes down the accounts. Those that leave meanwhile let the last ones take
// their places, which have been written; those that come are written when they change.
func (l *Ledger) rewrite() {
	if !l.rewriting {
		return
	}
	for range rewriteMost {
		l.toRewrite = min(l.toRewrite, len(l.order))
		if l.toRewrite == 0 {
			l.rewriting = false
			l.turn.Rewritten = true
			return
		}
		l.toRewrite--
		if a := l.order[l.toRewrite]; a.kept && (a.written != l.generation || a.renamed) {
			l.touch(a)
		}
	}
}

// TakeBack gives up what was granted in a turn whose answers never leave: it came to
// be known too late that the turn is recorded.
func (l *Ledger) TakeBack(t *Turn) { l.takenBack = append(l.takenBack, t.begun...) }

func (l *Ledger) takeBack() {
	for i, le := range l.takenBack {
		if current, ok := l.leases.Get(le.name()); ok && current == le {
			l.giveUp(le.name())
			l.stats.TakenBack++
		}
		l.takenBack[i] = nil
	}
	l.takenBack = l.takenBack[:0]
}

// gone records that an account is at rest.
func (l *Ledger) gone(a *account) {
	if l.config.Unmirrored {
		return
	}
	if l.unrecorded {
		l.owed.gone(a.key, a.written != 0)
		return
	}
	l.owed.remove(a.key)
	l.turn.Changes = append(l.turn.Changes, Change{Key: a.key, Gone: true})
}
