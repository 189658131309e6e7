package worker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

func TestDeadlineCountsFromTheSendingOfTheCopyAnswered(t *testing.T) {
	d := newDesk(t)
	c := d.Ask(d.now, 1, false, Forever)
	d.one()
	d.pass(1200 * ms)
	second := d.one()
	require.Equal(t, d.id(1), second.ID, "the next copy has the same id")
	require.Equal(t, d.now, second.Sent)
	d.pass(2 * time.Second)
	d.Answered(d.now, 0, granted(second, 1, 0, rate)) // the first copy's answer, late
	require.Equal(t, Taken, c.State())
	deadline := 5*time.Second - lease.Margin(5*time.Second)
	require.False(t, d.Spend(deadline, c), "at the deadline it is no spend")
	require.Equal(t, Waiting, c.State(), "the caller is back in line")
	require.EqualValues(t, 1, d.Books().Expired)
}

func TestSpendJustBeforeTheDeadlineIsOne(t *testing.T) {
	d := newDesk(t)
	c := d.Ask(0, 1, false, Forever)
	r := d.one()
	d.Answered(0, r.Sent, granted(r, 1, 0, rate))
	require.True(t, d.Spend(5*time.Second-lease.Margin(5*time.Second)-1, c))
}

func TestAllowPastTheDeadlineIsNoSpend(t *testing.T) {
	d := newDesk(t)
	d.has(1, 100)
	require.True(t, d.Allow(d.now, 1))
	require.False(t, d.Allow(5*time.Second, 1))
	require.EqualValues(t, 2, d.live.Load().swift())
	require.EqualValues(t, 1, d.live.Load().missed.Load())
	d.now = 5 * time.Second
	d.Tick(d.now)
	require.Nil(t, d.live.Load())
	d.pass(2 * time.Second)
	require.EqualValues(t, 98, d.Books().Expired)
}

func TestSecondAnswerToATakenIDIsDroppedInSilence(t *testing.T) {
	d := newDesk(t)
	d.Ask(d.now, 1, false, Forever)
	r := d.one()
	d.Answered(d.now, r.Sent, granted(r, 3, 0, rate))
	d.Answered(d.now, r.Sent, granted(r, 3, 0, rate))
	require.EqualValues(t, 3, d.Books().Granted)
	require.EqualValues(t, 1, d.Books().Dropped)
	require.Zero(t, d.told().Returned, "what was never taken is never returned")
}

func TestAnIDGivenUpIsNamedUntilAcknowledgedAndItsGrantIsDropped(t *testing.T) {
	d := newDesk(t)
	c := d.Ask(d.now, 1, false, Forever)
	r := d.one()
	d.Cancel(d.now, c)
	require.LessOrEqual(t, d.Due(), d.now+ms, "giving up is told at once")
	_, ids := d.Report(d.now, false)
	require.Equal(t, []lease.GivenUp{{ID: r.ID, Keys: []lease.Key{"k"}}}, ids)
	d.Answered(d.now, r.Sent, granted(r, 1, 0, rate))
	require.Zero(t, d.Books().Granted, "given up is given up for good")
	_, ids = d.Report(d.now, true)
	require.Len(t, ids, 1, "the heartbeat names it again")
	d.Replied(d.now, lease.Report{GivenUp: ids}, lease.Reply{Acknowledged: []lease.ID{r.ID}})
	require.True(t, d.Idle())
}

func TestACancelledRequestThatWasNeverSentIsNotNamed(t *testing.T) {
	d := newDesk(t)
	d.Cancel(d.now, d.Ask(d.now, 1, false, Forever))
	require.True(t, d.Idle())
	require.Empty(t, d.Requests(d.now))
}

