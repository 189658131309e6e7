package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// tries says whether n tokens could be taken and spent.
func (d *desk) tries(n int64) bool {
	c := d.Try(d.now, n)
	if c == nil {
		return false
	}
	require.True(d.t, d.Spend(d.now, c))
	d.Finish(d.now, c)
	return true
}

func TestTryTakesWhatIsAtHandAndAsksForWhatIsNot(t *testing.T) {
	d := newDesk(t)
	require.Nil(t, d.Try(d.now, 0))
	require.Nil(t, d.Try(d.now, 3))
	r := d.one()
	require.EqualValues(t, 3, r.Need.Tokens)
	require.Nil(t, d.Try(d.now, 3), "it is under way")
	require.Empty(t, d.Requests(d.now))
	d.Answered(d.now, r.Sent, granted(r, 5, 0, rate))
	c := d.Try(d.now, 3)
	require.Equal(t, Taken, c.State())
	require.Nil(t, d.Try(d.now, 3), "two are left")
	require.True(t, d.Spend(d.now, c))
	d.Finish(d.now, c)
	require.Equal(t, []lease.Point{{Count: 3}}, d.told().Points)

	waits := d.Ask(d.now, 4, false, Forever)
	require.Equal(t, Waiting, waits.State())
	require.Nil(t, d.Try(d.now, 1), "others wait for what is there")
	d.Cancel(d.now, waits)

	c = d.Try(d.now, 1)
	d.now = 5 * time.Second
	require.False(t, d.Spend(d.now, c), "at the deadline it is no spend")
	d.Cancel(d.now, c)
	d.Close(d.now)
	require.Nil(t, d.Try(d.now, 1))
}

func TestTryGivesNothingWhereASlotIsNeeded(t *testing.T) {
	d, _ := slotted(t, 5, 2)
	require.Nil(t, d.Try(d.now, 1))
	require.Empty(t, d.Requests(d.now))
}

// A refill that waits for more than is free keeps none from who wants less.
func TestALessNeedTakesThePlaceOfTheRefillUnderWay(t *testing.T) {
	d := newDesk(t)
	require.False(t, d.tries(5))
	large := d.one()
	d.now += ms
	require.False(t, d.tries(2))
	small := d.one()
	require.NotEqual(t, large.ID, small.ID)
	require.Equal(t, lease.Amount{Tokens: 1}, small.Need)
	require.GreaterOrEqual(t, small.Want.Tokens, int64(2))
	_, ids := d.Report(d.now, false)
	require.Len(t, ids, 1, "the other leaves the lessor's line")
	require.Equal(t, large.ID, ids[0].ID)
	d.Answered(d.now, large.Sent, granted(large, 5, 0, rate))
	require.False(t, d.tries(1), "given up is given up")
	require.Empty(t, d.Requests(d.now), "nothing is less than 1")
	d.Answered(d.now, small.Sent, granted(small, 2, 0, rate))
	require.True(t, d.tries(2))
}

// What was refused to a large need is asked for by a small one at once, but
// once that is in vain too, none asks before a pause is over.
func TestARefusalOfMuchSaysNothingOfLess(t *testing.T) {
	d := newDesk(t)
	refuse := func(r lease.Request, reason error) {
		a := refusal(r, reason)
		a.Refusal.Wait = time.Hour
		d.Answered(d.now, r.Sent, a)
	}
	for _, reason := range []error{lease.ErrTooLate, lease.ErrLimit, lease.ErrTimedOut, lease.ErrNever} {
		require.False(t, d.tries(5))
		refuse(d.one(), reason)
		for range 3 {
			require.False(t, d.tries(5))
			require.False(t, d.tries(9))
			require.Empty(t, d.Requests(d.now), "after %s", reason)
		}
		require.False(t, d.tries(3))
		r := d.one()
		require.Equal(t, lease.Amount{Tokens: 1}, r.Need)
		refuse(r, lease.ErrTooLate)
		for n := range int64(9) {
			require.False(t, d.tries(n+1))
			require.Empty(t, d.Requests(d.now), "after %s, and of less", reason)
		}
		d.pass(2 * time.Second)
	}
	require.False(t, d.tries(5))
	refuse(d.one(), lease.ErrUnknownKey)
	require.False(t, d.tries(1))
	require.Empty(t, d.Requests(d.now), "a key that is not known is known for no need")
}

// However large and small needs alternate where nothing is free, it is two
// requests to a pause.
func TestAlternatingNeedsDoNotHammer(t *testing.T) {
	d := newDesk(t)
	asked := 0
	for d.now < 10*time.Second {
		for _, n := range []int64{7, 3, 1, 5, 2} {
			require.False(t, d.tries(n))
		}
		for _, r := range d.Requests(d.now) {
			asked++
			d.Answered(d.now, r.Sent, refusal(r, lease.ErrTooLate))
		}
		d.pass(ms)
	}
	require.Greater(t, asked, 10)
	require.LessOrEqual(t, asked, 2*int(10*time.Second/d.cfg.BackoffMax)+2)
}

// A copy whose place was taken by a newer one is no sign of trouble.
func TestASupersededCopyIsNoTrouble(t *testing.T) {
	d := newDesk(t)
	d.Ask(d.now, 1, false, Forever)
	r := d.one()
	d.Failed(d.now, r.Sent, r.ID, lease.ErrSuperseded)
	require.NoError(t, d.Trouble())
	d.pass(d.cfg.BackoffMin)
	again := d.one()
	require.Equal(t, r.ID, again.ID, "it is asked again under its id")
	d.Failed(d.now, again.Sent, again.ID, lease.ErrNoCoordinator)
	d.pass(d.cfg.BackoffMax)
	again = d.one()
	d.Failed(d.now, again.Sent, again.ID, lease.ErrSuperseded)
	require.ErrorIs(t, d.Trouble(), lease.ErrNoCoordinator, "nor is it an answer")
}
