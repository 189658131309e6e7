package algo_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

// paced drives a pace as a fleet does: a run is spent call by call, a gap after the
// one before it or later, some of it goes back, and what was spent is told of late,
// in pieces, dated at the spend or after it.
func paced(w *algo.Window, spec *algo.Spec, random *rand.Rand) (spends []spend) {
	now, gap := at, int64(spec.Gap())
	for range 200 {
		now = now.Add(time.Duration(random.Int64N(gap) * random.Int64N(2)))
		free := w.Free(now)
		if free == 0 {
			wait, _ := w.Wait(now, 1, nil)
			now = now.Add(wait)
			continue
		}
		left := 1 + random.Int64N(free)
		w.Take(now, left)
		type told struct{ n, dated int64 }
		var tell []told
		next := int64(now) + random.Int64N(gap)*random.Int64N(2)
		for left > 0 && random.Int64N(8) > 0 {
			n := min(left, 1+random.Int64N(3)*random.Int64N(2))
			spends = append(spends, spend{next, n})
			tell = append(tell, told{n, next + random.Int64N(gap)*random.Int64N(2)})
			left -= n
			next += n*gap + random.Int64N(gap)*random.Int64N(2)
		}
		for i := range tell {
			j := i + int(random.Int64N(int64(len(tell)-i)))
			tell[i], tell[j] = tell[j], tell[i]
			now = max(now, algo.Instant(tell[i].dated)).Add(time.Duration(random.Int64N(gap) * random.Int64N(2)))
			w.Settle(now, tell[i].n, algo.Instant(tell[i].dated))
		}
		w.Return(now, left)
	}
	return spends
}

func TestRunsOfAPaceKeepItsGapsBetweenThem(t *testing.T) {
	for _, c := range []struct {
		rule          string
		allowance     algo.Allowance
		limit, period int64
	}{
		{"10/1s pace", algo.Allowance{}, 10, int64(time.Second)},
		{"3/7ns pace", algo.Allowance{}, 3, 7},
		{"7/1s pace", algo.Allowance{PPM: 200}, 7, int64(time.Second)},
		{"5/1m pace", algo.Allowance{Guard: 2 * time.Second}, 5, int64(time.Minute)},
	} {
		t.Run(fmt.Sprint(c.rule, c.allowance), func(t *testing.T) {
			spec := algo.Compile(must(t, c.rule), c.allowance)
			for seed := range uint64(30) {
				w := spec.Window(at)
				spends := paced(&w, spec, seeded(seed))
				require.NotEmpty(t, spends)
				require.False(t, tooSoon(spends, c.limit, c.period), "seed %d", seed)
				if ppm := c.allowance.PPM; ppm > 0 { // one less, since growing and slowing are no inverses
					require.False(t, tooSoon(slow(spends, ppm-1), c.limit, c.period), "seed %d", seed)
				}
				if guard := int64(c.allowance.Guard); guard > 0 {
					require.False(t, tooSoon(late(spends, guard), c.limit, c.period), "seed %d", seed)
				}
			}
		})
	}
}
