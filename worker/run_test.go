package worker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

var apart = lease.Terms{Window: time.Second, Spacing: 100 * ms}

// runs asks for n tokens and gives the call, spent, of a run of so many.
func (d *desk) runs(n, tokens int64) *Call {
	c := d.Ask(d.now, n, false, Forever)
	r := d.one()
	d.Answered(d.now, r.Sent, granted(r, tokens, 0, apart))
	require.Equal(d.t, Taken, c.State())
	require.True(d.t, d.Spend(d.now, c))
	d.Served()
	return c
}

func TestCallsOfARunAreDealtAGapApart(t *testing.T) {
	d := newDesk(t)
	d.runs(1, 6)
	second, third := d.Ask(d.now, 2, false, Forever), d.Ask(d.now, 1, false, Forever)
	require.Equal(t, Waiting, second.State())
	require.LessOrEqual(t, d.Next(), 100*ms)
	d.pass(100*ms - 1)
	require.Empty(t, d.Served())
	d.pass(1)
	require.Equal(t, []*Call{second}, d.Served())
	require.Equal(t, Waiting, third.State(), "one is taken, and not spent yet")
	d.pass(50 * ms)
	require.True(t, d.Spend(d.now, second))
	d.pass(200*ms - 1)
	require.Equal(t, Waiting, third.State(), "two tokens are two gaps")
	d.pass(1)
	require.Equal(t, Taken, third.State())
	d.Cancel(d.now, third)
	fourth := d.Ask(d.now, 1, false, Forever)
	require.Equal(t, Taken, fourth.State(), "what was not spent begins no gap")
}

func TestGapOutlastsItsRun(t *testing.T) {
	d := newDesk(t)
	d.runs(1, 1)
	next := d.Ask(d.now, 1, false, Forever)
	r := d.one()
	d.pass(10 * ms)
	d.Answered(d.now, r.Sent, granted(r, 1, 0, apart))
	require.Equal(t, Waiting, next.State())
	d.pass(90 * ms)
	require.Equal(t, Taken, next.State())
}

// A gap may be so long that clocks come further apart in it than a run lives.
func TestRunIsSpentThoughClocksDiffer(t *testing.T) {
	d := newDesk(t)
	hourly := lease.Terms{Window: time.Hour, Spacing: time.Hour}
	c := d.Ask(d.now, 1, false, Forever)
	r := d.one()
	d.Answered(d.now, r.Sent, granted(r, 1, 0, hourly))
	require.True(t, d.Spend(d.now, c))
	d.told()
	next := d.Ask(d.now, 1, false, Forever)
	r = d.one()
	d.now = time.Hour - 800*ms // the lessor's clock is 800 ms ahead by now
	a := granted(r, 1, 0, hourly)
	a.TokenTTL = 500 * ms
	d.Answered(d.now, d.now, a)
	require.Equal(t, Taken, next.State())

	d = newDesk(t)
	d.runs(1, 1)
	d.Ask(d.now, 1, false, Forever)
	r = d.one()
	d.now = 99 * ms // far more than clocks differ by
	d.Answered(d.now, r.Sent, granted(r, 1, 0, apart))
	require.Empty(t, d.Served())
}

func TestEndOfARunIsToldAtOnceWithAPointForEachSpend(t *testing.T) {
	d := newDesk(t)
	d.runs(1, 3)
	require.Greater(t, d.Due(), d.now, "two are left")
	for range 2 {
		d.pass(100 * ms)
		c := d.Ask(d.now, 1, false, Forever)
		require.True(t, d.Spend(d.now, c))
	}
	require.Equal(t, d.now, d.Due())
	counts, _ := d.Report(d.now, false)
	require.Equal(t, []lease.Point{{Count: 1, Age: 200 * ms}, {Count: 2, Age: 100 * ms}, {Count: 3}}, counts[0].Points)
}

