package worker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tooSoon says which spends came before cost times W/L of the one before was over.
func (f *fleet) tooSoon(limit int64, window time.Duration) (found []spend) {
	for i := 1; i < len(f.spends); i++ {
		before, s := f.spends[i-1], f.spends[i]
		if int64(s.at-before.at)*limit < before.n*int64(window) {
			found = append(found, s)
		}
	}
	return found
}

// A fleet that wants all of a pace gets nearly all of it: passing a run on costs
// one way of a message, and a run is as long as those who wait can use it.
func TestFleetUsesAPace(t *testing.T) {
	for _, c := range []struct {
		rule             string
		limit            int64 // a second
		members, callers int
		work, oneWay     time.Duration
		least            float64
	}{
		{"10/1s pace", 10, 1, 1, 0, 0, 0.999},
		{"10/1s pace", 10, 1, 20, 0, 0, 0.999},
		{"10/1s pace", 10, 4, 5, 0, 0, 0.999},
		{"10/1s pace", 10, 1, 1, 0, 3 * ms, 0.99},
		{"10/1s pace", 10, 1, 1, 50 * ms, 3 * ms, 0.99},
		{"10/1s pace", 10, 1, 2, 150 * ms, 3 * ms, 0.99},
		{"10/1s pace", 10, 1, 20, 0, 3 * ms, 0.99},
		{"10/1s pace", 10, 4, 5, 0, 3 * ms, 0.98},
		{"10/1s pace", 10, 4, 1, 0, 3 * ms, 0.97},
		{"10/1s pace", 10, 20, 1, 0, 3 * ms, 0.97},
		{"100/1s pace", 100, 1, 1, 0, 3 * ms, 0.99},
		{"100/1s pace", 100, 1, 20, 0, 3 * ms, 0.99},
		{"100/1s pace", 100, 4, 5, 0, 3 * ms, 0.97},
		{"100/1s pace", 100, 4, 5, 20 * ms, 3 * ms, 0.97},
		{"1000/1s pace", 1000, 1, 20, 0, 3 * ms, 0.99},
		{"1000/1s pace", 1000, 4, 5, 0, 3 * ms, 0.97},
		{"10/1s pace, 4 concurrent", 10, 4, 5, 20 * ms, 3 * ms, 0.97},
	} {
		t.Run(fmt.Sprintf("%s, %d of %d, %v, %v", c.rule, c.members, c.callers, c.work, c.oneWay), func(t *testing.T) {
			f := newFleet("limits: [{key: k, rules: ["+c.rule+"]}]", 7)
			f.exact, f.oneWay = true, c.oneWay
			for i := range c.members {
				f.member(fmt.Sprint("m", i), "k", DefaultPoolConfig())
			}
			f.demandAll(c.callers, true, c.work)
			f.run(61 * time.Second)
			var in int64
			served := map[string]int{}
			for _, s := range f.spends {
				if s.at > time.Second {
					in += s.n
				}
			}
			var b Books
			for _, m := range f.members {
				balanced(t, m.pool.Books(), "at the end")
				b.Add(m.pool.Books())
				served[m.holder.Name] = int(m.pool.Books().Spent)
			}
			use := float64(in) / float64(60*c.limit)
			t.Logf("use %.4f, %d spends, %d requests, %d grants of %.1f, %d returned, %d expired, %d given up, %d refused, %d recalls; %v", use, in, b.Requests, b.Grants,
				float64(b.Granted)/float64(max(b.Grants, 1)), b.Returned, b.Expired, b.GivenUp, b.Refusals, b.Recalls, served)
			require.Empty(t, f.tooSoon(c.limit, time.Second))
			require.GreaterOrEqual(t, use, c.least)
			require.LessOrEqual(t, use, 1.001)
		})
	}
}
