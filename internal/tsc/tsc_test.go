package tsc_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/internal/tsc"
)

func TestASteadyCounterOnlyGrows(t *testing.T) {
	if !tsc.Steady() {
		t.Skip("this machine has no steady counter, and it is not used")
	}
	first, begun := tsc.Read(), time.Now()
	for last := first; time.Since(begun) < 5*time.Millisecond; {
		next := tsc.Read()
		require.GreaterOrEqual(t, next, last)
		last = next
	}
	require.Greater(t, tsc.Read(), first)
}

func TestNoCounterIsSteadyBesideAClockThatIsNotTheSystems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.False(t, tsc.Steady())
	})
}
