package lease_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// The upstream counts by true time, and so does the wall clock from a step on; the
// ledger's calendar is 2 s off.
func TestLagOfTheCalendarIsInTheGuard(t *testing.T) {
	for _, off := range []time.Duration{-2 * time.Second, 2 * time.Second} {
		for _, stuck := range []bool{false, true} {
			t.Run(fmt.Sprint(off, stuck), func(t *testing.T) {
				limit := "rules: [10/1m fixed]"
				if stuck { // a boundary in each second: it can but slew
					limit = "rules: [10/1m fixed, 1000000/1s fixed]"
				}
				l := fixedAt(t, 59*time.Second, limit)
				upstream, sent := map[int64]int{}, 0
				for now := start.Add(59 * time.Second); now.Sub(start) < 30*time.Minute; now = now.Add(100 * time.Millisecond) {
					l.Wall(now, now.Add(off))
					n, _ := spendNow(t, l, now, 99)
					upstream[int64(now.Add(off).Sub(0)/time.Minute)] += n
					sent += n
				}
				for minute, n := range upstream {
					require.LessOrEqual(t, n, 10, minute)
				}
				require.Greater(t, sent, 130)
			})
		}
	}
}

// While calendar time runs slow or fast, waiting as long as it was told works.
func TestWaitWorksWhileCalendarTimeSlews(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for range 300 {
		by := time.Duration(random.Int64N(int64(10*time.Second))) - 5*time.Second
		l := fixedAt(t, 0, fmt.Sprintf("rules: [10/2s fixed, 20/1m fixed], guard: %dms", random.IntN(3)))
		now := start.Add(time.Duration(random.Int64N(int64(time.Minute))))
		for range 20 {
			l.Wall(now, now.Add(by))
			n, wait := spendNow(t, l, now, 99)
			if n > 0 {
				now = now.Add(time.Duration(random.Int64N(int64(5 * time.Second))))
				continue
			}
			for until := now.Add(wait); now < until; {
				now = min(until, now.Add(time.Duration(random.Int64N(int64(200*time.Millisecond)))))
				l.Wall(now, now.Add(by))
			}
			n, _ = spendNow(t, l, now, 1)
			require.Equal(t, 1, n, "after waiting %v, %v apart", wait, l.Status(now, "").Clock)
		}
	}
}

// Who waits for a boundary is served when calendar time reaches it, at once or not.
func TestWaitersAreServedWhenTheClockIsFollowed(t *testing.T) {
	l := fixedAt(t, 10*time.Minute, "rules: [1/1h fixed]")
	now := start.Add(10 * time.Minute)
	spendNow(t, l, now, 1)
	require.Empty(t, turn(t, l, now, ask("b", 1, now, time.Hour, "k")).Answers)
	l.Wall(now, start.Add(59*time.Minute+58*time.Second))
	require.Empty(t, turn(t, l, now).Answers)
	for range 5 {
		next, ok := l.Next()
		require.True(t, ok)
		if now = next; now >= start.Add(10*time.Minute+2*time.Second) {
			break
		}
		l.Wall(now, now.Add(49*time.Minute+58*time.Second))
		require.Empty(t, turn(t, l, now).Answers)
	}
	require.Equal(t, start.Add(10*time.Minute+2*time.Second), now)
	require.Equal(t, lease.Granted, turn(t, l, now).Answers[0].Answer.Outcome)
}

func TestClockIsResetWhateverLiesBetween(t *testing.T) {
	for _, by := range []time.Duration{-400 * 24 * time.Hour, -time.Hour, time.Hour, 400 * 24 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			l := fixedAt(t, 30*time.Minute, "rules: [10/1h fixed]")
			now := start.Add(30 * time.Minute)
			n, _ := spendNow(t, l, now, 10)
			require.Equal(t, 10, n)
			l.Wall(now, now.Add(by))
			require.NotZero(t, l.Dial().Apart)
			n, _ = spendNow(t, l, now, 10)
			require.Zero(t, n)
			l.ResetClock(now, now.Add(by))
			require.Equal(t, lease.Clock{Offset: by}, l.Status(now, "").Clock)
			n, wait := spendNow(t, l, now, 99)
			require.Zero(t, n, "what is spent comes back with the period that the clock shows")
			require.Equal(t, 30*time.Minute, wait)
			now = now.Add(wait)
			l.Wall(now, now.Add(by))
			n, _ = spendNow(t, l, now, 99)
			require.Equal(t, 10, n)
		})
	}
}

