package lease

import (
	"strings"
	"time"

	"ration/algo"
)

// owner is a holder as the ledger knows it: by the tenant of its message.
type owner struct {
	Holder
	tenant string
}

// tenant is whose the keys of a message are, while any holder of it is known.
type tenant struct {
	name    string
	holders int
	leases  int
	waiters int
	ids     int // remembered
}

func tenantName(t *tenant) string { return t.name }

// holder is what the ledger knows of one incarnation: when it was heard, how
// its clock stands to ledger time, and what it has.
type holder struct {
	id     Holder
	tenant *tenant
	place  uint32 // in Ledger.roster
	heard  algo.Instant
	// The smallest difference between arrival and the holder's own time of
	// sending is that of the message that was quickest on its way. It is kept
	// of this half minute and the last, so that a clock that runs a little slow
	// does not make every message look old.
	since     algo.Instant
	this, old time.Duration

	// highest is the highest number that any of its ids has had: of those above
	// nothing can be known, and holders number their requests upwards.
	highest uint64
	batch   *batch // its latest
	leases  int
	waiting map[*waiter]struct{}
	over    memory
}

// name is an ID as the ledger knows it: by the holder, and so by the tenant of its
// message too, since rights are granted by tenant, and nobody's messages reach
// another's leases. A holder is known for as long as anything has its name.
type name struct {
	holder *holder
	seq    uint64
}

func (h *holder) owner() owner { return owner{h.id, h.tenant.name} }

// holder gives what is known of a holder. It begins with nothing, unless as many
// are known as may be: then it is nil.
func (l *Ledger) holder(id owner) *holder {
	if h, ok := l.holders.Get(id); ok {
		return h
	}
	t, ok := l.tenants.Get(id.tenant)
	if l.holders.Len() >= l.config.Holders.All || ok && t.holders >= min(l.config.Holders.Each, share(l.config.Holders.All)) {
		l.stats.HoldersRefused++
		return nil
	}
	return l.meet(id)
}

// meet makes a holder known.
func (l *Ledger) meet(id owner) *holder {
	t, ok := l.tenants.Get(id.tenant)
	if !ok {
		t = &tenant{name: strings.Clone(id.tenant)} // not the whole key it is part of
		l.tenants.Put(t)
	}
	t.holders++
	h := &holder{id: id.Holder, tenant: t, heard: l.now}
	l.roster.enter(h)
	l.holders.Put(h)
	return h
}

func (h *holder) at() *uint32 { return &h.place }

// part forgets a holder.
func (l *Ledger) part(h *holder) {
	l.roster.leave(h)
	l.holders.Delete(h.owner())
	if h.tenant.holders--; h.tenant.holders == 0 {
		l.tenants.Delete(h.tenant.name)
	}
}

const offsetEvery = 30 * time.Second

// hear notes a message and says how long it sat somewhere on its way, beyond
// what the quickest message of the last minute took. After more than a minute without
// any, that is the last one known, and what two clocks may have run apart since: else
// a message that came when the coordinator had stood still would look fresh.
func (h *holder) hear(arrived algo.Instant, sent time.Duration, ppm int64) (sat time.Duration) {
	offset := time.Duration(arrived) - sent
	switch elapsed := arrived.Sub(h.since); {
	case h.since == 0: // the first one
		h.since, h.this, h.old = arrived, offset, offset
	case elapsed > 2*offsetEvery:
		apart := (elapsed/1_000_000 + 1) * time.Duration(ppm)
		h.since, h.this, h.old = arrived, offset, min(h.this, h.old)+apart
	case elapsed > offsetEvery:
		h.since, h.this, h.old = arrived, offset, h.this
	}
	h.this = min(h.this, offset)
	h.heard = max(h.heard, arrived)
	return offset - min(h.this, h.old)
}

// idle says that nothing would be lost with what is known of the holder.
func (h *holder) idle(now algo.Instant, memory time.Duration) bool {
	return h.leases == 0 && len(h.waiting) == 0 && h.over.n == 0 && now.Sub(h.heard) > memory && now.Sub(h.over.latest) > memory
}
