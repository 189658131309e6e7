package worker

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// bootable gives a clock whose boot-time clock is ahead by what is stored.
func bootable(ahead *time.Duration) *clock {
	c := newClock(true)
	c.boot = func() (time.Duration, bool) { return time.Since(c.base) + *ahead, true }
	return c
}

func TestASuspendSetsTheClockForwardAndIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead time.Duration
		c := bootable(&ahead)
		time.Sleep(time.Second)
		require.Equal(t, time.Second, c.now())
		require.Zero(t, c.suspends.Load())
		ahead = 30 * time.Second
		time.Sleep(lookEvery)
		require.Equal(t, time.Second+lookEvery, c.now(), "a look is not stale for its first millisecond")
		time.Sleep(time.Nanosecond)
		require.Equal(t, 31*time.Second+lookEvery+1, c.now())
		require.EqualValues(t, 1, c.suspends.Load())
		ahead = 0
		time.Sleep(time.Second)
		require.Equal(t, 32*time.Second+lookEvery+1, c.now(), "it never steps back")
		require.EqualValues(t, 1, c.suspends.Load())
	})
}

// A pause between the readings of the two clocks may not set the clock forward:
// spends would be dated early.
func TestAPauseWithinALookDoesNotSetTheClockForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(true)
		c.boot = func() (time.Duration, bool) {
			boot := time.Since(c.base)
			time.Sleep(5 * time.Second)
			return boot, true
		}
		time.Sleep(time.Second)
		c.now()
		require.Zero(t, c.ahead.Load())
	})
}

func TestUnixTimeOfASpendFollowsTheElapsedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(true)
		time.Sleep(90 * time.Second)
		require.Equal(t, time.Now().UnixNano(), c.unix(c.now()))
	})
}

func TestTheRealClocksAgreeWhileAwake(t *testing.T) {
	c := newClock(false)
	before := time.Since(c.base)
	now := c.now()
	require.GreaterOrEqual(t, now, before)
	require.Zero(t, c.suspends.Load())
}

func TestASuspendedWorkerTakesANewIncarnation(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1s, 2 concurrent]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		var ahead atomic.Int64
		w.clock.boot = func() (time.Duration, bool) {
			return time.Since(w.clock.base) + time.Duration(ahead.Load()), true
		}
		h, err := w.Limiter("k").Acquire(t.Context(), 1)
		require.NoError(t, err)
		old := w.Holder()
		ahead.Store(int64(20 * time.Second))
		<-h.Context().Done()
		require.NotEqual(t, old, w.Holder())
		next, err := w.Limiter("k").Acquire(t.Context(), 1)
		require.NoError(t, err)
		next.Finish()
		s.end(t, w)
	})
}