// That is what it says: a window may be opened early.
func TestResetMayOpenAWindowEarly(t *testing.T) {
	l := fixedAt(t, 30*time.Minute, "rules: [10/1h fixed]")
	now := start.Add(30 * time.Minute)
	spendNow(t, l, now, 10)
	l.ResetClock(now, now.Add(time.Hour))
	n, _ := spendNow(t, l, now, 99)
	require.Equal(t, 10, n)
}

// The next leader goes on from the mirrored dial: a window that is restored is the same,
// and one that nobody recorded is no fresher than its clock allows.
func TestRestoredWindowsKeepTheirCalendar(t *testing.T) {
	for _, by := range []time.Duration{20 * time.Minute, 40 * time.Minute, -20 * time.Minute, -40 * time.Minute} {
		t.Run(by.String(), func(t *testing.T) {
			const text = "limits: [{key: k, rules: [10/1h fixed]}, {key: j, rules: [10/1h fixed]}]"
			l, records := newLedger(t, text), mirrored{}
			now := start.Add(30 * time.Minute)
			l.Wall(now, now)
			spend := func(seq uint64) *lease.Turn {
				r := ask("b", seq, now, 0, "k")
				granted := turn(t, l, now, r)
				records.keep(granted)
				last := turn(t, l, now, spendsOne(r, now))
				records.keep(last)
				return last
			}
			for seq := range uint64(4) {
				spend(seq)
			}
			l.Wall(now, now.Add(by))
			last := spend(4)
			require.Equal(t, l.Dial(), last.Dial)
			next := lease.NewLedger(policy(t, text), lease.DefaultConfig())
			next.SetDial(last.Dial)
			next.Restore(records["k"])
			next.Wall(now, now.Add(by))
			require.Equal(t, l.Dial(), next.Dial())
			require.Equal(t, l.Status(now, "").Keys[0].Windows, next.Status(now, "").Keys[0].Windows)
			a := turn(t, next, now, ask("c", 1, now, 0, "j")).Answers[0].Answer
			require.Equal(t, next.Dial().Apart == 0, a.Outcome == lease.Granted)
		})
	}
}

// A record of windows under a wider guard is taken up as such, also where the next leader
// finds that it is not needed any more: what counts in the next period does so still.
func TestRecordUnderAWiderGuardKeepsWhatReachesOver(t *testing.T) {
	const text = "limits: [{key: k, rules: [10/1m fixed]}]"
	l, records := newLedger(t, text), mirrored{}
	now := start.Add(50 * time.Second)
	l.Wall(now, now.Add(20*time.Second))
	now = now.Add(time.Second)
	r := ask("b", 1, now, 0, "k")
	r.Need.Tokens, r.Want.Tokens = 10, 10
	records.keep(turn(t, l, now, r))
	last := turn(t, l, now, &lease.Report{Holder: r.ID.Holder, Counts: []lease.Count{{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: 10}}}}})
	records.keep(last)
	now = start.Add(61 * time.Second)
	next := newLedger(t, text)
	next.Start(lease.Start{Instant: now, Dial: last.Dial})
	next.Wall(now, now.Add(20*time.Second))
	require.Zero(t, next.Dial().Apart)
	next.Restore(records["k"])
	n, wait := spendNow(t, next, now, 99)
	require.Zero(t, n)
	require.Equal(t, 39*time.Second, wait)
}

// What a mirror writes of a dial it reads.
func TestDialIsWrittenAndRead(t *testing.T) {
	for _, d := range []lease.Dial{
		{}, {Offset: math.MinInt64, High: math.MaxInt64}, {Offset: 1, Apart: 2 * time.Millisecond, High: 3},
		{Widened: []lease.Widening{{At: -1, Apart: 4 * time.Millisecond}, {At: math.MaxInt64, Apart: time.Millisecond}}},
	} {
		text, err := d.MarshalText()
		require.NoError(t, err)
		got := lease.Dial{Offset: 7}
		require.NoError(t, got.UnmarshalText(text))
		require.Equal(t, d, got)
	}
	for _, text := range []string{"1", "1 2", "1 2 3 4", "1 2 3 4 x", "1 2 9223372036854775808"} {
		require.Error(t, new(lease.Dial).UnmarshalText([]byte(text)), text)
	}
}
