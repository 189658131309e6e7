package lease

import (
	"math"

	"ration/algo"
)

// memory is what is remembered of a holder's requests that are over, for a while:
// a copy that comes late is answered as the first was, and nothing is granted
// twice.
//
// It is bounded without forgetting early. Holders number their requests upwards,
// so where the oldest must go one by one, the highest number among them stays for
// all: ids up to that, of which nothing else is known, count as over. That costs
// who numbers otherwise a request now and then, and never a second grant; and it
// costs the holder alone that had so many.
type memory struct {
	oldest, newest *ending
	n              int
	latest         algo.Instant // when the last one was remembered
	floor          uint64       // all below it that nothing is known of count as over
}

// ending is one id that is over, for as long as it is remembered.
type ending struct {
	holder  *holder
	seq     uint64
	until   algo.Instant
	refused *refused // nil if its grant is over, or it was given up
	over    *overspent
	next    *ending
}

// refused is the answer to a request that was refused, but for its id.
type refused struct {
	terms   Terms
	refusal Refusal
}

func (e *ending) name() name { return name{e.holder, e.seq} }

func (e *ending) answer() Answer {
	a := Answer{ID: ID{Holder: e.holder.id, Seq: e.seq}, Outcome: Ended}
	if e.refused != nil {
		a.Outcome, a.Terms, a.Refusal = Refused, e.refused.terms, e.refused.refusal
	}
	return a
}

// remember keeps the answer to an id that is over.
func (l *Ledger) remember(h *holder, seq uint64, why *refused) {
	e := &ending{holder: h, seq: seq, until: l.now.Add(l.config.Memory), refused: why}
	if !l.ended.Add(e) {
		return // known already
	}
	m := &h.over
	m.latest = l.now
	if m.newest == nil {
		m.oldest = e
	} else {
		m.newest.next = e
	}
	m.newest = e
	m.n++
	h.tenant.ids++
	h.highest = max(h.highest, seq)
	most := l.config.IDs
	for m.n > most.Each || m.n > 0 && (l.ended.Len() > most.All || h.tenant.ids > share(most.All)) {
		l.stats.IDsFolded++
		m.floor = max(m.floor, m.oldest.seq, m.oldest.seq+1)
		l.forgetOldest(h)
	}
}

// recollect gives the answer to an id that is over.
func (l *Ledger) recollect(h *holder, seq uint64) (Answer, bool) {
	if e, ok := l.ended.Get(name{h, seq}); ok {
		l.stats.AnsweredEnded++
		return e.answer(), true
	}
	return Answer{}, false
}

// folded says that an id, of which nothing is known, counts as over.
func (m *memory) folded(seq uint64) bool { return seq < m.floor || m.floor == math.MaxUint64 }

// forgetEnded lets go of the holder's ids that nobody can ask for any more.
func (l *Ledger) forgetEnded(h *holder) {
	for h.over.n > 0 && !l.now.Before(h.over.oldest.until) {
		l.forgetOldest(h)
	}
}

func (l *Ledger) forgetOldest(h *holder) {
	m := &h.over
	e := m.oldest
	if m.oldest = e.next; m.oldest == nil {
		m.newest = nil
	}
	m.n--
	h.tenant.ids--
	l.ended.Delete(e.name())
}
