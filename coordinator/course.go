package coordinator

import (
	"errors"
	"slices"

	"ration/algo"
	"ration/lease"
)

// errUnheard says that the leader cannot hear whether another has led since.
var errUnheard = errors.New("coordinator: not connected to NATS; what the mirror has lost is not written back until then, since another may have led")

// Course is what a leader has to keep to so that its mirror is what its ledger is: how
// turns are numbered, what is in doubt, and how a mirror that has lost something is won
// back. It is pure, and not safe for concurrent use.
type Course struct {
	seat   lease.Seat // as it was won last
	seq    uint64     // of the last turn
	loaded bool       // all there was in the mirror
	sound  algo.Instant
	bids   []lease.Epoch // since then, of which there may be no answer; the last ones
}

// bidsKept is of how many bids it is remembered that the seat may be won by them: what the
// mirror carries out late is one of the last seconds.
const bidsKept = 1000

// NewCourse readies a ledger for a seat that was won. The revision is that of its policy, 0
// for one that was never in force.
func NewCourse(seat lease.Seat, l *lease.Ledger, revision uint64) *Course {
	c := &Course{seat: seat}
	l.Start(lease.Start{
		Epoch:    seat.Epoch.Number,
		Instant:  seat.Pulse.Instant,
		Dial:     seat.Dial,
		Revision: revision,
		Recorded: revision != 0 && seat.Revision == revision,
		Complete: seat.Fresh,
		Lost:     seat.Lost,
		Lagged:   seat.Lagged,
	})
	c.loaded = l.Complete()
	c.doubt(l)
	return c
}

// doubt reckons until when records are in doubt.
func (c *Course) doubt(l *lease.Ledger) {
	c.sound = 0
	for _, d := range []lease.Doubt{c.seat.Lost, c.seat.Lagged} {
		if d.Epoch > 0 {
			c.sound = max(c.sound, d.At.Add(l.Longest()))
		}
	}
}

// Epoch is that under which the mirror is written.
func (c *Course) Epoch() lease.Epoch { return c.seat.Epoch }

// Loaded says that every record of the mirror that matters is in the ledger.
func (c *Course) Loaded() bool { return c.loaded }

// AllLoaded tells that every record has been restored.
func (c *Course) AllLoaded(l *lease.Ledger) {
	c.loaded = true
	if c.sound == 0 {
		l.SetComplete()
	}
}

// Number makes a turn the next one to be applied.
func (c *Course) Number(l *lease.Ledger, t *lease.Turn, wall algo.Instant) {
	c.seq++
	t.Epoch, t.Seq, t.Wall = c.seat.Epoch, c.seq, wall
	t.Sound = c.sound != 0 && (t.Rewritten && l.Complete() || !t.Instant.Before(c.sound))
}

// Applied tells that a turn is in the mirror.
func (c *Course) Applied(l *lease.Ledger, t *lease.Turn) {
	if !t.Sound {
		return
	}
	c.seat.Lost, c.seat.Lagged, c.sound = lease.Doubt{}, lease.Doubt{}, 0
	l.Trust()
	if c.loaded {
		l.SetComplete()
	}
}

// Again says whether what a mirror answered has to be settled by winning the seat back:
// it has lost something, or the seat may be the leader's by a bid of which it had no
// answer.
func (c *Course) Again(err error) bool {
	switch lease.Code(err) {
	case lease.ErrGap.Code(), lease.ErrLost.Code():
		return true
	case lease.ErrFenced.Code():
		return len(c.bids) > 0
	}
	return false
}

// highest is the number of the last epoch that it has led or bid.
func (c *Course) highest() uint64 {
	if n := len(c.bids); n > 0 {
		return c.bids[n-1].Number
	}
	return c.seat.Epoch.Number
}

// Bid says with which seat to campaign for one that was seen so at now, under a random
// mark. It gives lease.ErrFenced where another has led since. Where won is true the seat
// is the leader's already, by an earlier bid.
//
// That another has led since may have been lost with the rest: this ledger lacks what that
// one granted, and is not written back where others know of a later epoch, or lead beside.
// Who cannot hear of it gets another error, and asks again.
func (c *Course) Bid(l *lease.Ledger, seen lease.Seat, heard Heard, now, wall algo.Instant, mark uint64) (next lease.Seat, won bool, err error) {
	own := c.seat.Epoch.Number
	switch {
	case slices.Contains(c.bids, seen.Epoch):
		return seen, true, nil
	case seen.Epoch.Number >= own && seen.Epoch != c.seat.Epoch:
		return seen, false, lease.ErrFenced
	case heard.Led >= own, heard.Number > c.highest(): // others may have seen its bid
		return seen, false, lease.ErrFenced
	case !heard.Connected: // somebody may have led since, who is not heard
		return seen, false, errUnheard
	}
	next = c.seat
	next.Epoch = lease.Epoch{Number: c.highest() + 1, Mark: mark}
	next.Run, next.Lagged, next.Fresh = seen.Running, lease.Doubt{}, false
	next.Pulse.Holders = l.Known()
	next.Dial = l.Dial()
	next.Pulse.Instant, next.Pulse.Wall = now, wall
	next.Lost = lease.Doubt{Epoch: next.Epoch.Number, At: now}
	if len(c.bids) == bidsKept {
		c.bids = slices.Delete(c.bids, 0, bidsKept/2)
	}
	c.bids = append(c.bids, next.Epoch)
	return next, false, nil
}

// Won tells that the seat is the leader's again: the ledger writes everything back, and
// what is in no ledger counts as lost. The turn t, unless it is nil, is made one that can
// be applied.
func (c *Course) Won(l *lease.Ledger, seat lease.Seat, t *lease.Turn, wall algo.Instant) {
	c.seat, c.bids, c.seq, c.loaded = seat, nil, 0, true
	l.Lose(seat.Lost)
	c.doubt(l)
	if l.Rewrite(t); t != nil {
		c.Number(l, t, wall)
	}
}
