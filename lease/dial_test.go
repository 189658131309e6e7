package lease_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// fixedAt is a ledger under one limit that has looked at a wall clock which was right
// until a time after start. start is a full hour, and 8 o'clock.
func fixedAt(t testing.TB, after time.Duration, limit string) *lease.Ledger {
	l := newLedger(t, fmt.Sprintf("limits: [{key: k, %s}]", limit))
	l.Wall(start, start)
	l.Wall(start.Add(after), start.Add(after))
	require.Equal(t, lease.Dial{}, l.Dial())
	return l
}

// spendNow takes and spends one token after the other, at most so many, and tells how
// many, and the wait that the last was refused with.
func spendNow(t testing.TB, l *lease.Ledger, now algo.Instant, most int) (int, time.Duration) {
	for n := range most {
		nextSeq++
		r := ask("a", nextSeq, now, 0, "k")
		if a := turn(t, l, now, r).Answers[0].Answer; a.Outcome != lease.Granted {
			return n, a.Refusal.Wait
		}
		turn(t, l, now, spendsOne(r, now))
	}
	return most, 0
}

var nextSeq uint64

func TestWallClockIsFollowedAtOnceWhereNoBoundaryLiesBetween(t *testing.T) {
	now := start.Add(30 * time.Minute)
	for _, by := range []time.Duration{-30 * time.Minute, -time.Second, -1, 0, 1, time.Second, 30*time.Minute - 1} {
		t.Run(by.String(), func(t *testing.T) {
			l := fixedAt(t, 30*time.Minute, "rules: [10/1h fixed]")
			n, _ := spendNow(t, l, now, 4)
			require.Equal(t, 4, n)
			l.Wall(now, now.Add(by))
			require.Equal(t, by, l.Dial().Offset)
			require.Zero(t, l.Dial().Apart)
			require.Equal(t, lease.Clock{Offset: by}, l.Status(now, "").Clock)
			n, wait := spendNow(t, l, now, 9)
			require.Equal(t, 6, n, "the window is the same one")
			require.Equal(t, 30*time.Minute-by, wait)
			l.Wall(now.Add(wait-1), now.Add(wait-1+by))
			n, _ = spendNow(t, l, now.Add(wait-1), 1)
			require.Zero(t, n)
			l.Wall(now.Add(wait), now.Add(wait+by))
			n, _ = spendNow(t, l, now.Add(wait), 99)
			require.Equal(t, 10, n)
		})
	}
}

// A step passes a boundary: guards are wider by what it was, rounded up, until both
// clocks are in one period again.
func TestWallClockSetAheadPastABoundary(t *testing.T) {
	l := fixedAt(t, 50*time.Second, "rules: [10/1m fixed]")
	now := start.Add(50 * time.Second)
	n, _ := spendNow(t, l, now, 4)
	require.Equal(t, 4, n)
	look := func() { l.Wall(now, now.Add(20*time.Second)) }
	look()
	require.Equal(t, lease.Clock{Offset: time.Millisecond, Ahead: 20*time.Second - time.Millisecond, Wider: 32768 * time.Millisecond}, l.Status(now, "").Clock)
	// What is spent now counts in the minute of the calendar and in that of the wall clock.
	n, _ = spendNow(t, l, now, 3)
	require.Equal(t, 3, n)
	n, wait := spendNow(t, l, now.Add(8*time.Second), 99)
	require.Equal(t, 3, n)
	require.Equal(t, 62*time.Second+32768*time.Millisecond-time.Millisecond, wait)
	now = start.Add(60*time.Second - time.Millisecond)
	look() // both in one
	require.Equal(t, lease.Clock{Offset: 20 * time.Second}, l.Status(now, "").Clock)
	n, wait = spendNow(t, l, now, 99)
	require.Zero(t, n)
	require.Equal(t, 40*time.Second+time.Millisecond, wait)
	now = now.Add(wait)
	look()
	n, _ = spendNow(t, l, now, 99)
	require.Equal(t, 10, n)
}