func TestSpentTokensOfARunDoNotComeBack(t *testing.T) {
	d := newDesk(t)
	c := d.runs(2, 3)
	require.NoError(t, d.Settle(d.now, c, 1))
	require.Equal(t, int64(2), d.Books().Spent)
	require.Equal(t, int64(1), d.Books().Held)
}

func TestRecallLeavesWhatCallersInLineWillUse(t *testing.T) {
	d := newDesk(t)
	d.runs(1, 10)
	for _, cost := range []int64{3, 2, 7} {
		d.Ask(d.now, cost, false, Forever)
	}
	d.Recalled(d.now, lease.Recall{Key: "k"})
	require.Equal(t, int64(4), d.Books().Returned, "five for the first two; the third needs more than is there")

	d = newDesk(t)
	d.runs(1, 10)
	d.Recalled(d.now, lease.Recall{Key: "k"})
	require.Equal(t, int64(7), d.Books().Returned, "a caller may come in time for each of a quarter of the window")
	d.pass(102 * ms)
	require.Equal(t, int64(9), d.Books().Returned, "none came")
	require.LessOrEqual(t, d.Due(), d.now, "others wait for it")
}

func TestRunWithoutCallersGoesBackWhenIdle(t *testing.T) {
	d := newDesk(t)
	d.runs(1, 4)
	d.pass(350*ms - 1)
	require.Zero(t, d.Books().Returned)
	d.pass(1)
	require.Equal(t, int64(3), d.Books().Returned)
	require.LessOrEqual(t, d.Due(), d.now)
}

// Half a second is little: what is left goes back before it counts as spent, even
// if somebody waits for his turn.
func TestRunGoesBackBeforeItExpires(t *testing.T) {
	d := newDesk(t)
	c := d.Ask(d.now, 1, false, Forever)
	r := d.one()
	a := granted(r, 10, 0, apart)
	a.TokenTTL = 500 * ms
	d.Answered(d.now, r.Sent, a)
	require.True(t, d.Spend(d.now, c))
	waits := d.Ask(d.now, 9, false, Forever)
	d.pass(99 * ms)
	require.Equal(t, Waiting, waits.State())
	d.pass(ms)
	d.Cancel(d.now, waits) // at its take
	late := d.Ask(d.now, 9, false, Forever)
	d.Cancel(d.now, late)
	require.Equal(t, int64(9), d.Books().Returned)

	d = newDesk(t)
	c = d.Ask(d.now, 1, false, Forever)
	r = d.one()
	a = granted(r, 10, 0, lease.Terms{Window: time.Second, Spacing: time.Second})
	a.TokenTTL = 500 * ms
	d.Answered(d.now, r.Sent, a)
	require.True(t, d.Spend(d.now, c))
	d.Ask(d.now, 1, false, Forever)
	d.pass(500 * ms)
	require.Equal(t, int64(9), d.Books().Returned)
	require.Zero(t, d.Books().Expired)
	require.Equal(t, int64(1), d.Books().RunsGivenUp)
}

// Nobody has two runs at once: what is too little for the head of the line would
// wait for more for ever.
func TestRestTooSmallForTheHeadGoesBack(t *testing.T) {
	d := newDesk(t)
	d.runs(1, 3)
	d.Ask(d.now, 5, false, Forever)
	require.Equal(t, int64(2), d.Books().Returned)
	require.Equal(t, d.now, d.Due(), "the run is over")
	require.Equal(t, int64(5), d.one().Need.Tokens)
	require.Equal(t, int64(1), d.Books().RunsTooShort)
}

func TestOneRequestAsksForAllWhoWait(t *testing.T) {
	d := newDesk(t)
	var calls []*Call
	for range 5 {
		calls = append(calls, d.Ask(d.now, 2, false, Forever))
	}
	rs := d.Requests(d.now) // what the contract is, it does not know yet
	require.Len(t, rs, 5)
	d.Answered(d.now, rs[0].Sent, granted(rs[0], 2, 0, apart))
	require.True(t, d.Spend(d.now, calls[0]))
	require.Empty(t, d.Requests(d.now))
	_, ids := d.Report(d.now, false)
	require.Len(t, ids, 3, "one of those under way is kept")
	d.Cancel(d.now, calls[1])
	d.Answered(d.now, rs[1].Sent, granted(rs[1], 2, 0, apart))
	d.pass(200 * ms)
	require.True(t, d.Spend(d.now, calls[2]))
	r := d.one()
	require.Equal(t, lease.Amount{Tokens: 2}, r.Need)
	require.GreaterOrEqual(t, r.Want.Tokens, int64(4), "two of two tokens wait")
}