func TestCancelledCallersTokensServeTheNextOrGoBackAtOnce(t *testing.T) {
	d := newDesk(t)
	a := d.Ask(d.now, 1, false, Forever)
	r := d.one()
	b := d.Ask(d.now, 1, false, Forever)
	d.Requests(d.now)
	d.Answered(d.now, r.Sent, granted(r, 1, 0, rate))
	require.Equal(t, Taken, a.State())
	d.Cancel(d.now, a)
	require.Equal(t, Taken, b.State(), "the next local caller has it")
	require.True(t, d.Spend(d.now, b))
	d.Cancel(d.now, b)
	require.EqualValues(t, 1, d.Books().Returned, "nobody wants it: it goes back")
	require.LessOrEqual(t, d.Due(), d.now+ms)
	require.Equal(t, lease.Count{ID: r.ID, Keys: []lease.Key{"k"}, Returned: 1}, d.told())
}

func TestAReturnOnceMadeIsGone(t *testing.T) {
	d := newDesk(t)
	c := d.has(1, 5)
	d.Finish(d.now, c)
	d.pass(time.Second) // idle: 4 go back
	counts, _ := d.Report(d.now, false)
	require.EqualValues(t, 4, counts[0].Returned)
	d.Unreported(d.now, lease.Report{Counts: counts})
	require.False(t, d.Allow(d.now, 1), "the message failed, the tokens are gone all the same")
	counts, _ = d.Report(d.now+time.Second, false)
	require.EqualValues(t, 4, counts[0].Returned, "and told again, not added")
}

func TestReportDatesASpendAtItsVeryInstant(t *testing.T) {
	d := newDesk(t)
	d.now = 100 * ms
	c := d.has(2, 2)
	require.Equal(t, 100*ms, c.Sent())
	d.now = 130 * ms
	d.Finish(d.now, c)
	require.LessOrEqual(t, d.Due(), 100*ms+rate.Window/2)
	require.Equal(t, []lease.Point{{Count: 2, Age: 30 * ms}}, d.told().Points)
}

func TestASpendIsReportedWithinHalfAWindowThoughItsHandleIsOpen(t *testing.T) {
	d := newDesk(t)
	d.has(1, 1)
	d.Report(d.now, false)
	d.pass(rate.Window / 2)
	require.LessOrEqual(t, d.Due(), rate.Window/2)
	require.Equal(t, []lease.Point{{Count: 1, Age: rate.Window / 2}}, d.told().Points)
}

func TestAllowIsDatedNeverEarlyAndAtMostATwoHundredthLate(t *testing.T) {
	d := newDesk(t)
	d.Finish(d.now, d.has(1, 100))
	for i := range 20 {
		d.now += 7 * ms
		spent := d.now
		require.True(t, d.Allow(d.now, 1))
		d.pass(6 * ms)
		points := d.told().Points
		last := points[len(points)-1]
		require.EqualValues(t, i+2, last.Count)
		dated := d.now - last.Age
		require.GreaterOrEqual(t, dated, spent)
		require.LessOrEqual(t, dated, spent+rate.Window/200)
	}
}

func TestPointsMergeAtTheLaterDate(t *testing.T) {
	d := newDesk(t)
	d.Finish(d.now, d.has(1, 500))
	spent := map[int64]time.Duration{1: 0}
	for i := range int64(300) {
		d.now += ms
		c := d.Ask(d.now, 1, false, Forever)
		require.True(t, d.Spend(d.now, c))
		d.Finish(d.now, c)
		spent[i+2] = d.now
	}
	points := d.told().Points
	require.LessOrEqual(t, len(points), d.cfg.MaxPoints)
	counted := int64(0)
	for _, p := range points {
		for counted < p.Count {
			counted++
			require.LessOrEqual(t, spent[counted], d.now-p.Age, "token %d is dated early", counted)
		}
	}
	require.EqualValues(t, 301, counted)
}

func TestSettleGivesTheRestBack(t *testing.T) {
	d := newDesk(t)
	require.NoError(t, d.Settle(d.now, d.has(10, 10), 4))
	c := d.told()
	require.Equal(t, []lease.Point{{Count: 4}}, c.Points)
	require.EqualValues(t, 6, c.Returned)
}

