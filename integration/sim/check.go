package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ration/lease"
)

// littleRoom gives bounds that strangers meet, and honest holders hardly.
func littleRoom(c lease.Config) lease.Config {
	c.Keys = 20
	c.Holders = lease.Bound{Each: 40, All: 200}
	c.Leases = lease.Bound{Each: 50, All: 250}
	c.Waiters = lease.Bound{Each: 16, All: 80}
	c.IDs = lease.Bound{Each: 16, All: 200}
	return c
}

func (l *lessor) say(format string, args ...any) {
	l.unlawful = append(l.unlawful, fmt.Sprintf("at %v ", l.world.now)+fmt.Sprintf(format, args...))
}

// adopted says that something was restored: that counts, and is not refused.
func (l *lessor) adopted() bool {
	s := l.ledger.Stats()
	return s.Adopted+s.SlotsAdopted+s.UnitsAdopted+s.Doubted > 0 || l.world.Faults["takeover"] > 1
}

// check holds the ledger's windows against its leases: what a window has as held
// is what they have not accounted for.
func (l *lessor) check() {
	s := l.ledger.Status(l.instant(), "")
	c := l.config
	if l.ledger.Stats().Leases > 0 && !l.adopted() && (s.Live > c.Keys || s.Leases > c.Leases.All || s.Waiting > c.Waiters.All) {
		l.say("%d keys, %d leases, %d waiters: beyond %+v", s.Live, s.Leases, s.Waiting, c) // what is restored counts, but is not refused
	}
	for _, k := range s.Keys {
		if most := l.site.contract.Most; most > 0 && len(k.Classes) > 0 && k.Classes[0].Bound >= 0 && k.Pause == nil && k.Waiting > most { // a pause has no line
			l.say("%s: %d wait, and %d may", k.Key, k.Waiting, most)
		}
		var held lease.Amount
		for _, h := range k.Holders {
			held.Tokens += h.Held.Tokens
			held.Slots += h.Held.Slots
			for _, u := range h.Held.Units {
				held.Units = held.Units.Plus(u.Unit, u.N)
			}
		}
		for _, x := range k.Windows {
			want := held.Tokens
			if strings.Contains(x.Rule, "concurrent") {
				want = held.Slots
			} else if _, unit, of := strings.Cut(x.Rule, "unit="); of {
				want = held.Units.Of(unit)
			}
			owed := max(0, x.Held+x.Spent-x.Limit) // by overspend
			if x.Held != want || x.Free+x.Held+x.Spent != x.Limit+owed || owed > x.Limit && !l.site.reforms.ever && !x.Shadow {
				l.say("%s %s: %d free, %d held, %d spent; leases hold %d", k.Key, x.Rule, x.Free, x.Held, x.Spent, want)
			}
		}
	}
}

// furtherKeys counts what is refused by another of several keys than the first.
func (l *lessor) furtherKeys(t *lease.Turn) {
	for _, a := range t.Answers {
		keys, by := l.keys[a.Ticket], a.Answer.Refusal
		if a.Answer.Outcome != lease.Refused || len(keys) < 2 || slices.Contains(slices.Collect(keys[0].Prefixes()), by.Key) {
			continue
		}
		switch by.Reason {
		case lease.ErrLimit, lease.ErrTooLate:
			l.world.count("refused by a further key")
		case lease.ErrPaused:
			l.world.count("paused at a further key")
		}
	}
}

// holdTo requires that no id is granted that was acknowledged as given up.
func (l *lessor) holdTo(t *lease.Turn, in []lease.Message) {
	acknowledged := map[lease.Ticket][]lease.ID{}
	for _, r := range t.Replies {
		acknowledged[r.Ticket] = r.Reply.Acknowledged
	}
	asked := map[lease.Ticket]lease.Key{}
	for _, m := range in {
		if m.Request != nil {
			asked[m.Ticket] = m.Request.Keys[0]
			continue
		}
		for _, g := range m.Report.GivenUp {
			for _, id := range acknowledged[m.Ticket] {
				if id == g.ID && id.Holder == m.Report.Holder {
					l.givenUp[g.Keys[0].Tenant()+" "+id.String()] = true
				}
			}
		}
	}
	for _, a := range t.Answers {
		key, ok := asked[a.Ticket]
		if ok && a.Answer.Outcome == lease.Granted && l.givenUp[key.Tenant()+" "+a.Answer.ID.String()] {
			l.say("%s of %s was granted after it was given up", a.Answer.ID, key)
		}
	}
}

// holdToClasses requires that a line that is too full refuses its lower classes first: who
// was refused is of the lowest that waits, but for those who came in the same turn.
func (l *lessor) holdToClasses(t *lease.Turn, in []lease.Message) {
	came := map[lease.Ticket]bool{}
	late := map[string]bool{} // classes of whom somebody came at a key
	classes := l.policy.Classes
	for _, m := range in {
		if r := m.Request; r != nil {
			came[m.Ticket] = true
			late[string(r.Keys[0])+" "+cmp.Or(r.Class, classes[len(classes)-1])] = true
		}
	}
	for _, a := range t.Answers {
		refusal := a.Answer.Refusal
		if refusal.Reason != lease.ErrShed {
			continue
		}
		if !came[a.Ticket] {
			l.world.count("shed for a higher class")
		}
		rank, _ := l.policy.Rank(refusal.Class)
		for _, k := range l.ledger.Status(l.instant(), refusal.Key).Keys {
			for _, c := range k.Classes[rank+1:] {
				if c.Waiting > 0 && !late[string(k.Key)+" "+c.Name] {
					l.say("%s of %s was shed from %s while %d of %s wait", a.Answer.ID, refusal.Class, k.Key, c.Waiting, c.Name)
				}
			}
		}
	}
}
