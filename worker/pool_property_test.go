package worker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const racePolicy = `
limits:
  - key: k
    rules: [20/1s, 50/4s]
  - key: c
    rules: [40/1s, 3 concurrent]
`

// balanced asserts that every token ever granted is in one place.
func balanced(t testing.TB, b Books, msg string) {
	t.Helper()
	require.Equal(t, b.Granted, b.Spent+b.Returned+b.Expired+b.Held, "%s: granted = spent + returned + expired + held: %+v", msg, b)
}

// Holders over a network that loses, repeats, delays and reorders never spend
// beyond a window, and their books balance at every step.
func TestLawHoldsOverABrutalNetwork(t *testing.T) {
	var all Books
	for seed := range uint64(60) {
		f := newFleet(racePolicy, seed)
		f.faults = true
		for i := range 3 {
			m := f.member(fmt.Sprint("m", i), "k", DefaultPoolConfig())
			m.served = func(c *Call) {
				if c.State() == Running && f.rnd.IntN(3) > 0 {
					return
				}
				f.after(time.Duration(f.rnd.IntN(300))*time.Millisecond, func() { m.do(func() { m.pool.Finish(f.now, c) }) })
			}
			for range 60 {
				f.after(time.Duration(f.rnd.IntN(20_000))*time.Millisecond, func() { m.demand(seed) })
			}
		}
		for f.now < 30*time.Second {
			f.run(f.now + 100*time.Millisecond)
			for _, m := range f.members {
				balanced(t, m.pool.Books(), fmt.Sprintf("seed %d at %s", seed, f.now))
			}
		}
		require.LessOrEqual(t, f.most(time.Second), int64(20), "seed %d: 20/1s", seed)
		require.LessOrEqual(t, f.most(4*time.Second), int64(50), "seed %d: 50/4s", seed)

		f.faults = false
		f.run(f.now + 20*time.Second)
		for _, m := range f.members {
			require.True(t, m.pool.Idle(), "seed %d: %s still holds or wants after the faults stopped: %+v, due %s, next %s",
				seed, m.holder, m.pool.Books(), m.pool.Due(), m.pool.Next())
			b := m.pool.Books()
			balanced(t, b, fmt.Sprintf("seed %d, end", seed))
			all.Add(b)
		}
	}
	t.Logf("%+v", all)
	require.NotZero(t, all.Spent)
	require.NotZero(t, all.Returned)
	require.NotZero(t, all.Expired)
	require.NotZero(t, all.Dropped, "a second answer to a taken id was never tried")
	require.NotZero(t, all.GivenUp)
	require.NotZero(t, all.Recalls)
}

// demand makes a caller do something at random.
func (m *member) demand(seed uint64) {
	f := m.fleet
	switch f.rnd.IntN(5) {
	case 0: // Allow, again and again
		for i := range 10 {
			f.after(time.Duration(i)*time.Millisecond, func() {
				m.do(func() {
					n := 1 + f.rnd.Int64N(2)
					if m.pool.Allow(f.now, n) {
						f.spends = append(f.spends, spend{f.now, n})
					}
				})
			})
		}
	case 1: // waits long
		m.ask(1+f.rnd.Int64N(6), false, Forever)
	case 2: // cancelled at random
		c := m.ask(1+f.rnd.Int64N(3), false, f.now+time.Duration(f.rnd.IntN(2000))*time.Millisecond)
		f.after(time.Duration(f.rnd.IntN(1000))*time.Millisecond, func() {
			m.do(func() {
				if c.State() == Waiting {
					m.pool.Cancel(f.now, c)
				}
			})
		})
	case 3: // a deadline
		for range 5 {
			m.ask(1, true, f.now+time.Duration(1+f.rnd.IntN(3000))*time.Millisecond)
		}
	case 4: // the holder's process stood still
		if seed%4 == 0 {
			m.holder.Incarnation++
			m.do(func() { m.pool.Restart(f.now) })
		}
	}
}

// Under a concurrency rule no more calls run at once than slots, with losses,
// and a lost lease ends its calls before anybody else gets the slot.
func TestSlotsAreNeverSharedOverABrutalNetwork(t *testing.T) {
	var all Books
	for seed := range uint64(40) {
		f := newFleet(racePolicy, seed)
		f.faults = true
		running, most := 0, 0
		for i := range 3 {
			m := f.member(fmt.Sprint("m", i), "c", DefaultPoolConfig())
			m.lost = func(c *Call) { running-- }
			m.served = func(c *Call) {
				if c.State() != Running {
					return
				}
				require.True(t, c.HasSlot(), "seed %d", seed)
				running++
				most = max(most, running)
				f.after(time.Duration(20+f.rnd.IntN(4000))*time.Millisecond, func() {
					m.do(func() {
						if c.State() == Running {
							running--
						}
						m.pool.Finish(f.now, c)
					})
				})
			}
			for range 15 {
				f.after(time.Duration(f.rnd.IntN(20_000))*time.Millisecond, func() {
					m.ask(1, true, f.now+time.Duration(f.rnd.IntN(9000))*time.Millisecond)
				})
			}
		}
		for f.now < 40*time.Second {
			f.run(f.now + 200*time.Millisecond)
			for _, m := range f.members {
				balanced(t, m.pool.Books(), fmt.Sprintf("seed %d at %s", seed, f.now))
			}
		}
		require.LessOrEqual(t, most, 3, "seed %d", seed)
		f.faults = false
		f.run(f.now + 30*time.Second)
		for _, m := range f.members {
			require.True(t, m.pool.Idle(), "seed %d: %s still holds or wants: %+v", seed, m.holder, m.pool.Books())
			all.Add(m.pool.Books())
		}
	}
	t.Logf("%+v", all)
	require.NotZero(t, all.Handed)
	require.NotZero(t, all.Recalls)
}
