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
	keys := []lease.Key{"x", "x/y", "x/z", "x/y/w"}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := lease.DefaultConfig()
		if len(data)%2 == 1 { // every bound is met
			c.Keys, c.Holders, c.Leases = 3, lease.Bound{Each: 2, All: 3}, lease.Bound{Each: 2, All: 4}
			c.Waiters, c.IDs = lease.Bound{Each: 2, All: 3}, lease.Bound{Each: 2, All: 3}
		}
		l := lease.NewLedger(p, c)
		now := start
		next := func() int64 {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int64(b)
		}
		id := func() lease.ID {
			b := next()
			return lease.ID{Holder: lease.Holder{Name: "h", Incarnation: uint64(b & 3)}, Seq: uint64(b >> 2)}
		}
		for len(data) > 0 {
			m := lease.Message{Arrived: now}
			switch next() & 3 {
			case 0, 1:
				r := &lease.Request{ID: id(), Keys: []lease.Key{keys[next()&3], keys[next()&3]}, Sent: now.Sub(start)}
				r.Need = lease.Amount{Tokens: next() & 15, Slots: next() & 3}
				r.Want = lease.Amount{Tokens: r.Need.Tokens + next()&7, Slots: r.Need.Slots + next()&1}
				if b := next(); b&3 > 0 {
					r.Need.Units = lease.UnitsOf(map[string]int64{"u": b >> 2 & 7, "v": b >> 5, "w": b & 1})
					r.Want.Units = lease.UnitsOf(map[string]int64{"u": b>>2&7 + b&3, "v": b >> 5, "w": b & 1})
				}
				r.Patience = time.Duration(next()) * 20 * time.Millisecond
				if r.Validate() != nil {
					continue
				}
				m.Request = r
			case 2:
				x := id()
				r := &lease.Report{Holder: x.Holder, Sent: now.Sub(start), Heartbeat: next()&1 == 0}
				r.Counts = []lease.Count{{
					ID: x, Keys: []lease.Key{keys[next()&3]},
					Points:   []lease.Point{{Count: next() & 15, Age: time.Duration(next()) * time.Millisecond}, {Count: next() & 15}},
					Returned: next() & 15, Freed: next() & 3, Cut: next() & 3,
				}}
				if b := next(); b&3 > 0 {
					r.Counts[0].Points[0].Units = lease.UnitsOf(map[string]int64{"u": b >> 2 & 15, "w": b & 1})
					r.Counts[0].Points[1].Units = lease.UnitsOf(map[string]int64{"u": b >> 4, "x": b & 2})
					r.Counts[0].ReturnedUnits = lease.UnitsOf(map[string]int64{"u": next() & 7, "v": b >> 6})
				}
				if next()&3 == 0 {
					r.GivenUp = []lease.GivenUp{{ID: id(), Keys: []lease.Key{"x"}}}
				}
				m.Report = r
			default:
				now = now.Add(time.Duration(next()) * 10 * time.Millisecond)
				l.Turn(now, nil)
				continue
			}
			l.Turn(now, []lease.Message{m})
			lawful(t, l, now)
		}
		for range 300 { // a minute, in steps, so that all timers fire
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
	})
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
