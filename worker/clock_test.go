package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/internal/tsc"
)

// bootable gives a clock whose boot-time clock is ahead by what is stored.
func bootable(ahead *time.Duration) *clock {
	c := newClock(nil)
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
		c := newClock(nil)
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

// A clock whose making was interrupted between the readings of its two clocks is
// neither ahead, or spends would be dated early, nor blind to later suspends, or
// it would spend after its deadline.
func TestAPauseWhileTheClockIsMadeChangesNothing(t *testing.T) {
	for _, pauses := range [][2]time.Duration{{5 * time.Second, 0}, {0, 5 * time.Second}, {3 * time.Second, 4 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			begun, slept, first := time.Now(), time.Hour, true // awake for an hour before
			c := newClock(func() (time.Duration, bool) {
				if first {
					time.Sleep(pauses[0])
				}
				at := time.Since(begun) + slept
				if first {
					time.Sleep(pauses[1])
				}
				first = false
				return at, true
			})
			elapsed := func() time.Duration { time.Sleep(lookEvery + 1); return c.now() }
			require.Equal(t, elapsed(), time.Since(begun), "pauses of %s", pauses)
			require.Zero(t, c.suspends.Load())
			slept += 2 * time.Second
			require.Equal(t, elapsed(), time.Since(begun)+2*time.Second, "pauses of %s", pauses)
			require.EqualValues(t, 1, c.suspends.Load())
		})
	}
}

// A look that was interrupted sees a suspend in full all the same, and gives no
// reading from before the interruption.
func TestAPauseWithinALookHidesNoSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead, pause time.Duration
		c := newClock(nil)
		c.boot = func() (time.Duration, bool) {
			at := time.Since(c.base) + ahead
			time.Sleep(pause)
			pause = 0
			return at, true
		}
		ahead, pause = 30*time.Second, 10*time.Second
		time.Sleep(time.Second)
		require.Equal(t, 41*time.Second, c.now())
	})
}

// Where every reading is interrupted, the clock errs to the side of not setting
// itself forward: here by as much as it can be misled.
func TestAClockThatIsInterruptedAtEachReadingIsNotAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, n := time.Now(), 0
		c := newClock(func() (time.Duration, bool) {
			made := n >= readings
			n++
			if made {
				time.Sleep(2 * time.Millisecond)
				return time.Since(begun), true
			}
			at := time.Since(begun)
			time.Sleep(2 * time.Millisecond)
			return at, true
		})
		require.Equal(t, readings, n)
		for range 100 {
			time.Sleep(2 * lookEvery)
			require.Equal(t, c.now(), time.Since(begun))
		}
		require.Greater(t, n, readings)
		require.Zero(t, c.ahead.Load())
	})
}

func TestUnixTimeOfASpendFollowsTheElapsedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(nil)
		time.Sleep(90 * time.Second)
		require.Equal(t, time.Now().UnixNano(), c.unix(c.now()))
	})
}

func TestTheRealClocksAgreeWhileAwake(t *testing.T) {
	c := newClock(bootTime)
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

// The machine sleeps for a quarter of an hour while its worker has tokens at
// hand. The clock that Allow is judged by stood still meanwhile, and so did the
// lessor's; nothing of the old lease is spent.
func TestNothingHeldBeforeASuspendIsSpentAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(generous(1000), DefaultConfig())
		require.NoError(t, err)
		defer func() { require.NoError(t, w.Close(context.Background())) }()
		var ahead atomic.Int64
		w.clock.origin = 0
		w.clock.boot = func() (time.Duration, bool) {
			return time.Since(w.clock.base) + time.Duration(ahead.Load()), true
		}
		l := w.Limiter("k")
		require.NoError(t, l.Wait(t.Context()))
		require.True(t, l.AllowN(10), "999 are at hand")
		ahead.Store(int64(15 * time.Minute))
		time.Sleep(lookEvery + 1) // within that nothing is promised
		require.False(t, l.AllowN(15))
		synctest.Wait()
		require.EqualValues(t, 11, w.Stats().Spent)
		require.EqualValues(t, 989, w.Stats().Expired, "counted as spent by who granted them")
		require.NoError(t, l.Wait(t.Context()), "of a new lease")
		time.Sleep(time.Second) // it is dated by now
		require.EqualValues(t, 12, w.Stats().Spent)
	})
}

// steady gives a clock that trusts the processor's counter, which read first when
// it was made.
func steady(first uint64) *clock {
	c := newClock(nil)
	c.steady, c.first = true, first
	return c
}

func TestTheCounterIsSureForAMillisecondAfterALook(t *testing.T) {
	const first, rate = 1 << 60, 3 // ticks a nanosecond
	ticks := func(at time.Duration) uint64 { return first + rate*uint64(at) }
	c := steady(first)
	require.False(t, c.surely(ticks(time.Second), Forever), "it has not been compared yet")
	c.count(ticks(time.Second), time.Second)
	last := time.Second + lookEvery
	for _, at := range []time.Duration{time.Second, time.Second + lookEvery/2, last - 1} {
		require.True(t, c.surely(ticks(at), last+1), at)
		require.False(t, c.surely(ticks(at), last), "it may be so late already")
	}
	require.False(t, c.surely(ticks(last), Forever), "the next look is due")
	require.False(t, c.surely(ticks(last+time.Hour), Forever), "it was set forward, or nobody looked")
	require.False(t, c.surely(ticks(time.Second-1), Forever), "it was set back")
	require.False(t, c.surely(0, Forever), "it started anew")
}

// A look that was interrupted between its readings, and a counter that was set
// while it was compared, leave it sure of less time, or of little more.
func TestACounterThatWasComparedBadlyIsNotSureForLong(t *testing.T) {
	c := steady(100)
	c.count(100+2e6, 2*time.Millisecond) // 1 a nanosecond
	c.count(100+4e6, 9*time.Millisecond) // 4 ms, and a pause of 5 before the clock was read
	require.EqualValues(t, lookEvery, c.span.Load(), "a pause makes it no longer")
	c.count(100+12e6, 10*time.Millisecond+counted)
	require.EqualValues(t, lookEvery, c.span.Load(), "it is compared once")
	for _, at := range []uint64{0, 99, 1 << 63} {
		c := steady(100)
		c.count(at, 2*time.Millisecond)
		require.LessOrEqual(t, c.span.Load(), int64(fastest*float64(lookEvery)))
	}
}

// Two look at once, and the later one is done first: what the earlier one notes
// makes nothing sure that is not.
func TestAnEarlierLookThatEndsLaterMakesNothingSure(t *testing.T) {
	c := steady(0)
	c.count(1e9, time.Second)
	c.count(5e9, 5*time.Second)
	c.count(4e9, 4*time.Second)
	require.False(t, c.surely(4e9, 5*time.Second))
	require.False(t, c.surely(5e9, Forever))
}

func TestTheRealCounterIsNeverSureOfWhatHasPassed(t *testing.T) {
	c := newClock(bootTime)
	sure := 0
	for range 1_000_000 {
		passed := c.now()
		ticks := tsc.Read()
		require.False(t, c.surely(ticks, passed))
		if c.surely(ticks, Forever) {
			sure++
		}
	}
	require.Equal(t, c.steady, sure > 0)
}

func TestACounterIsNotTrustedBesideAClockThatIsNotTheSystems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(nil)
		time.Sleep(2 * lookEvery)
		c.now()
		require.False(t, c.surely(tsc.Read(), Forever))
		require.True(t, c.before(3*lookEvery))
		time.Sleep(lookEvery)
		require.False(t, c.before(3*lookEvery))
	})
}