func TestAllowOfARunComesInItsTimeOnly(t *testing.T) {
	d := newDesk(t)
	require.False(t, d.Allow(d.now, 1))
	r := d.one()
	d.Answered(d.now, r.Sent, granted(r, 3, 0, apart))
	require.Nil(t, d.live.Load(), "who takes has to know when the last spend was")
	require.True(t, d.Allow(d.now, 1))
	require.False(t, d.Allow(d.now, 1))
	require.Empty(t, d.Requests(d.now), "it is there, and its time will come")
	require.Equal(t, int64(unbarred), d.dry.Load())
	d.pass(100*ms - 1)
	require.False(t, d.Allow(d.now, 1))
	d.pass(1)
	require.True(t, d.Allow(d.now, 1))
	d.pass(100 * ms)
	require.False(t, d.Allow(d.now, 2), "one is left")
	require.Equal(t, int64(1), d.Books().Returned)
	require.Equal(t, int64(2), d.one().Need.Tokens)
}

// However many spends wait to be acknowledged, no lump of them keeps others from
// the rule for longer than the last spend does.
func TestPointsOfALongRunStayApart(t *testing.T) {
	d := newDesk(t)
	a := lease.Terms{Window: time.Second, Spacing: ms}
	c := d.Ask(d.now, 1, false, Forever)
	r := d.one()
	d.Answered(d.now, r.Sent, granted(r, 500, 0, a))
	require.True(t, d.Spend(d.now, c))
	due := 0
	for range 499 {
		d.pass(ms)
		require.True(t, d.Allow(d.now, 1))
		if d.Due() <= d.now {
			due++
			d.due = Forever
		}
	}
	require.GreaterOrEqual(t, due, 10, "many are told of while it lasts")
	points := d.told().Points
	require.LessOrEqual(t, len(points), 256)
	before, last := int64(0), points[len(points)-1]
	require.Equal(t, lease.Point{Count: 500}, last)
	for _, p := range points {
		ready := -p.Age + time.Duration(p.Count-before)*ms
		require.LessOrEqual(t, ready, 2*ms, "%d after %d", p.Count, before)
		before = p.Count
	}
}

// Holders over a network that loses, repeats, delays and reorders never spend within
// a gap of each other.
func TestGapsHoldOverABrutalNetwork(t *testing.T) {
	var all Books
	for seed := range uint64(60) {
		f := newFleet("limits: [{key: k, rules: [10/1s pace, 25/3s]}]", seed)
		f.faults = true
		for i := range 3 {
			m := f.member(fmt.Sprint("m", i), "k", DefaultPoolConfig())
			for range 60 {
				f.after(time.Duration(f.rnd.IntN(20_000))*time.Millisecond, func() { m.demand(seed) })
			}
		}
		f.run(30 * time.Second)
		f.faults = false
		f.run(f.now + 30*time.Second)
		require.Empty(t, f.tooSoon(10, time.Second), "seed %d", seed)
		require.LessOrEqual(t, f.most(3*time.Second), int64(25), "seed %d", seed)
		for _, m := range f.members {
			require.True(t, m.pool.Idle(), "seed %d: %s still holds or wants: %+v", seed, m.holder, m.pool.Books())
			balanced(t, m.pool.Books(), fmt.Sprintf("seed %d, end", seed))
			all.Add(m.pool.Books())
		}
	}
	t.Logf("%+v", all)
	require.NotZero(t, all.RunsTooShort)
	require.NotZero(t, all.Recalls)
	require.NotZero(t, all.Expired)
}
