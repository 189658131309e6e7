package worker

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// say is a step of the lessor, or of who owns the pool.
func (d *fuzzed) say(kind int64) {
	switch kind {
	case 10, 11:
		d.answer()
	case 12:
		id, sent := d.id()
		d.pool.Failed(d.now, sent, id, pick(d, []error{
			context.DeadlineExceeded, lease.ErrNoCoordinator, lease.ErrBadRequest, lease.ErrSuperseded, lease.ErrFormat, lease.ErrInternal, fmt.Errorf("else"),
		}))
	case 13:
		d.report(d.next()&1 == 0)
	case 14:
		d.reply()
	case 15:
		switch d.next() & 15 {
		case 0:
			d.pool.Restart(d.now)
		case 1:
			d.pool.Close(d.now)
		default:
			r := lease.Recall{Key: pick(d, []lease.Key{"k", "k/x", "other"})}
			if r.Key == "k" {
				r.More = d.pool.keys[1:]
			}
			r.Slots = pick(d, numbers)
			d.pool.Recalled(d.now, r)
		}
	}
}

// numbers and durations are what the wire can carry.
var (
	numbers   = []int64{0, 1, 2, 3, 10, 1 << 40, 1<<53 - 1}
	durations = []time.Duration{0, 1, time.Millisecond, time.Second, 5 * time.Second, time.Hour, math.MaxInt64 - 1, math.MaxInt64}
)

func (d *fuzzed) amount() lease.Amount {
	return lease.Amount{Tokens: pick(d, numbers), Slots: pick(d, numbers), Units: d.units()}
}

// units are none more often than not.
func (d *fuzzed) units() lease.Units {
	most := []int64{1, 7, 1 << 40, algo.MaxLimit}
	switch d.next() & 15 {
	case 1, 2, 3:
		return lease.Units{{Unit: "w", N: pick(d, most)}}
	case 4:
		return lease.Units{{Unit: "v", N: pick(d, most)}}
	case 5, 6:
		return lease.Units{{Unit: "v", N: pick(d, most)}, {Unit: "w", N: pick(d, most)}}
	}
	return nil
}

// id is that of a copy that was sent, with its instant, or any.
func (d *fuzzed) id() (lease.ID, time.Duration) {
	if len(d.asked) == 0 || d.next()&7 == 0 {
		return lease.ID{Holder: lease.Holder{Name: "h", Incarnation: 1}, Seq: uint64(d.next())}, d.now
	}
	r := d.asked[len(d.asked)-1-int(d.next()%int64(min(len(d.asked), 8)))]
	return r.ID, r.Sent
}

func (d *fuzzed) answer() {
	id, sent := d.id()
	a := lease.Answer{ID: id, Outcome: lease.Outcome(1 + d.next()&3)}
	if d.next()&3 > 0 {
		a.Terms = lease.Terms{Window: pick(d, durations), Concurrent: d.next()&1 == 0, Unlimited: d.next()&7 == 0}
		if d.next()&3 == 0 {
			a.Terms.Spacing = pick(d, durations)
		}
	}
	switch a.Outcome {
	case lease.Granted:
		a.Granted, a.TokenTTL, a.SlotTTL, a.Waited = d.amount(), pick(d, durations), pick(d, durations), pick(d, durations)
		if d.pool.find(id) != nil {
			d.granted[id] = a.Granted
		}
	case lease.Refused:
		a.Refusal = lease.Refusal{Key: "k", Rule: "5/1s", Wait: pick(d, durations), Reason: pick(d, []error{
			lease.ErrLimit, lease.ErrNever, lease.ErrUnknownKey, lease.ErrNeedsSlot, lease.ErrLineFull, lease.ErrTooLate, lease.ErrTimedOut, lease.ErrInternal,
		})}
	}
	d.pool.Answered(d.now, sent, a)
}

// report takes a report, and looks at what it claims.
func (d *fuzzed) report(heartbeat bool) {
	d.pool.Look()
	r := lease.Report{Sent: d.now, Heartbeat: heartbeat}
	r.Counts, r.GivenUp = d.pool.Report(d.now, heartbeat)
	for _, c := range r.Counts {
		had, ok := d.granted[c.ID]
		require.True(d.t, ok, "%v was never granted", c.ID)
		var last lease.Point
		for _, p := range c.Points {
			require.GreaterOrEqual(d.t, p.Age, time.Duration(0), "%+v", c)
			require.GreaterOrEqual(d.t, p.Count, last.Count, "counts are cumulative: %+v", c)
			require.True(d.t, p.Units.Covers(last.Units), "counts are cumulative: %+v", c)
			last = p
		}
		require.LessOrEqual(d.t, last.Count+c.Returned, had.Tokens, "spent + returned of %+v", c)
		for _, unit := range []string{"v", "w"} {
			require.LessOrEqual(d.t, last.Units.Of(unit)+c.ReturnedUnits.Of(unit), had.Units.Of(unit), "%s spent + returned of %+v", unit, c)
		}
		require.LessOrEqual(d.t, c.Freed+c.Cut, had.Slots, "freed + cut of %+v", c)
	}
	d.reports = append(d.reports, r)
}

func (d *fuzzed) reply() {
	if len(d.reports) == 0 {
		return
	}
	r := d.reports[len(d.reports)-1-int(d.next()%int64(min(len(d.reports), 4)))]
	if d.next()&3 == 0 {
		d.pool.Unreported(d.now, r)
		return
	}
	var reply lease.Reply
	for _, c := range r.Counts {
		switch d.next() & 3 {
		case 0:
			reply.Ended = append(reply.Ended, c.ID)
		case 1, 2:
			reply.Renewed = append(reply.Renewed, lease.Renewal{ID: c.ID, SlotTTL: pick(d, durations)})
		}
	}
	for _, g := range r.GivenUp {
		if d.next()&1 == 0 {
			reply.Acknowledged = append(reply.Acknowledged, g.ID)
		}
	}
	d.pool.Replied(d.now, r, reply)
}
