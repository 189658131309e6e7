package lease_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// FuzzLedger takes bytes as messages and steps of time, of holders that may say
// anything. Whatever they say, free + held + spent = limit, what windows hold is
// what leases hold, the books balance, and long after the last message all is
// free again. Half of the ledgers have bounds so low that they are met.
func FuzzLedger(f *testing.F) {
	f.Add([]byte("\x00\x01\x05\x02\x40\x01\x03\x02\x01\x80\x02\x00"))
	f.Add([]byte("\x00\x11\x25\xf0\x40\x01\x00\x01\x00\x07\x12\x25\x01\x02\x03\x01\x02\x03\xc0\xff\xff"))
	p, err := lease.ParsePolicy("fuzz", []byte(`
unknown: allow
limits:
  - {key: "{a}", rules: [9/1s, 3 concurrent], guard: 5ms}
  - {key: "{a}/{b}", rules: [5/2s bucket burst=4, 20/10s fixed, 40/1s unit=u]}
  - {key: "{a}/{b}/{c}", rules: [30/1s unit=u, 9/1s bucket unit=v]}
`))
	require.NoError(f, err)
	f.Add([]byte("\x00\x08\x02\x03\x01\x01\x02\x01\x1f\x25\x01\x01\x07\x00\x40\x00\x09\x03\x02\x01\x02\x03\x01\x2f\x15\x02\x01\x60\x02\x08\x00\x03\x01\x20\x33\x03\x02\x11\x42\x01\x00\x00\x02\x03\x60\x03\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := lease.DefaultConfig()
		if len(data)%2 == 1 { // every bound is met
			c.Keys, c.Holders, c.Leases = 3, lease.Bound{Each: 2, All: 3}, lease.Bound{Each: 2, All: 4}
			c.Waiters, c.IDs = lease.Bound{Each: 2, All: 3}, lease.Bound{Each: 2, All: 3}
		}
		l := lease.NewLedger(p, c)
		d := &drawn{data: data, now: start}
		for len(d.data) > 0 {
			m := lease.Message{Arrived: d.now}
			switch d.next() & 3 {
			case 0, 1:
				if m.Request = d.request(); m.Request.Validate() != nil {
					continue
				}
			case 2:
				m.Report = d.report()
			default:
				d.now = d.now.Add(time.Duration(d.next()) * 10 * time.Millisecond)
				l.Turn(d.now, nil)
				continue
			}
			l.Turn(d.now, []lease.Message{m})
			lawful(t, l, d.now)
		}
		rests(t, l, d.now)
	})
}

// drawn is messages that bytes stand for.
type drawn struct {
	data []byte
	now  algo.Instant
}

func (d *drawn) next() int64 {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int64(b)
}

func (d *drawn) id() lease.ID {
	b := d.next()
	return lease.ID{Holder: lease.Holder{Name: "h", Incarnation: uint64(b & 3)}, Seq: uint64(b >> 2)}
}

func (d *drawn) key() lease.Key { return []lease.Key{"x", "x/y", "x/z", "x/y/w"}[d.next()&3] }

func (d *drawn) request() *lease.Request {
	r := &lease.Request{ID: d.id(), Keys: []lease.Key{d.key(), d.key()}, Sent: d.now.Sub(start)}
	r.Need = lease.Amount{Tokens: d.next() & 15, Slots: d.next() & 3}
	r.Want = lease.Amount{Tokens: r.Need.Tokens + d.next()&7, Slots: r.Need.Slots + d.next()&1}
	if b := d.next(); b&3 > 0 {
		r.Need.Units = lease.UnitsOf(map[string]int64{"u": b >> 2 & 7, "v": b >> 5, "w": b & 1})
		r.Want.Units = lease.UnitsOf(map[string]int64{"u": b>>2&7 + b&3, "v": b >> 5, "w": b & 1})
	}
	r.Patience = time.Duration(d.next()) * 20 * time.Millisecond
	return r
}

func (d *drawn) report() *lease.Report {
	id := d.id()
	r := &lease.Report{Holder: id.Holder, Sent: d.now.Sub(start), Heartbeat: d.next()&1 == 0}
	c := lease.Count{
		ID: id, Keys: []lease.Key{d.key()},
		Points:   []lease.Point{{Count: d.next() & 15, Age: time.Duration(d.next()) * time.Millisecond}, {Count: d.next() & 15}},
		Returned: d.next() & 15, Freed: d.next() & 3, Cut: d.next() & 3,
	}
	if b := d.next(); b&3 > 0 {
		c.Points[0].Units = lease.UnitsOf(map[string]int64{"u": b >> 2 & 15, "w": b & 1})
		c.Points[1].Units = lease.UnitsOf(map[string]int64{"u": b >> 4, "x": b & 2})
		c.ReturnedUnits = lease.UnitsOf(map[string]int64{"u": d.next() & 7, "v": b >> 6})
	}
	if b := d.next(); b&7 == 7 {
		c.Over, c.OverUnits = b>>3&7, lease.UnitsOf(map[string]int64{"u": b >> 6, "w": 1})
	}
	r.Counts = []lease.Count{c}
	if d.next()&3 == 0 {
		r.GivenUp = []lease.GivenUp{{ID: d.id(), Keys: []lease.Key{"x"}}}
	}
	return r
}

// rests requires that a minute later, taken in steps so that all timers fire,
// everything is free again.
func rests(t testing.TB, l *lease.Ledger, now algo.Instant) {
	t.Helper()
	for range 300 {
		now = now.Add(200 * time.Millisecond)
		l.Turn(now, nil)
	}
	lawful(t, l, now)
	s := l.Status(now, "")
	require.Zero(t, s.Leases)
	require.Zero(t, s.Waiting)
	for _, k := range s.Keys {
		for _, w := range k.Windows {
			require.Equal(t, w.Limit, w.Free, "%s %s", k.Key, w.Rule)
		}
	}
}

// lawful holds the ledger against the law, and its windows against its leases.
func lawful(t testing.TB, l *lease.Ledger, now algo.Instant) {
	t.Helper()
	balanced(t, l, now)
	for _, k := range l.Status(now, "").Keys {
		var held lease.Amount
		for _, h := range k.Holders {
			held.Tokens += h.Held.Tokens
			held.Slots += h.Held.Slots
			for _, u := range h.Held.Units {
				held.Units = held.Units.Plus(u.Unit, u.N)
			}
		}
		for _, w := range k.Windows {
			want := held.Tokens
			if w.Rule == "3 concurrent" {
				want = held.Slots
			} else if _, unit, of := strings.Cut(w.Rule, "unit="); of {
				want = held.Units.Of(unit)
			}
			require.Equal(t, want, w.Held, "%s %s: what the window holds is what leases hold", k.Key, w.Rule)
		}
	}
}
