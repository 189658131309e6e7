package algo_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// naive decides as a rule says, from nothing but the list of spends.
type naive struct {
	spends []spend
	// free gives what is free at an instant.
	free func(spends []spend, now int64) int64
	// instants gives all at which something may come back.
	instants func(spends []spend, now int64) []int64
}

// wait tries all instants, and gives the first at which n are free.
func (k naive) wait(now, n int64) (int64, bool) {
	if k.free(k.spends, now) >= n {
		return 0, true
	}
	best, found := int64(0), false
	for _, then := range k.instants(k.spends, now) {
		if then > now && (!found || then < best) && k.free(k.spends, then) >= n {
			best, found = then, true
		}
	}
	return best - now, found
}

func naiveSliding(limit, width int64) naive {
	return naive{
		free: func(spends []spend, now int64) int64 {
			left := limit
			for _, s := range spends {
				if now-s.at < width {
					left -= s.n
				}
			}
			return left
		},
		instants: func(spends []spend, _ int64) []int64 {
			var all []int64
			for _, s := range spends {
				all = append(all, s.at+width)
			}
			return all
		},
	}
}

func naiveDay(limit int64) naive {
	midnight := func(now int64) int64 {
		year, month, day := time.Unix(0, now).UTC().Date()
		return time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC).UnixNano()
	}
	return naive{
		free: func(spends []spend, now int64) int64 {
			left := limit
			for _, s := range spends {
				if midnight(s.at) == midnight(now) {
					left -= s.n
				}
			}
			return left
		},
		instants: func(_ []spend, now int64) []int64 { return []int64{midnight(now)} },
	}
}

// naiveFixed counts each spend in all periods that it reaches under a guard, one
// by one.
func naiveFixed(limit, period, guard int64) naive {
	return naive{
		free: func(spends []spend, now int64) int64 {
			var most int64
			for k := floorDiv(now-guard, period); k <= floorDiv(now+guard, period); k++ {
				var sum int64
				for _, s := range spends {
					if floorDiv(s.at-guard, period) <= k && k <= floorDiv(s.at+guard, period) {
						sum += s.n
					}
				}
				most = max(most, sum)
			}
			return limit - most
		},
		instants: func(_ []spend, now int64) []int64 {
			var all []int64
			for k := floorDiv(now-guard, period); k <= floorDiv(now+guard, period); k++ {
				all = append(all, (k+1)*period+guard)
			}
			return all
		},
	}
}

// naiveCounter estimates for each spend as if it were a guard later, and for who
// asks as if it were a guard earlier. The instants are all there are.
func naiveCounter(limit, period, guard int64) naive {
	return naive{
		free: func(spends []spend, now int64) int64 {
			k := floorDiv(now-guard, period)
			var prev, curr int64
			for _, s := range spends {
				switch in := floorDiv(s.at+guard, period); {
				case in >= k:
					curr += s.n
				case in == k-1:
					prev += s.n
				}
			}
			left := big.NewInt(prev * ((k+1)*period - now + guard))
			fading, rest := new(big.Int).DivMod(left, big.NewInt(period), new(big.Int))
			if rest.Sign() > 0 {
				curr++
			}
			return limit - curr - fading.Int64()
		},
		instants: func(_ []spend, now int64) []int64 {
			var all []int64
			for then := now; then <= now+2*period+2*guard; then++ {
				all = append(all, then)
			}
			return all
		},
	}
}

// naivePace counts, exactly, how long after each spend the next may be.
func naivePace(limit, period, guard int64) naive {
	ready := func(s spend) int64 {
		gaps := big.NewInt(s.n)
		gaps.Mul(gaps, big.NewInt(period)).Add(gaps, big.NewInt(limit-1)).Div(gaps, big.NewInt(limit))
		return s.at + gaps.Int64() + s.n*guard
	}
	return naive{
		free: func(spends []spend, now int64) int64 {
			for _, s := range spends {
				if now < ready(s) {
					return 0
				}
			}
			return limit
		},
		instants: func(spends []spend, _ int64) []int64 {
			var all []int64
			for _, s := range spends {
				all = append(all, ready(s))
			}
			return all
		},
	}
}