// What calls used beyond their cost is told until it is acknowledged, whatever becomes
// of their lease.
func TestOverspendIsToldUntilItIsAcknowledged(t *testing.T) {
	d := newDesk(t)
	require.NoError(t, d.Settle(d.now, d.has(10, 10), 14))
	require.NoError(t, d.Settle(d.now, d.has(5, 5), 5))
	require.EqualValues(t, 15, d.Books().Spent)
	require.EqualValues(t, 4, d.Books().Overspent)
	over := func(counts []lease.Count) (n int64) {
		for _, c := range counts {
			n += c.Over
		}
		return n
	}
	counts, _ := d.Report(d.now, false)
	require.EqualValues(t, 4, over(counts))
	again, _ := d.Report(d.now, false)
	require.Zero(t, over(again), "it is on its way")
	d.Unreported(d.now, lease.Report{Counts: counts})
	again, _ = d.Report(d.now, false)
	require.EqualValues(t, 4, over(again))
	beat, _ := d.Report(d.now, true)
	require.EqualValues(t, 4, over(beat), "a heartbeat names it")
	require.NoError(t, d.Settle(d.now, d.has(5, 5), 8))
	d.Replied(d.now, lease.Report{Counts: beat}, lease.Reply{})
	beat, _ = d.Report(d.now, true)
	require.EqualValues(t, 3, over(beat), "what came meanwhile, and no more")
	d.Restart(d.now)
	afresh, _ := d.Report(d.now, true)
	require.EqualValues(t, 3, over(afresh), "a new incarnation tells it")
	require.NotEqual(t, beat[len(beat)-1].ID, afresh[len(afresh)-1].ID)
	d.Replied(d.now, lease.Report{Counts: afresh}, lease.Reply{})
	d.pass(10 * time.Second)
	require.True(t, d.Idle())
}

// Of two calls of one lease each overspend is owed, also when the first is acknowledged.
func TestEachOverspendOfALeaseIsOwed(t *testing.T) {
	policy, err := lease.ParsePolicy("test", []byte("limits: [{key: k, rules: [100/1h]}]"))
	require.NoError(t, err)
	l := lease.NewLedger(policy, lease.DefaultConfig())
	d := newDesk(t)
	first := d.has(5, 10)
	second := d.Ask(d.now, 5, false, Forever)
	require.True(t, d.Spend(d.now, second))
	for _, c := range []*Call{first, second} {
		require.NoError(t, d.Settle(d.now, c, 9))
		for range 2 { // a copy changes nothing
			counts, _ := d.Report(d.now, true)
			report := lease.Report{Holder: counts[0].ID.Holder, Counts: counts}
			l.Turn(1, []lease.Message{{Report: &report}})
			d.Unreported(d.now, report)
		}
		counts, _ := d.Report(d.now, true)
		d.Replied(d.now, lease.Report{Counts: counts}, lease.Reply{})
	}
	require.EqualValues(t, 8, l.Status(1, "k").Keys[0].Windows[0].Spent)
}

// A call may end long after its lease: what it used more is told all the same.
func TestOverspendOfALeaseThatIsOverIsTold(t *testing.T) {
	d := newDesk(t)
	c := d.has(10, 10)
	d.pass(20 * time.Second)
	require.Empty(t, d.leases)
	require.NoError(t, d.Settle(d.now, c, 12))
	require.False(t, d.Idle())
	counts, _ := d.Report(d.now, false)
	require.Len(t, counts, 1)
	require.EqualValues(t, 2, counts[0].Over)
	require.Equal(t, []lease.Key{"k"}, counts[0].Keys)
}

func TestSettleOfWhatNoCallCanHaveUsedSpendsAll(t *testing.T) {
	for _, used := range []int64{algo.MaxLimit + 1, -1} {
		d := newDesk(t)
		err := d.Settle(d.now, d.has(10, 10), used)
		require.ErrorContains(t, err, fmt.Sprint(used))
		require.ErrorContains(t, err, "10")
		require.EqualValues(t, 10, d.Books().Spent)
	}
}

