package worker

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

const ms = time.Millisecond

// desk is a pool with a lessor played by hand.
type desk struct {
	*Pool
	t   *testing.T
	now time.Duration
	seq uint64
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t}
	d.Pool = NewPool([]lease.Key{"k"}, DefaultPoolConfig(), func() lease.ID {
		d.seq++
		return lease.ID{Holder: lease.Holder{Name: "h", Incarnation: 1}, Seq: d.seq}
	}, rand.New(rand.NewPCG(1, 1)))
	t.Cleanup(func() { balanced(t, d.Books(), "at the end") })
	return d
}

func (d *desk) id(seq uint64) lease.ID {
	return lease.ID{Holder: lease.Holder{Name: "h", Incarnation: 1}, Seq: seq}
}

// pass lets time pass, with a Tick wherever the pool wants one.
func (d *desk) pass(span time.Duration) {
	for end := d.now + span; ; {
		next := d.Next()
		if next <= d.now {
			next = d.now + ms // a request waits to be sent
		}
		if next > end {
			d.now = end
			return
		}
		d.now = next
		d.Look()
		d.Tick(d.now)
	}
}

// one gives the one request that is due now.
func (d *desk) one() lease.Request {
	d.t.Helper()
	rs := d.Requests(d.now)
	require.Len(d.t, rs, 1)
	return rs[0]
}

var rate = lease.Terms{Window: time.Second}
var capped = lease.Terms{Window: time.Second, Concurrent: true}

func granted(r lease.Request, tokens, slots int64, terms lease.Terms) lease.Answer {
	return lease.Answer{
		ID: r.ID, Outcome: lease.Granted, Granted: lease.Amount{Tokens: tokens, Slots: slots},
		TokenTTL: 5 * time.Second, SlotTTL: 10 * time.Second, Terms: terms,
	}
}

func refusal(r lease.Request, reason error) lease.Answer {
	return lease.Answer{ID: r.ID, Outcome: lease.Refused, Refusal: lease.Refusal{Reason: reason, Key: "k"}, Terms: rate}
}

// has asks for n tokens and gives the call, spent, with its lease granted them.
func (d *desk) has(n, tokens int64) *Call {
	c := d.Ask(d.now, n, false, Forever)
	r := d.one()
	d.Answered(d.now, r.Sent, granted(r, tokens, 0, rate))
	require.Equal(d.t, Taken, c.State())
	require.True(d.t, d.Spend(d.now, c))
	d.Served()
	return c
}

func (d *desk) told() lease.Count {
	d.t.Helper()
	counts, _ := d.Report(d.now, true)
	require.Len(d.t, counts, 1)
	return counts[0]
}
