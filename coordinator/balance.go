package coordinator

import (
	"cmp"
	"slices"
	"time"
)

// Balance decides how the coordinators of a cell share its partitions out, for one of
// them. It is pure: times are those of the coordinator's own monotonic clock.
//
// A coordinator that has been well for a while claims one partition of the one that leads
// most, if that leads two more than itself. The leader hands the partition over, and all
// others leave the seat, once it is vacant, to the claimant for a moment. Each handover is
// from x partitions to y with x >= y+2, so that the sum of their squares falls: it comes
// to an end, with all within one of each other, and is never undone.
type Balance struct {
	config BalanceConfig

	own          []bool // the partitions that it leads
	peers        []Peer
	at           time.Duration // of the last look
	since        time.Duration // of when it has been well
	well         bool
	claim        int // the partition that it claims, none below 0
	leaving      int // the one that it hands over
	leavingSince time.Duration
	given        map[string]gift
}

// BalanceConfig says how partitions are shared out.
type BalanceConfig struct {
	// ID tells the coordinator from others.
	ID string
	// After is how long it has to be well before it claims, above 0.
	After time.Duration
}

// Peer is another coordinator of the cell.
type Peer struct {
	ID   string
	Name string
	// Leads are the partitions that it leads, and Claims those that it asks for.
	Leads  []int
	Claims []int
}

// gift is what a claimant was handed last.
type gift struct {
	at   time.Duration
	n    int // the partition
	led  int // it led so many then
	wait time.Duration
}

const (
	// Between two looks there is less, or the process was stopped in between.
	balanceGap = time.Second
	// giftWait is for how long a claimant that does not take what it is handed is left
	// without at most.
	giftWait = 5 * time.Minute
	// none is no partition.
	none = -1
)

// NewBalance gives the balance of a coordinator that leads nothing.
func NewBalance(c BalanceConfig) *Balance {
	return &Balance{config: c, claim: none, leaving: none, given: map[string]gift{}}
}

// Watch takes up what the coordinator leads, one value for each partition, whether it is
// well (connected, with a mirror that works, and not stopping), and who there is besides.
func (b *Balance) Watch(now time.Duration, own []bool, well bool, peers []Peer) {
	lost := false
	for n, led := range b.own {
		lost = lost || led && !own[n] && n != b.leaving
	}
	if b.leaving != none && (!own[b.leaving] || now-b.leavingSince > b.config.After) { // or it has it again
		b.leaving = none
	}
	// Who was stopped for a while, or has lost a seat, is as new.
	if !well || !b.well || lost || now-b.at > balanceGap {
		b.since = now
	}
	b.own, b.peers, b.well, b.at = slices.Clone(own), peers, well, now
	for id, g := range b.given {
		if now-g.at > giftWait && !slices.ContainsFunc(peers, func(p Peer) bool { return p.ID == id }) {
			delete(b.given, id)
		}
	}
	b.claim = b.choose(now)
}

// choose gives the partition to claim: the one that is claimed already while its leader
// has too many, or else the first of who leads most.
func (b *Balance) choose(now time.Duration) int {
	if !b.well || now-b.since < b.config.After {
		return none
	}
	var most *Peer
	for i := range b.peers {
		p := &b.peers[i]
		if len(p.Leads) < b.leads()+2 {
			continue
		}
		if slices.Contains(p.Leads, b.claim) {
			return b.claim
		}
		if most == nil || cmp.Or(cmp.Compare(len(p.Leads), len(most.Leads)), -cmp.Compare(p.ID, most.ID)) > 0 {
			most = p
		}
	}
	if most == nil {
		return none
	}
	return slices.Min(most.Leads)
}

// leads is how many partitions it leads, and does not hand over.
func (b *Balance) leads() (count int) {
	for n, led := range b.own {
		if led && n != b.leaving {
			count++
		}
	}
	return count
}

// Claims says whether it asks for a partition.
func (b *Balance) Claims(n int) bool { return n == b.claim }

// Left says whether a vacant seat is left to another coordinator.
func (b *Balance) Left(n int) bool {
	p := b.claimant(n)
	return p != nil && (n != b.claim || before(len(p.Leads), p.ID, b.leads(), b.config.ID))
}

// Yield says to whom a partition that it leads is handed over from now on: to somebody
// who claims it, and leads two fewer. One is handed over at a time. Who did not take
// the last one waits, each time for twice as long.
func (b *Balance) Yield(now time.Duration, n int) (to Peer, yields bool) {
	p := b.claimant(n)
	if p == nil || b.leaving != none || n >= len(b.own) || !b.own[n] || len(p.Leads)+2 > b.leads() {
		return Peer{}, false
	}
	next := gift{at: now, n: n, led: len(p.Leads), wait: b.config.After}
	if last, again := b.given[p.ID]; again && !b.taken(last, p) {
		if now-last.at < last.wait {
			return Peer{}, false
		}
		next.wait = min(giftWait, 2*last.wait)
	}
	b.given[p.ID], b.leaving, b.leavingSince = next, n, now
	return *p, true
}

// taken says that what a claimant was handed last was of use: it leads more than then, or
// somebody else was quicker.
func (b *Balance) taken(last gift, p *Peer) bool {
	return len(p.Leads) > last.led ||
		slices.ContainsFunc(b.peers, func(p Peer) bool { return slices.Contains(p.Leads, last.n) })
}

// claimant is who comes first of those who claim a partition.
func (b *Balance) claimant(n int) (first *Peer) {
	for i := range b.peers {
		p := &b.peers[i]
		if slices.Contains(p.Claims, n) && (first == nil || before(len(p.Leads), p.ID, len(first.Leads), first.ID)) {
			first = p
		}
	}
	return first
}

// before says whether the first of two claimants comes before the second: it leads fewer,
// or has the lower id.
func before(led int, id string, than int, other string) bool {
	return cmp.Or(cmp.Compare(led, than), cmp.Compare(id, other)) < 0
}
