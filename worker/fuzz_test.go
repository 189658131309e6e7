package worker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	switch kind := d.next() & 15; {
	case kind < 8:
		d.demand(kind)
	case kind < 10:
		d.now += pick(d, []time.Duration{1, time.Microsecond, time.Millisecond, 30 * time.Millisecond, time.Second, 5 * time.Second, time.Hour, -1})
		d.now = max(0, d.now)
	default:
		d.say(kind)
	}
}

// demand is a step of a caller.
func (d *fuzzed) demand(kind int64) {
	switch kind {
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
				d.spent -= max(0, c.Cost()-used)
			}
		}
	}
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
