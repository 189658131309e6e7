package coordinator

import (
	"fmt"
	"time"

	"ration/algo"
	"ration/lease"
)

// Heard is what a candidate knows besides the seat, from the network on which leaders
// are asked.
type Heard struct {
	// Connected says that the coordinator itself can be asked. One that cannot neither
	// campaigns nor keeps a seat.
	Connected bool
	// Silent says that the network answers for the leader of the seat that nobody
	// listens any more; Served says that the leader answers.
	Silent bool
	Served bool
	// Mute says neither, though the leader was asked: somebody listens who does not answer.
	Mute bool
	// Left says that a vacant seat is left to another coordinator, which claims it.
	Left bool
	// Number is the highest epoch that another coordinator of the cell has seen.
	Number uint64
	// Led is the highest epoch under which another coordinator of the cell says that it
	// leads, while it can be asked; 0 for none.
	Led uint64
	// Rivals are coordinators of the cell that have another mirror.
	Rivals []Rival
}

// Rival is another coordinator, and what names its mirror.
type Rival struct {
	Name   string
	Mirror uint64
	// Leads says that it serves.
	Leads bool
}

// error says that the other has another mirror than this coordinator, which has own.
func (r Rival) error(own uint64) error {
	return fmt.Errorf("%w: %s has mirror %x, and this one %x; stop one of them, give both one Redis, or take another cell with --cell",
		lease.ErrRival, r.Name, r.Mirror, own)
}

// Candidate decides when a coordinator campaigns for the seat of a partition, and what
// the seat then says. It is pure: times are those of the coordinator's own monotonic
// clock.
type Candidate struct {
	config CandidateConfig

	seen    lease.Seat    // as it was last
	looked  bool          // ever
	since   time.Duration // when the seat was first seen as it is
	moves   int           // how often it was seen to move
	silent  time.Duration // since when the network says so; 0 for not
	number  uint64        // the highest epoch ever seen
	mirror  uint64        // as last seen
	instant algo.Instant  // of ledger time, as its leader wrote it last
	at      time.Duration // when that was first seen
	lacks   time.Duration // of ledger time, that this epoch's turns were seen to have gone back by at most
	early   time.Duration // before this it does not campaign early
	holdoff time.Duration // how long that was the last time
	bid     lease.Epoch   // the last, of which there may be no answer
	bids    uint64        // the highest number of any
}

// CandidateConfig says how a candidate campaigns. All durations are above 0.
type CandidateConfig struct {
	Name       string
	Partitions int
	// TTL is how long the seat must stand still before it is taken from a leader, and
	// Early how long where the network says that nobody listens.
	TTL   time.Duration
	Early time.Duration
	// Lag is how much a mirror may have forgotten that was started again with its data;
	// with 0 it forgets nothing.
	Lag time.Duration
	// Cold says that an empty mirror is taken for a new one, whatever was seen.
	Cold bool
	// Available says that a leader goes on without its mirror: as long as it answers, its
	// seat is not taken. It is of a seat that names no policy.
	Available bool
}

// NewCandidate gives a candidate that has seen nothing.
func NewCandidate(c CandidateConfig) *Candidate { return &Candidate{config: c} }

// Known is the highest epoch that it has seen, and what names the mirror as it saw that
// last.
func (c *Candidate) Known() (number, mirror uint64) { return c.number, c.mirror }

// Rival gives the error that another coordinator has another mirror, if that is known: it
// says so, or leads while this one's mirror, in which it has never seen a seat, has had none
// for a TTL. Where it has seen one the mirror may have lost it, and the leader writes it back.
func (c *Candidate) Rival(now time.Duration, heard Heard) error {
	if len(heard.Rivals) > 0 {
		return heard.Rivals[0].error(c.mirror)
	}
	never := c.mirror == 0 && c.number == 0
	if c.looked && never && c.seen.Epoch == (lease.Epoch{}) && heard.Served && now-c.since >= c.config.TTL {
		return fmt.Errorf("%w: the cell has a leader, and this one's mirror has no seat; stop one of them, give both one Redis, or take another cell with --cell",
			lease.ErrRival)
	}
	return nil
}

// Divided gives the error that a seat is of a cell of another number of partitions.
func (c *Candidate) Divided(s lease.Seat) error {
	if s.Epoch == (lease.Epoch{}) || s.Partitions == c.config.Partitions {
		return nil
	}
	return fmt.Errorf("%w: its mirror has %d, this coordinator %d; start it with --partitions %d, or give it another --cell or --state",
		lease.ErrPartitions, s.Partitions, c.config.Partitions, s.Partitions)
}

// Deposed tells that the coordinator, which is alive, has lost its seat at now: then
// it does not campaign early for a TTL, and each time for twice as long, up to 30 s.
func (c *Candidate) Deposed(now time.Duration) {
	const most = 30 * time.Second
	if now-c.early > most { // it has been well
		c.holdoff = 0
	}
	c.holdoff = min(most, max(c.config.TTL, 2*c.holdoff))
	c.early = now + c.holdoff
}

// Led tells the candidate how far ledger time has come under its own leadership, and the
// epoch in which it ended, for where the mirror loses what others write after it.
func (c *Candidate) Led(now time.Duration, at algo.Instant, e lease.Epoch) {
	c.instant, c.at, c.number = at, now, max(c.number, e.Number)
}

// reached is how far ledger time has come at least, and has surely come in truth.
func (c *Candidate) reached(now time.Duration) algo.Instant { return c.instant.Add(now - c.at) }

