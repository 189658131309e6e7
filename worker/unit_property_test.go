package worker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// askUnits asks as a caller does whose call costs w of a unit.
func (m *member) askUnits(cost, w int64, until time.Duration) *Call {
	var c *Call
	m.do(func() {
		if c = m.pool.Ask(m.fleet.now, cost, false, until, of("w", w)); c.State() != Waiting {
			m.spend(c)
		}
	})
	return c
}

// mostUnits is the most of the unit in any trailing window that ends at a spend.
func mostUnits(spends []spend, window time.Duration) int64 {
	f := fleet{spends: spends}
	return f.most(window)
}

// Calls that cost units, beside calls that cost none, over a network that loses,
// repeats, delays and reorders: no window of either unit is exceeded, all books
// balance at every step, and everything is back at the end.
func TestUnitsKeepTheLawOverABrutalNetwork(t *testing.T) {
	var all Books
	for seed := range uint64(60) {
		f := newFleet(`limits: [{key: k, rules: [20/1s, 60/1s unit=w, 150/4s unit=w]}]`, seed)
		f.faults = true
		var units []spend
		for i := range 3 {
			m := f.member(fmt.Sprint("m", i), "k", DefaultPoolConfig())
			m.served = func(c *Call) {
				if c.State() != Running {
					return
				}
				at := len(units)
				units = append(units, spend{f.now, c.Units().Of("w")})
				f.after(time.Duration(f.rnd.IntN(300))*time.Millisecond, func() {
					m.do(func() {
						if used := f.rnd.Int64N(8); c.State() == Running && used < c.Units().Of("w") && f.rnd.IntN(3) == 0 {
							require.NoError(t, m.pool.Settle(f.now, c, c.Cost(), of("w", used)))
							units[at].n = used
							return
						}
						m.pool.Finish(f.now, c)
					})
				})
			}
			for range 60 {
				f.after(time.Duration(f.rnd.IntN(20_000))*time.Millisecond, func() { m.demandUnits(&units, seed%4 == 0) })
			}
		}
		for f.now < 30*time.Second {
			f.run(f.now + 100*time.Millisecond)
			for _, m := range f.members {
				balanced(t, m.pool.Books(), fmt.Sprintf("seed %d at %s", seed, f.now))
				balancedUnits(t, m.pool.Books(), fmt.Sprintf("seed %d at %s", seed, f.now))
			}
		}
		require.LessOrEqual(t, f.most(time.Second), int64(20), "seed %d: 20/1s", seed)
		require.LessOrEqual(t, mostUnits(units, time.Second), int64(60), "seed %d: 60/1s unit=w", seed)
		require.LessOrEqual(t, mostUnits(units, 4*time.Second), int64(150), "seed %d: 150/4s unit=w", seed)

		f.faults = false
		f.run(f.now + 20*time.Second)
		for _, m := range f.members {
			b := m.pool.Books()
			require.True(t, m.pool.Idle(), "seed %d: %s still holds or wants after the faults stopped: %+v", seed, m.holder, b)
			require.Zero(t, b.UnitsHeld, "seed %d", seed)
			all.Add(b)
		}
	}
	t.Logf("%+v", all)
	require.NotZero(t, all.UnitsSpent)
	require.NotZero(t, all.UnitsReturned)
	require.NotZero(t, all.UnitsExpired)
}

// demandUnits makes a caller do something at random.
func (m *member) demandUnits(units *[]spend, restarts bool) {
	f := m.fleet
	w := 1 + f.rnd.Int64N(20)
	switch f.rnd.IntN(5) {
	case 0:
		for i := range 10 {
			f.after(time.Duration(i)*time.Millisecond, func() {
				m.do(func() {
					if m.pool.Allow(f.now, 1, of("w", w)) {
						f.spends = append(f.spends, spend{f.now, 1})
						*units = append(*units, spend{f.now, w})
					}
				})
			})
		}
	case 1:
		m.askUnits(1+f.rnd.Int64N(3), w, Forever)
	case 2:
		c := m.askUnits(1, w, f.now+time.Duration(f.rnd.IntN(2000))*time.Millisecond)
		f.after(time.Duration(f.rnd.IntN(1000))*time.Millisecond, func() {
			m.do(func() {
				if c.State() == Waiting {
					m.pool.Cancel(f.now, c)
				}
			})
		})
	case 3:
		for range 5 {
			m.askUnits(1, w, f.now+time.Duration(1+f.rnd.IntN(3000))*time.Millisecond)
		}
	case 4:
		m.ask(1, false, f.now+time.Second)
		if restarts { // the holder's process stood still
			m.holder.Incarnation++
			m.do(func() { m.pool.Restart(f.now) })
		}
	}
}

// A fleet that wants all of a limit gets nearly all of the unit that binds, be it
// calls or the other.
func TestFleetUsesWhatItMayOfUnits(t *testing.T) {
	for _, c := range []struct {
		rules            string
		members, callers int
		w, limit         int64 // a call's units, and the calls that are allowed in a second
		least            float64
	}{
		{"1000/1s unit=w", 4, 4, 10, 100, 0.97},
		{"200/1s, 1000/1s unit=w", 4, 4, 10, 100, 0.97},
		{"100/1s, 5000/1s unit=w", 4, 4, 10, 100, 0.97},
		{"100/1s, 1000/1s unit=w", 1, 8, 10, 100, 0.97},
		{"1000/1s bucket burst=500 unit=w", 4, 4, 10, 100, 0.94},
	} {
		t.Run(fmt.Sprint(c.rules, c.members), func(t *testing.T) {
			f := newFleet("limits: [{key: k, rules: ["+c.rules+"]}]", 7)
			for i := range c.members {
				m := f.member(fmt.Sprint("m", i), "k", DefaultPoolConfig())
				m.served = func(call *Call) {
					f.after(0, func() {
						m.do(func() { m.pool.Finish(f.now, call) })
						m.askUnits(1, c.w, Forever)
					})
				}
				for range c.callers {
					f.after(time.Duration(f.rnd.IntN(50))*time.Millisecond, func() { m.askUnits(1, c.w, Forever) })
				}
			}
			f.run(7 * time.Second)
			in := 0
			for _, s := range f.spends {
				if s.at > time.Second {
					in++
				}
			}
			var b Books
			for _, m := range f.members {
				balancedUnits(t, m.pool.Books(), "at the end")
				b.Add(m.pool.Books())
			}
			use := float64(in) / float64(6*c.limit)
			t.Logf("use %.4f, %d calls, %d requests, %d grants, %d given up, %d refused, %d recalls", use, in, b.Requests, b.Grants, b.GivenUp, b.Refusals, b.Recalls)
			require.GreaterOrEqual(t, use, c.least)
		})
	}
}

// Units by a lease of calls alone cost nothing: it keeps none.
func TestLeaseOfCallsAloneKeepsNoUnits(t *testing.T) {
	d := newDesk(t)
	d.Finish(d.now, d.has(1, 10))
	require.Nil(t, d.leases[0].units)
	d.pass(10 * ms)
	count := d.told()
	require.Equal(t, []lease.Point{{Count: 1, Age: 10 * ms}}, count.Points)
	require.Nil(t, count.ReturnedUnits)
}
