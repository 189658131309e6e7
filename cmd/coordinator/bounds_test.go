package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

// TestWorstCaseIsReachedAndNotExceeded takes as much as each rule gives, in the
// rhythm that suits it best, and looks at every window of the rule's period.
func TestWorstCaseIsReachedAndNotExceeded(t *testing.T) {
	const step = 10 * time.Millisecond
	for _, text := range []string{
		"5/1s", "12/3s", "10/1s fixed", "7/2s fixed", "10/1s bucket", "10/1s bucket burst=3", "10/1s bucket burst=50", "10/1s counter", "1/1s counter",
		"0/1s", "0/1s bucket", "0/1s counter", "0/1s pace",
	} {
		r, err := algo.ParseRule(text)
		require.NoError(t, err)
		want, _ := worst(r, 0)
		var most int64
		for first := time.Duration(0); first < r.Span(); first += step { // when the taker begins
			most = max(most, greedy(r, first, step))
		}
		// A bucket's last token in a window comes just as the window closes.
		slack := int64(0)
		if r.Kind == algo.Bucket && want > 0 {
			slack = 1
		}
		require.LessOrEqual(t, most, want, text)
		require.GreaterOrEqual(t, most, want-slack, text)
	}
}

// greedy takes all it can from first on and gives the most that a window saw.
func greedy(r algo.Rule, first, step time.Duration) (most int64) {
	w := algo.Compile(r, algo.Allowance{}).Window(0)
	span := r.Span()
	taken := map[algo.Instant]int64{}
	for at := algo.Instant(first); at < algo.Instant(first+3*span); at = at.Add(step) {
		if n := w.Free(at); n > 0 {
			w.Take(at, n)
			w.Settle(at, n, at)
			taken[at] = n
		}
	}
	for end := range taken {
		var sum int64
		for at, n := range taken {
			if at > end.Add(-span) && at <= end {
				sum += n
			}
		}
		most = max(most, sum)
	}
	return most
}

// TestWorstCaseOfAPaceIsReached calls one by one, and then with a last call that
// costs all.
func TestWorstCaseOfAPaceIsReached(t *testing.T) {
	for _, text := range []string{"10/1s pace", "1/1s pace", "3/1s pace"} {
		r, err := algo.ParseRule(text)
		require.NoError(t, err)
		want, _ := worst(r, 0)
		spec := algo.Compile(r, algo.Allowance{})
		w := spec.Window(0)
		var spent int64
		now := algo.Instant(0)
		for range r.Limit - 1 {
			require.Equal(t, r.Limit, w.Free(now), text)
			w.Take(now, 1)
			w.Settle(now, 1, now)
			spent++
			now = now.Add(spec.Gap())
		}
		require.True(t, now.Before(algo.Instant(r.Span())), text)
		require.Equal(t, want, spent+w.Free(now), text)
	}
}

func TestMemoryHasABoundWhateverTheLimit(t *testing.T) {
	small, err := algo.ParseRule("10/1d")
	require.NoError(t, err)
	large, err := algo.ParseRule("1000000000/1d")
	require.NoError(t, err)
	require.Less(t, memory(small, 0), memory(large, 0))
	require.Less(t, memory(large, 0), int64(70_000))
}

func TestGuardIsInTheBounds(t *testing.T) {
	bucket, err := algo.ParseRule("100/1m bucket burst=50")
	require.NoError(t, err)
	most, text := worst(bucket, 6*time.Second)
	require.Equal(t, int64(140), most)
	require.Equal(t, "at most 140 in any 1m: 40 at once and 100 more (the guard takes 10 of the burst)", text)
	pace, err := algo.ParseRule("10/1s pace")
	require.NoError(t, err)
	_, text = worst(pace, 50*time.Millisecond)
	require.Equal(t, "one call each 150ms, at most 10 in any 1s; 19 where calls cost more than 1", text)
	require.Equal(t, memory(pace, 0), memory(pace, time.Hour))
	for _, text := range []string{"1000/1s fixed", "1000/1s counter"} {
		r, err := algo.ParseRule(text)
		require.NoError(t, err)
		require.Less(t, memory(r, 0), memory(r, time.Millisecond))
		require.Less(t, memory(r, time.Millisecond), memory(r, 5*time.Second))
	}
}