func TestWallClockSetBackPastABoundary(t *testing.T) {
	l := fixedAt(t, 50*time.Second, "rules: [10/1m fixed]")
	n, _ := spendNow(t, l, start.Add(50*time.Second), 10)
	require.Equal(t, 10, n)
	now := start.Add(70 * time.Second)
	by := time.Duration(0)
	look := func() { l.Wall(now, now.Add(by)) }
	look()
	n, _ = spendNow(t, l, now, 3)
	require.Equal(t, 3, n)
	by = -20 * time.Second
	look()
	require.Equal(t, 32768*time.Millisecond, l.Dial().Apart)
	n, wait := spendNow(t, l, now, 99)
	require.Zero(t, n, "the minute before, which was full, is not opened twice")
	require.Greater(t, wait, 10*time.Second)
	now = now.Add(10*time.Second - 1)
	look()
	n, _ = spendNow(t, l, now, 99)
	require.Zero(t, n)
	now++
	look()
	n, _ = spendNow(t, l, now, 99)
	require.Equal(t, 7, n, "of the minute that both are in now")
	require.Equal(t, -20*time.Second, l.Dial().Offset)
}

// Where the clocks are never in one period calendar time runs by a thousandth faster,
// or slower, and never back.
func TestCalendarTimeSlewsByAThousandth(t *testing.T) {
	for _, by := range []time.Duration{-10 * time.Second, 10 * time.Second} {
		t.Run(by.String(), func(t *testing.T) {
			l := fixedAt(t, 0, "rules: [10/1s fixed]")
			sign, last, now := by/10/time.Second, start, start
			random := rand.New(rand.NewPCG(1, 1))
			for now.Sub(start) < 9000*time.Second {
				l.Wall(now, now.Add(by))
				turn(t, l, now)
				moved := l.Dial().Offset
				most := now.Sub(start) / 1000
				require.LessOrEqual(t, sign*moved, most)
				require.Greater(t, sign*moved, most-most/100-10*time.Millisecond)
				require.GreaterOrEqual(t, l.Dial().Apart, (by-moved)*sign)
				require.LessOrEqual(t, l.Dial().Apart, 5*(by-moved)*sign)
				require.Greater(t, now.Add(moved)+1, last)
				last = now.Add(moved)
				now = now.Add(time.Duration(1 + random.Int64N(int64(900*time.Millisecond))))
			}
			for range 1200 {
				now = now.Add(time.Second)
				l.Wall(now, now.Add(by))
			}
			require.Equal(t, lease.Clock{Offset: by}, l.Status(now, "").Clock)
		})
	}
}

// A leader that slept for an hour may not make up for it in one look.
func TestSlewingIsNotSavedUp(t *testing.T) {
	l := fixedAt(t, 3600*time.Second, "rules: [10/1s fixed]")
	now := start.Add(2 * time.Hour)
	l.Wall(now, now.Add(10*time.Second))
	require.Equal(t, time.Millisecond, l.Dial().Offset)
}

// Two readings of clocks that differ by a little are no step: no guard is wider, also at
// a boundary.
func TestUnsteadyReadingsWidenNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, limit := range []string{"rules: [10/10ms fixed]", "rules: [10/10ms fixed], guard: 50ms"} {
		l := fixedAt(t, time.Second, limit)
		now := start.Add(time.Second)
		for range 100_000 {
			now = now.Add(time.Duration(random.Int64N(int64(time.Millisecond))))
			l.Wall(now, now.Add(time.Duration(random.Int64N(200)-100)))
			require.Zero(t, l.Dial().Apart)
		}
	}
}

func TestGuardsGrowCoarsely(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ d, was, want time.Duration }{
		{0, 0, 0}, {0, ms, 0}, {1, 0, ms}, {-1, 0, ms}, {ms, 0, ms}, {ms + 1, 0, 2 * ms}, {-3 * ms, 0, 4 * ms},
		{ms + 1, 4 * ms, 4 * ms}, {ms, 4 * ms, ms}, {1, ms, ms}, {5 * ms, 4 * ms, 8 * ms}, {2000 * ms, 0, 2048 * ms},
		{math.MaxInt64, 0, ms << 38}, {math.MinInt64, 0, ms << 38},
	} {
		require.Equal(t, c.want, lease.Apart(c.d, c.was), "%v after %v", c.d, c.was)
	}
}

// A guard is there for calls that arrive late: near a boundary that is in its reach
// the calendar does not jump.
func TestBoundaryWithinAGuardIsNotJumpedNear(t *testing.T) {
	for guard, jumps := range map[time.Duration]bool{0: true, 4 * time.Second: true, 5 * time.Second: false, 11 * time.Second: false} {
		l := fixedAt(t, 10*time.Second, fmt.Sprintf("rules: [10/1m fixed], guard: %s", guard))
		now := start.Add(10 * time.Second)
		l.Wall(now, start.Add(55*time.Second))
		require.Equal(t, jumps, l.Dial().Apart == 0, guard)
	}
}

