package algo_test

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

// A million keys under three rules each have to fit.
func TestWindowIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(algo.Window{}), uintptr(48))
	require.Equal(t, uintptr(16), unsafe.Sizeof(algo.Mark{}))
}

func TestMarksAreBoundedWhateverTheLimit(t *testing.T) {
	for _, text := range []string{"1000/1s", "2000/1s", "100000/1s", "1000000000000000/1s", "100000/3s"} {
		t.Run(text, func(t *testing.T) {
			w := exact(t, text).Window(at)
			random := seeded(1)
			now, most := at, 0
			for step := range 30_000 {
				now = now.Add(time.Duration(random.Int64N(int64(200 * time.Microsecond))))
				if w.Free(now) > 0 {
					w.Take(now, 1)
					w.Settle(now, 1, now.Add(-time.Duration(random.Int64N(int64(ms)))))
				}
				if step%100 == 0 {
					most = max(most, len(w.State(now).Marks))
				}
			}
			require.LessOrEqual(t, most, 2049)
			require.GreaterOrEqual(t, most, 1000)
		})
	}
}

// A mark that is recorded stays where it is, however many follow: a wait once
// told holds.
func TestRecordedMarksNeverMove(t *testing.T) {
	w := exact(t, "100000/1s").Window(at)
	now := at
	for step := range 4000 {
		before := w.State(now)
		w.Take(now, 1)
		w.Settle(now, 1, now)
		left := map[algo.Instant]int64{}
		for _, m := range w.State(now).Marks {
			left[m.At] = m.N
		}
		for _, m := range before.Marks {
			if left[m.At] < m.N {
				require.Failf(t, "moved", "step %d: %d at %d, %d left", step, m.N, m.At, left[m.At])
			}
		}
		now = now.Add(300 * time.Microsecond)
	}
}

// Dating marks up to a grid costs no more than a part in 1,024.
func TestUseWithManyMarksIsAtLeast99Percent(t *testing.T) {
	for _, c := range []struct {
		limit int64
		// demand is how much is asked for, in hundredths of the limit.
		demand int64
	}{{5000, 95}, {5000, 100}, {5000, 130}, {20000, 100}, {20000, 1000}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			w := exact(t, fmt.Sprintf("%d/1s", c.limit)).Window(at)
			gap := int64(time.Second) * 100 / (c.limit * c.demand)
			random := seeded(1)
			var granted, asked int64
			end := at.Add(6 * time.Second)
			for now := at; now < end; now = now.Add(time.Duration(random.Int64N(2*gap) + 1)) {
				counts := now >= at.Add(time.Second)
				if counts {
					asked++
				}
				if w.Free(now) > 0 {
					w.Take(now, 1)
					w.Settle(now, 1, now)
					if counts {
						granted++
					}
				}
			}
			possible := min(asked, 5*c.limit)
			use := float64(granted) / float64(possible)
			t.Logf("use %.4f: %d of %d", use, granted, possible)
			require.GreaterOrEqual(t, use, 0.99)
		})
	}
}

// Dates go up on the grid, never down: an upstream that counts exactly is never
// over, though the window was used to the last token.
func TestGridIsAgainstTheCaller(t *testing.T) {
	w := exact(t, "3000/1s").Window(at)
	random := seeded(1)
	var spends []spend
	for now := at; now < at.Add(3*time.Second); now = now.Add(time.Duration(random.Int64N(int64(200 * time.Microsecond)))) {
		if w.Free(now) > 0 {
			w.Take(now, 1)
			w.Settle(now, 1, now)
			spends = append(spends, spend{int64(now), 1})
		}
	}
	require.Equal(t, int64(3000), mostTrailing(spends, int64(time.Second)))
}

// A sliding window that was used once, or is at rest again, keeps no list of
// marks: most of a million keys are such.
func TestTheOnlyMarkTakesNoRoom(t *testing.T) {
	spec := exact(t, "100/1s")
	now := at
	w := spec.Window(now)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		now = now.Add(time.Second)
		w.Take(now, 2)
		w.Settle(now, 2, now)
	}))
	require.Equal(t, []algo.Mark{{At: now, N: 2}}, w.State(now).Marks)
	again := spec.Restore(w.State(now))
	require.Equal(t, w.State(now), again.State(now))
	for range 50 {
		now = now.Add(ms)
		again.Take(now, 1)
		again.Settle(now, 1, now)
	}
	require.Len(t, again.State(now).Marks, 51)
	require.True(t, again.Idle(now.Add(time.Second)))
	require.Equal(t, spec.Window(now.Add(time.Second)), again, "as one never used")
}

// A pace remembers one instant, however much was spent.
func TestPaceKeepsNoMarks(t *testing.T) {
	w := exact(t, "1000000/1s pace").Window(at)
	for step := range time.Duration(10_000) {
		now := at.Add(step * 2 * time.Microsecond)
		require.Equal(t, int64(1_000_000), w.Free(now))
		w.Take(now, 2)
		w.Settle(now, 1, now)
		w.Settle(now.Add(time.Microsecond), 1, now.Add(time.Microsecond))
		require.Empty(t, w.State(now).Marks)
	}
}