// naiveBucket keeps the level as a fraction.
func naiveBucket(limit, burst, period int64) naive {
	rate := big.NewRat(limit, period)
	level := func(spends []spend, now int64) *big.Rat {
		full := big.NewRat(burst, 1)
		level, last := full, int64(0)
		for _, s := range append(spends[:len(spends):len(spends)], spend{now, 0}) {
			level = new(big.Rat).Add(level, new(big.Rat).Mul(rate, big.NewRat(s.at-last, 1)))
			if level.Cmp(full) > 0 {
				level = full
			}
			level = new(big.Rat).Sub(level, big.NewRat(s.n, 1))
			last = s.at
		}
		return level
	}
	return naive{
		free: func(spends []spend, now int64) int64 {
			l := level(spends, now)
			return new(big.Int).Div(l.Num(), l.Denom()).Int64()
		},
		// At each whole token: the least t with level + rate*t >= that many.
		instants: func(spends []spend, now int64) []int64 {
			var all []int64
			l := level(spends, now)
			for n := range burst + 1 {
				short := new(big.Rat).Quo(new(big.Rat).Sub(big.NewRat(n, 1), l), rate)
				up, rem := new(big.Int).DivMod(short.Num(), short.Denom(), new(big.Int))
				if rem.Sign() > 0 {
					up.Add(up, big.NewInt(1))
				}
				all = append(all, now+up.Int64())
			}
			return all
		},
	}
}

// Where everything is spent in the instant it is taken, windows decide as the
// naive list does, and tell the same waits: neither more nor less is granted.
func TestDecisionsAreThoseOfANaiveList(t *testing.T) {
	second := int64(time.Second)
	for name, c := range map[string]struct {
		rule  string
		naive naive
		scale int64
		guard time.Duration
	}{
		"2/10s":         {"2/10s", naiveSliding(2, 10*second), 10 * second, 0},
		"7/1s":          {"7/1s", naiveSliding(7, second), second, 0},
		"day":           {"5/1d fixed", naiveDay(5), 86400 * second, 0},
		"bucket":        {"10/13s bucket burst=4", naiveBucket(10, 4, 13*second), 5 * second, 0},
		"bucket 3/7ns":  {"3/7ns bucket burst=5", naiveBucket(3, 5, 7), 9, 0},
		"bucket 1/hour": {"1/1h bucket burst=1", naiveBucket(1, 1, 3600*second), 3600 * second, 0},
		"fixed":         {"5/1m fixed", naiveFixed(5, 60*second, 0), 60 * second, 0},
		"fixed, guard":  {"5/1m fixed", naiveFixed(5, 60*second, 7*second), 60 * second, 7 * time.Second},
		"fixed, half":   {"5/1m fixed", naiveFixed(5, 60*second, 30*second), 60 * second, 30 * time.Second},
		"fixed, wide":   {"5/1m fixed", naiveFixed(5, 60*second, 200*second), 200 * second, 200 * time.Second},
		"counter":       {"7/50ns counter", naiveCounter(7, 50, 0), 70, 0},
		"counter 1":     {"1/20ns counter", naiveCounter(1, 20, 0), 30, 0},
		"counter, near": {"7/50ns counter", naiveCounter(7, 50, 3), 70, 3},
		"pace":          {"3/1s pace", naivePace(3, second, 0), second, 0},
		"pace 3/7ns":    {"3/7ns pace", naivePace(3, 7, 0), 9, 0},
		"pace, guard":   {"5/1m pace", naivePace(5, 60*second, 7*second), 60 * second, 7 * time.Second},
		"counter, wide": {"7/50ns counter", naiveCounter(7, 50, 80), 70, 80},
	} {
		t.Run(name, func(t *testing.T) {
			spec := guarded(t, c.rule, c.guard)
			for seed := range uint64(12) {
				random := seeded(seed)
				list := c.naive
				w := spec.Window(at)
				now := at
				for step := range 60 {
					where := fmt.Sprintf("seed %d, step %d", seed, step)
					now = now.Add(time.Duration(random.Int64N(c.scale / (1 + random.Int64N(8)))))
					free := list.free(list.spends, int64(now))
					require.Equal(t, free, w.Free(now), where)
					for n := range spec.Max() + 1 {
						want, possible := list.wait(int64(now), n)
						got, ok := w.Wait(now, n, nil)
						require.Equal(t, possible, ok, "%s, n %d", where, n)
						require.Equal(t, want, int64(got), "%s, n %d", where, n)
					}
					if n := random.Int64N(spec.Max() + 1); n > 0 && n <= free {
						list.spends = append(list.spends, spend{int64(now), n})
						w.Take(now, n)
						w.Settle(now, n, now)
					}
				}
				require.NotEmpty(t, list.spends, "seed %d", seed)
			}
		})
	}
}