func TestTheFirstEndOfACallCounts(t *testing.T) {
	d := newDesk(t)
	c := d.has(5, 5)
	d.Cancel(d.now, c)
	d.Finish(d.now, c)
	d.Abandon(d.now, c)
	require.NoError(t, d.Settle(d.now, c, 3))
	require.EqualValues(t, 5, d.Books().Returned)
	require.Zero(t, d.Books().Spent)
}

func TestRecallGivesBackWhatIsIdleAtOnce(t *testing.T) {
	d := newDesk(t)
	d.Finish(d.now, d.has(1, 50))
	d.pass(200 * ms)
	d.Recalled(d.now, lease.Recall{Key: "k"})
	require.EqualValues(t, 49, d.Books().Returned)
	require.LessOrEqual(t, d.Due(), d.now+ms)
	require.False(t, d.Allow(d.now, 1))
}

func TestIdleTokensGoBack(t *testing.T) {
	d := newDesk(t)
	d.Finish(d.now, d.has(1, 50))
	d.pass(d.cfg.IdleAfter - ms)
	require.EqualValues(t, 49, d.Books().Held)
	d.pass(2 * ms)
	require.EqualValues(t, 49, d.Books().Returned)
}

func TestTokensOfAnEndedLeaseAreNotSpent(t *testing.T) {
	d := newDesk(t)
	d.Finish(d.now, d.has(1, 50))
	counts, _ := d.Report(d.now, true)
	next := d.Ask(d.now, 1, false, Forever)
	require.Equal(t, Taken, next.State())
	d.Replied(d.now, lease.Report{Counts: counts}, lease.Reply{Ended: []lease.ID{d.id(1)}})
	require.False(t, d.Spend(d.now, next))
	require.Equal(t, Waiting, next.State())
	require.False(t, d.Allow(d.now, 1))
}

func TestCloseGivesAllBackAndFailsWhoWaits(t *testing.T) {
	d := newDesk(t)
	running := d.has(2, 5)
	taken := d.Ask(d.now, 1, false, Forever)
	waiting := d.Ask(d.now, 9, false, Forever)
	d.one()
	d.Close(d.now)
	require.ErrorIs(t, waiting.Err(), lease.ErrStopped)
	require.False(t, d.Spend(d.now, taken), "nothing is spent after the goodbye")
	counts, ids := d.Report(d.now, true)
	require.EqualValues(t, 3, counts[0].Returned)
	require.Equal(t, []lease.Point{{Count: 2}}, counts[0].Points)
	require.Len(t, ids, 1)
	d.Cancel(d.now, running)
	require.EqualValues(t, 2, d.Books().Spent)
	require.Equal(t, Failed, d.Ask(d.now, 1, false, Forever).State())
}

// Once a spend has been told, nobody can take it back: a cancel that comes later
// returns nothing.
func TestCancelAfterItsReportGivesNothingBack(t *testing.T) {
	d := newDesk(t)
	c := d.has(5, 5)
	d.pass(rate.Window)
	require.EqualValues(t, 5, d.told().Points[0].Count)
	d.Cancel(d.now, c)
	require.Equal(t, Done, c.State())
	told := d.told()
	require.Zero(t, told.Returned)
	require.EqualValues(t, 5, d.Books().Spent)
	require.Zero(t, d.Books().Returned)
}

func TestAllowOfSeveralSpendsThemAll(t *testing.T) {
	d := newDesk(t)
	const all = 10 * losable // so that each is taken without the lock
	d.Finish(d.now, d.has(all-9, all))
	require.NotNil(t, d.live.Load())
	require.True(t, d.Allow(d.now, 3)) // from the lease
	require.True(t, d.Allow(d.now, 4))
	require.False(t, d.Allow(d.now, 3), "2 are left")
	d.pass(rate.Window / 100)
	points := d.told().Points
	require.EqualValues(t, all-2, points[len(points)-1].Count)
	require.True(t, d.Allow(d.now, 2))
	require.False(t, d.Allow(d.now, 1))
}