// Which steps pass a boundary is for months and zones to say: clocks are set forward
// at 2 o'clock on 28 March 2027 in Berlin.
func TestBoundariesAreThoseOfMonthsAndZones(t *testing.T) {
	for _, c := range []struct {
		rule     string
		from, to string
		jumps    bool
	}{
		{"1/1mo fixed", "2027-01-31 10:00:00", "2027-01-01 00:00:00", true},
		{"1/1mo fixed", "2027-01-31 10:00:00", "2027-02-01 00:00:00", false},
		{"1/1mo fixed tz=Europe/Berlin", "2027-01-31 22:00:00", "2027-01-31 23:00:00", false},
		{"1/1mo fixed tz=Europe/Berlin", "2027-03-31 21:00:00", "2027-03-31 21:59:59", true},
		{"1/1mo fixed tz=Europe/Berlin", "2027-03-31 21:00:00", "2027-03-31 22:00:00", false},
		{"1/1w fixed", "2027-01-15 08:00:00", "2027-01-17 23:59:59", true},
		{"1/1w fixed", "2027-01-15 08:00:00", "2027-01-18 00:00:00", false},
		{"1/1d fixed tz=Europe/Berlin", "2027-03-27 23:00:00", "2027-03-28 21:59:59", true},
		{"1/1d fixed tz=Europe/Berlin", "2027-03-27 23:00:00", "2027-03-28 22:00:00", false},
		{"1/1h fixed tz=Europe/Berlin", "2027-10-31 00:30:00", "2027-10-31 01:30:00", true}, // one hour, shown twice
		{"1/1h fixed tz=Europe/Berlin", "2027-10-31 00:30:00", "2027-10-31 02:00:00", false},
		{"1/1d fixed, 1/1h fixed", "2027-01-15 08:30:00", "2027-01-15 09:30:00", false},
		{"100/1h, 5/1h pace", "2027-01-15 08:30:00", "2037-01-15 09:30:00", true},
	} {
		l := newLedger(t, fmt.Sprintf("limits: [{key: other, rules: [1/1h]}, {key: k, rules: [%s]}]", c.rule))
		from, to := utc(t, c.from), utc(t, c.to)
		l.Wall(from, from)
		l.Wall(from, to)
		require.Equal(t, c.jumps, l.Dial().Apart == 0, "%+v", c)
		require.Equal(t, c.jumps, l.Dial().Offset == to.Sub(from), "%+v", c)
		require.GreaterOrEqual(t, l.Dial().Apart+l.Dial().Offset, to.Sub(from), "%+v", c)
	}
}

func utc(t testing.TB, text string) algo.Instant {
	at, err := time.Parse(time.DateTime, text)
	require.NoError(t, err)
	return algo.Instant(at.UnixNano())
}

// Calendar time is for fixed rules alone.
func TestOtherRulesDoNotKnowTheWallClock(t *testing.T) {
	for _, rule := range []string{"10/1m", "10/1m bucket", "10/1m counter", "10/1m pace"} {
		text := fmt.Sprintf("limits: [{key: k, rules: [%s]}, {key: j, rules: [1/1s fixed]}]", rule)
		l, plain := newLedger(t, text), newLedger(t, fmt.Sprintf("limits: [{key: k, rules: [%s]}]", rule))
		random := rand.New(rand.NewPCG(1, 1))
		for now := start; now.Sub(start) < 3*time.Minute; now = now.Add(time.Second) {
			l.Wall(now, now.Add(time.Duration(random.Int64N(int64(time.Hour)))))
			n, _ := spendNow(t, l, now, 99)
			want, _ := spendNow(t, plain, now, 99)
			require.Equal(t, want, n, rule)
		}
	}
}

// A wall clock that is right costs nothing.
func TestLookingAtARightWallClockAllocatesNothing(t *testing.T) {
	l := fixedAt(t, 0, "rules: [10/1m fixed, 10/1d fixed tz=Europe/Berlin]")
	now := start
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		now = now.Add(time.Second)
		l.Wall(now, now)
	}))
}
