package lease

import (
	"fmt"
	"time"
)

// act does what an operator might.
func (c *chance) act() error {
	keys := []Key{"x", "x/y", "x/z", "x/y/w", "x/y/w/v", "q"}
	a := Act{Key: keys[c.IntN(len(keys))], Verb: Verbs[c.IntN(len(Verbs))]}
	switch a.Verb {
	case VerbPause:
		if a.Reason = "reason"; c.IntN(3) > 0 {
			a.For = 1 + time.Duration(c.Int64N(int64(8*time.Second)))
		}
	case VerbCharge:
		a.ID, a.N = fmt.Sprint("c", c.IntN(20)), 1+c.Int64N(12)
		if a.Age = time.Duration(c.Int64N(int64(3 * time.Second))); c.IntN(2) == 0 {
			a.Unit = "u"
		}
	}
	if err := a.Validate(); err != nil {
		return err
	}
	acted, err := c.ledger.Act(c.now, c.now, a)
	if err == nil && a.Verb == VerbPause && acted.Pause == nil {
		return fmt.Errorf("%+v is no pause", a)
	}
	return nil // what cannot be done is refused, and changes nothing
}

// resumeAll ends all pauses.
func (c *chance) resumeAll() {
	for a := range c.ledger.accounts.All() {
		if a.paused() != nil {
			c.ledger.resume(Act{Key: a.key})
		}
	}
}

// nothingPausedBegan: no lease begins on what is paused.
func (l *Ledger) nothingPausedBegan(t *Turn) error {
	for _, le := range t.begun {
		for _, k := range le.keys {
			for p := range k.Prefixes() {
				if a, ok := l.accounts.Get(p); ok && a.paused() != nil {
					return fmt.Errorf("lease %v of %s began, and %s is paused", le.id, k, p)
				}
			}
		}
	}
	return nil
}

// pausesAddUp: who waits for a pause waits for one that is there, and stands in no line;
// nobody stands in a line for what is paused.
func (l *Ledger) pausesAddUp() error {
	pauses, parked := 0, 0
	for a := range l.accounts.All() {
		p := a.paused()
		if p != nil {
			pauses++
			if a.line.len() > 0 {
				return fmt.Errorf("%d stand in the line of %s, which is paused", a.line.len(), a.key)
			}
			if p.Until != 0 && a.line.alarm == 0 {
				return fmt.Errorf("nothing ends the pause of %s", a.key)
			}
		}
		if a.acts == nil {
			continue
		}
		n := 0
		for w := a.acts.parked.first; w != nil; w = w.behind {
			if n++; w.parked != a || p == nil || !anyBelow(w.req.Keys, a.key) {
				return fmt.Errorf("%v waits for the pause of %s: %v", w.req.ID, a.key, p)
			}
		}
		if parked += n; n != a.acts.parked.n {
			return fmt.Errorf("%d wait for the pause of %s, and it knows of %d", n, a.key, a.acts.parked.n)
		}
	}
	for w := range l.waiting.All() {
		if w.parked != nil {
			parked--
		}
	}
	if parked != 0 || pauses != l.pauses {
		return fmt.Errorf("%d pauses of which %d are known, and %d more wait for them than there are", pauses, l.pauses, parked)
	}
	return nil
}