// Watch takes up how the seat was when it was read at now, and the wall clock then. It
// says whether to campaign against it, and with which seat; won says that the seat is
// the candidate's own already, by a bid of which it had no answer.
func (c *Candidate) Watch(now time.Duration, wall algo.Instant, s lease.Seat, heard Heard) (next lease.Seat, campaign, won bool) {
	c.watch(now, s, heard)
	switch {
	case s.Epoch != lease.Epoch{} && s.Epoch.Number < heard.Led: // of a side of the mirror that is cut off, or it has lost what that leader writes back
		return next, false, false
	case !heard.Connected:
		return next, false, false
	case heard.Mute && s.Epoch == lease.Epoch{} && !c.config.Cold && now-c.since < c.config.TTL:
		return next, false, false // who knows what the mirror had may stand still
	case s.Epoch != lease.Epoch{} && s.Epoch == c.bid && !s.Vacant:
		return s, false, true
	}
	none := s.Epoch == lease.Epoch{}
	fresh := none && (c.config.Cold || c.number == 0 && heard.Number == 0)
	still := now - c.since
	switch {
	case fresh:
	case heard.Served && (none || c.available(s)): // it knows what the mirror has lost
		return next, false, false
	case none || s.Epoch.Number < max(c.number, heard.Number): // who has the ledger comes first
		if still < c.config.TTL {
			return next, false, false
		}
	case s.Vacant && heard.Left && still < c.config.TTL/4: // else it does not take it
		return next, false, false
	case s.Vacant:
	case still >= c.config.TTL:
	case c.silent > 0 && now-c.silent >= c.config.Early && still >= c.config.Early && now >= c.early:
	default:
		return next, false, false
	}
	return c.next(now, wall, s, heard, fresh), true, false
}

// available says that a leader goes on without its mirror, as the policy in force says.
func (c *Candidate) available(s lease.Seat) bool {
	if s.Revision == 0 {
		return c.config.Available
	}
	return s.Available
}

// watch notes what is seen.
func (c *Candidate) watch(now time.Duration, s lease.Seat, heard Heard) {
	if !c.looked || s.Moved(&c.seen) {
		if c.looked && c.seen.Epoch != (lease.Epoch{}) {
			c.moves++
		}
		c.since = now
	}
	// Turns that were seen and are gone: what was recorded since may be, also where that is more
	// than the mirror is said to forget.
	switch {
	case s.Epoch != c.seen.Epoch:
		c.lacks = 0
	case s.Seq < c.seen.Seq:
		c.lacks = max(c.lacks, c.reached(now).Sub(s.Pulse.Instant))
	}
	// Ledger time goes on from what its last leader wrote, also where this coordinator's own
	// clock, of when it led itself, is further: what that leader dated would be out too early.
	none := s.Epoch.Number < c.number || s.Epoch == lease.Epoch{}
	if again := s.Epoch == c.seen.Epoch && s.Pulse.Instant == c.seen.Pulse.Instant && c.looked; !none && !again {
		c.instant, c.at = s.Pulse.Instant, now
	}
	switch {
	case !heard.Silent || s.Epoch != c.seen.Epoch:
		c.silent = 0
	case c.silent == 0:
		c.silent = max(1, now)
	}
	c.looked, c.seen = true, s
	c.number = max(c.number, s.Epoch.Number)
	if s.Mirror != 0 {
		c.mirror = s.Mirror
	}
}

// next is the seat as it will be.
func (c *Candidate) next(now time.Duration, wall algo.Instant, s lease.Seat, heard Heard, fresh bool) lease.Seat {
	next := lease.Seat{
		Epoch:      lease.Epoch{Number: max(c.number, c.bids, heard.Number) + 1},
		Name:       c.config.Name,
		Mirror:     c.mirror,
		Partitions: c.config.Partitions,
		Run:        s.Running,
		Lost:       s.Lost,
		Lagged:     s.Lagged,
		Revision:   s.Revision,
		Available:  s.Available,
	}
	next.Pulse.Wall, next.Pulse.Instant = wall, wall
	next.Pulse.Holders = s.Pulse.Holders
	if fresh {
		next.Fresh = true
		return next
	}
	at := c.reached(now)
	if c.instant == 0 { // nothing is known of before, and nothing is left of it
		at = wall
	}
	if c.moves < ledFor && s.Pulse.Wall != 0 {
		passed := wall.Sub(s.Pulse.Wall)
		if s.Clock != 0 {
			passed = min(passed, s.Now.Sub(s.Clock))
		}
		at = max(at, s.Pulse.Instant.Add(max(0, passed)))
	}
	next.Pulse.Instant, next.Dial = at, s.Dial
	switch {
	case s.Epoch.Number < max(c.number, heard.Number):
		next.Lost = lease.Doubt{Epoch: next.Epoch.Number, At: at}
	case c.lacks > 0 || s.Run != s.Running && c.config.Lag > 0: // else what it has is all that it had
		next.Lagged = lease.Doubt{Epoch: next.Epoch.Number, At: at, Lag: max(c.config.Lag, c.lacks)}
	}
	return next
}

// Won tells the candidate that the seat is its own. It leads under each epoch once: a
// seat that it finds its own later is one that it did not manage to give up.
func (c *Candidate) Won(s lease.Seat) {
	c.number, c.mirror, c.bid = max(c.number, s.Epoch.Number), s.Mirror, lease.Epoch{}
}

// ledFor is how often a seat has to move for somebody to have led since a candidate looks:
// once or twice may be calls of a leader that is gone, which were late.
const ledFor = 3

// Bid tells the candidate with which epoch it campaigns.
func (c *Candidate) Bid(e lease.Epoch) {
	c.bid, c.bids = e, max(c.bids, e.Number)
}
