package lease

import (
	"time"

	"ration/algo"
)

// owner is a holder as the ledger knows it: by the tenant of its message.
type owner struct {
	Holder
	tenant string
}

// holder is what the ledger knows of one incarnation: when it was heard, and how
// its clock stands to ledger time.
type holder struct {
	heard algo.Instant
	// The smallest difference between arrival and the holder's own time of
	// sending is that of the message that was quickest on its way. It is kept
	// of this half minute and the last, so that a clock that runs a little slow
	// does not make every message look old.
	since     algo.Instant
	this, old time.Duration
}

const offsetEvery = 30 * time.Second

// hear notes a message and says how long it sat somewhere on its way, beyond
// what the quickest message of the last minute took.
func (l *Ledger) hear(id owner, arrived algo.Instant, sent time.Duration) (sat time.Duration) {
	offset := time.Duration(arrived) - sent
	h := l.holders[id]
	if h == nil {
		h = &holder{since: arrived, this: offset, old: offset}
		l.holders[id] = h
	}
	switch elapsed := arrived.Sub(h.since); {
	case elapsed > 2*offsetEvery:
		h.since, h.this, h.old = arrived, offset, offset
	case elapsed > offsetEvery:
		h.since, h.this, h.old = arrived, offset, h.this
	}
	h.this = min(h.this, offset)
	h.heard = max(h.heard, arrived)
	return offset - min(h.this, h.old)
}

// memory remembers the ids of requests that are over, for a while: a copy that
// comes late is answered as the first was, and nothing is granted twice.
type memory struct {
	byID  map[name]*ending
	queue []*ending // by until
}

type ending struct {
	name   name
	until  algo.Instant
	answer Answer
}

// rememberMax bounds the memory: beyond it the oldest go first.
const rememberMax = 1 << 20

func (m *memory) add(n name, answer Answer, until algo.Instant) {
	e := &ending{n, until, answer}
	m.byID[n] = e
	m.queue = append(m.queue, e)
	if len(m.byID) > rememberMax {
		m.pop()
	}
}

func (m *memory) pop() {
	e := m.queue[0]
	m.queue[0] = nil
	m.queue = m.queue[1:]
	if m.byID[e.name] == e {
		delete(m.byID, e.name)
	}
}

func (m *memory) forget(now algo.Instant) {
	for len(m.queue) > 0 && !now.Before(m.queue[0].until) {
		m.pop()
	}
}

func (l *Ledger) remember(n name, answer Answer) {
	l.ended.add(n, answer, l.now.Add(l.config.Memory))
}
