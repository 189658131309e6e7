package worker

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// FuzzPool takes bytes as steps of callers, of time, and of a lessor that answers
// anything the wire can carry: to ids that are known, past or nobody's, with more
// than was asked for and of other units, a gap apart or not, for no time or for
// ever. Whatever it answers, everything granted is in one place, a report claims no
// more of a lease than it had, nothing panics, and long after the last step nothing
// is held.
func FuzzPool(f *testing.F) {
	f.Add([]byte("\x00\x01\x01\xff\x0a\x00\x00\x05\x03\x03\x02\x02\x01\x03\x00\x08\x04\x00\x09\x40\x0b\x0c\x00"))
	f.Add([]byte("\x02\x05\x0a\x00\x01\x05\x04\x03\x03\x00\x00\x02\x02\x0b\x0d\x00\x09\xff\x0f\x06\x01"))
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		steps := make([]byte, 400)
		for i := range steps {
			steps[i] = byte(r.IntN(256))
			if r.IntN(3) > 0 {
				steps[i] &= 15
			}
		}
		f.Add(steps)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := newFuzzed(t, data[:min(len(data), 4000)])
		for len(d.data) > 0 {
			d.step()
			d.settle()
		}
		d.end()
	})
}

// fuzzed drives one pool by bytes.
type fuzzed struct {
	t       *testing.T
	data    []byte
	now     time.Duration
	pool    *Pool
	seq     uint64
	calls   []*Call
	asked   []lease.Request
	reports []lease.Report
	granted map[lease.ID]lease.Amount // what a pool may have taken
	spent   int64                     // and not taken back since
}

func newFuzzed(t *testing.T, data []byte) *fuzzed {
	d := &fuzzed{t: t, data: data, granted: map[lease.ID]lease.Amount{}}
	keys := []lease.Key{"k", "k/x"}[:1+d.next()&1]
	d.pool = NewPool(keys, DefaultPoolConfig(), func() lease.ID {
		d.seq++
		return lease.ID{Holder: lease.Holder{Name: "h", Incarnation: 1}, Seq: d.seq}
	}, rand.New(rand.NewPCG(1, 1)))
	return d
}

func (d *fuzzed) next() int64 {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int64(b)
}

func pick[T any](d *fuzzed, from []T) T { return from[d.next()%int64(len(from))] }

func (d *fuzzed) call() *Call {
	if len(d.calls) == 0 {
		return nil
	}
	return pick(d, d.calls)
}

func (d *fuzzed) step() {
	switch d.next() & 15 {
	case 0, 1:
		until := pick(d, []time.Duration{Forever, d.now, d.now + time.Millisecond, d.now + time.Second, d.now + time.Minute, -1})
		d.calls = append(d.calls, d.pool.Ask(d.now, pick(d, []int64{1, 2, 7, 1 << 40, 1<<53 - 1}), d.next()&1 == 0, until, d.units()...))
	case 2:
		n := d.next() & 7
		if d.pool.Allow(d.now, n, d.units()...) {
			d.spent += n
		}
	case 3:
		if c := d.call(); c != nil && d.pool.Spend(d.now, c) {
			d.spent += c.Cost()
		}
	case 4:
		c := d.call()
		if c != nil && c.State() == Running {
			d.spent -= c.Cost()
		}
		d.pool.Cancel(d.now, c)
	case 5:
		if c := d.call(); c != nil {
			d.pool.Finish(d.now, c)
		}
	case 6:
		if c := d.call(); c != nil {
			d.pool.Abandon(d.now, c)
		}
	case 7:
		if c := d.call(); c != nil {
			used := pick(d, []int64{0, 1, c.Cost(), c.Cost() + 1, -1, math.MaxInt64, math.MinInt64})
			running := c.State() == Running
			if err := d.pool.Settle(d.now, c, used, d.units()...); err == nil && running {
				d.spent -= c.Cost() - used
			}
		}
	case 8, 9:
		d.now += pick(d, []time.Duration{1, time.Microsecond, time.Millisecond, 30 * time.Millisecond, time.Second, 5 * time.Second, time.Hour, -1})
		d.now = max(0, d.now)
	case 10:
		d.answer()
	case 11:
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
			d.pool.Recalled(d.now, lease.Recall{Key: pick(d, []lease.Key{"k", "k/x", "other"}), Slots: pick(d, numbers)})
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

// settle does what a shell does after each step, and looks at the books.
func (d *fuzzed) settle() {
	for range 100 {
		served := d.pool.Served()
		for _, c := range served {
			if c.State() == Taken && d.pool.Spend(d.now, c) {
				d.spent += c.Cost()
			}
		}
		if d.pool.Next() <= d.now {
			d.pool.Look()
			d.pool.Tick(d.now)
		} else if len(served) == 0 {
			break
		}
	}
	d.asked = append(d.asked, d.pool.Requests(d.now)...)
	if d.pool.Due() <= d.now {
		d.report(false)
	}
	b := d.pool.Books()
	balanced(d.t, b, fmt.Sprintf("at %v", d.now))
	balancedUnits(d.t, b, fmt.Sprintf("at %v", d.now))
	require.True(d.t, min(b.Granted, b.Spent, b.Returned, b.Expired, b.Held) >= 0, "%+v", b)
	require.True(d.t, min(b.UnitsGranted, b.UnitsSpent, b.UnitsReturned, b.UnitsExpired, b.UnitsHeld) >= 0, "%+v", b)
	require.LessOrEqual(d.t, d.spent, b.Granted, "spends of what was never granted: %+v", b)
}

// end closes the pool, lets each lease end, and looks for what is left.
func (d *fuzzed) end() {
	for _, c := range d.calls {
		d.pool.Finish(d.now, c)
		d.pool.Cancel(d.now, c)
	}
	d.pool.Close(d.now)
	d.settle()
	d.report(true)
	r := d.reports[len(d.reports)-1]
	var reply lease.Reply
	for _, c := range r.Counts {
		reply.Ended = append(reply.Ended, c.ID)
	}
	for _, g := range r.GivenUp {
		reply.Acknowledged = append(reply.Acknowledged, g.ID)
	}
	d.pool.Replied(d.now, r, reply)
	d.settle()
	b := d.pool.Books()
	require.Zero(d.t, b.Held+b.UnitsHeld, "%+v", b)
	require.True(d.t, d.pool.Idle(), "%+v", b)
}
