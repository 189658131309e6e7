package worker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// demandAll makes callers at every member that ask again as soon as they are
// served, and work for so long.
func (f *fleet) demandAll(callers int, slot bool, work time.Duration) {
	for _, m := range f.members {
		m.served = func(c *Call) {
			if c.State() != Running {
				return
			}
			f.after(work, func() {
				m.do(func() { m.pool.Finish(f.now, c) })
				m.ask(1, slot, Forever)
			})
		}
		for range callers {
			f.after(time.Duration(f.rnd.IntN(50))*time.Millisecond, func() { m.ask(1, slot, Forever) })
		}
	}
}

// A fleet that wants all of a limit gets nearly all of it, and no more.
func TestFleetUsesWhatItMay(t *testing.T) {
	for _, c := range []struct {
		rules   string
		slot    bool
		members int
		callers int
		work    time.Duration
		window  time.Duration
		limit   int64
		least   float64
	}{
		{"100/1s", false, 1, 8, 0, time.Second, 100, 0.97},
		{"100/1s", false, 8, 4, 0, time.Second, 100, 0.97},
		{"1000/1s", false, 8, 16, 0, time.Second, 1000, 0.97},
		{"10/100ms", false, 2, 4, 0, 100 * time.Millisecond, 10, 0.93},
		{"200/1s, 550/3s, 16 concurrent", true, 8, 4, 20 * time.Millisecond, 3 * time.Second, 550, 0.97},
		{"50/1s bucket burst=25", false, 4, 4, 0, 0, 50, 0.95},
		{"8 concurrent", true, 4, 4, 50 * time.Millisecond, time.Second, 160, 0.93},
		{"1000/1s, 8 concurrent", true, 1, 20, 10 * time.Millisecond, time.Second, 800, 0.93},
	} {
		t.Run(c.rules+fmt.Sprint(c.members), func(t *testing.T) {
			f := newFleet("limits: [{key: k, rules: ["+c.rules+"]}]", 7)
			for i := range c.members {
				f.member(fmt.Sprint("m", i), "k", DefaultPoolConfig())
			}
			f.demandAll(c.callers, c.slot, c.work)
			f.run(7 * time.Second)
			var in int64
			for _, s := range f.spends {
				if s.at > time.Second {
					in += s.n
				}
			}
			window := max(c.window, time.Second)
			per := float64(c.limit) * float64(window) / float64(max(c.window, 1))
			if c.window == 0 {
				per = float64(c.limit)
			}
			use := float64(in) / (per * 6 * float64(time.Second) / float64(window))
			var b Books
			for _, m := range f.members {
				balanced(t, m.pool.Books(), "at the end")
				b.Add(m.pool.Books())
			}
			t.Logf("use %.4f, %d spends, %d requests, %d grants, %d given up, %d refused, %d recalls, %d handed", use, in, b.Requests, b.Grants, b.GivenUp, b.Refusals, b.Recalls, b.Handed)
			if c.window > 0 && !c.slot {
				require.LessOrEqual(t, f.most(c.window), c.limit)
			}
			require.GreaterOrEqual(t, use, c.least)
		})
	}
}

// Who asked for more than is free, in vain, finds less at once: within the time
// of a message or two, and without many of them.
func TestARefusedAllowOfManyKeepsNoneFromAnAllowOfOne(t *testing.T) {
	for _, policy := range []string{
		"10/1h",                 // five are refused at once: they would take an hour
		"10/1s bucket burst=10", // five wait in the lessor's line
	} {
		t.Run(policy, func(t *testing.T) {
			bubble(t, "limits: [{key: k, rules: ["+policy+"]}]", func(t *testing.T, s *scripted) {
				w := s.start(t, "w")
				l := w.Limiter("k")
				require.NoError(t, l.WaitN(t.Context(), 8))
				require.False(t, l.AllowN(5))
				synctest.Wait()
				asked, begun := s.asked.Load(), time.Now()
				for range 2 {
					for !l.Allow() {
						time.Sleep(100 * time.Microsecond)
						require.Less(t, time.Since(begun), time.Minute, "two are free, and it got none")
					}
				}
				require.LessOrEqual(t, time.Since(begun), 10*time.Millisecond)
				require.LessOrEqual(t, s.asked.Load()-asked, int64(4))
				s.end(t, w)
			})
		})
	}
}
