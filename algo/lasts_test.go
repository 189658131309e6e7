package algo_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

// TestFullWindowIsFullUntilThenAndFreeInTheEnd, for every kind, whether that instant is
// to come or long past; and what is remembered of a spend lasts no longer than Lasts.
func TestFullWindowIsFullUntilThenAndFreeInTheEnd(t *testing.T) {
	const now = algo.Instant(1_800_000_001_500_000_000) // on no boundary
	for _, text := range []string{
		"10/1s", "10/1h", "10/1m fixed", "10/1d fixed tz=Europe/Berlin", "10/1mo fixed", "10/1s bucket", "10/1m bucket burst=50",
		"10/1s counter", "10/1s pace", "4 concurrent",
	} {
		for _, guard := range []time.Duration{0, 50 * time.Millisecond} {
			r, err := algo.ParseRule(text)
			require.NoError(t, err)
			spec := algo.Compile(r, algo.Allowance{Guard: guard, PPM: 200})
			until := now.Add(5 * time.Second)
			w := spec.Full(now, until)
			require.Zero(t, w.Free(now), text)
			require.Zero(t, w.Free(until-1), text)
			require.Equal(t, spec.Max(), w.Free(until.Add(spec.Lasts())), text)
			require.True(t, w.Idle(until.Add(spec.Lasts())), text)

			past := spec.Full(now, now.Add(-spec.Lasts()-time.Second))
			require.Equal(t, spec.Max(), past.Free(now), "%s: that was long ago", text)
			just := spec.Full(now, now-1)
			require.Equal(t, r.Kind == algo.Concurrent && guard == 0, just.Free(now) == spec.Max(), text)
		}
	}
}

// TestWithinIsNoLessThanWhatAWindowGrants: taking all there is, again and again, for a
// while.
func TestWithinIsNoLessThanWhatAWindowGrants(t *testing.T) {
	for _, text := range []string{"10/1s", "7/300ms fixed", "10/1s bucket burst=3", "20/1s counter", "10/1s pace", "4 concurrent"} {
		r, err := algo.ParseRule(text)
		require.NoError(t, err)
		spec := algo.Compile(r, algo.Allowance{})
		for _, lag := range []time.Duration{0, 100 * time.Millisecond, time.Second, 2500 * time.Millisecond} {
			w := spec.Window(0)
			var granted int64
			for at := algo.Instant(0); at <= algo.Instant(lag); at = at.Add(10 * time.Millisecond) {
				n := w.Free(at)
				if r.Kind == algo.Concurrent && granted > 0 {
					break // they are held
				}
				w.Take(at, n)
				if r.Kind != algo.Concurrent {
					w.Settle(at, n, at)
				}
				granted += n
			}
			require.GreaterOrEqual(t, spec.Within(lag), granted, "%s within %v", text, lag)
		}
	}
}
