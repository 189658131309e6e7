package worker

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

func TestRefusalFailsThoseWhoseNeedItWas(t *testing.T) {
	d := newDesk(t)
	small := d.Ask(d.now, 1, false, Forever)
	d.one()
	large := d.Ask(d.now, 11, false, Forever)
	r := d.one()
	require.EqualValues(t, 11, r.Need.Tokens)
	d.Answered(d.now, r.Sent, refusal(r, lease.ErrNever))
	require.Equal(t, Failed, large.State())
	var refused *RefusedError
	require.ErrorAs(t, large.Err(), &refused)
	require.True(t, refused.Never())
	require.Equal(t, Waiting, small.State())
}

func TestTooLateFailsTheImpatientOnly(t *testing.T) {
	d := newDesk(t)
	soon := d.Ask(d.now, 1, false, d.now+time.Second)
	r := d.one()
	require.Equal(t, time.Second, r.Patience)
	d.Answered(d.now, r.Sent, refusal(r, lease.ErrTooLate))
	require.ErrorIs(t, soon.Err(), lease.ErrTooLate)
	require.Len(t, d.Served(), 1)
	d.Ask(d.now, 1, false, d.now+time.Hour)
	require.Equal(t, time.Hour, d.one().Patience)
	d.Ask(d.now, 1, false, Forever)
	require.Equal(t, d.cfg.Patience, d.one().Patience)
}

func TestAnIDRefusedAfterTwoCopiesIsGivenUp(t *testing.T) {
	d := newDesk(t)
	d.Ask(d.now, 1, false, Forever)
	first := d.one()
	d.pass(time.Second)
	second := d.one()
	d.Answered(d.now, second.Sent, refusal(second, lease.ErrTimedOut))
	_, ids := d.Report(d.now, false)
	require.Len(t, ids, 1)
	require.Equal(t, first.ID, ids[0].ID)
	d.pass(d.cfg.BackoffMin)
	require.NotEqual(t, first.ID, d.one().ID, "the caller is asked for anew")
}

func TestEndedTakesANewIDAndWaitingTheSame(t *testing.T) {
	d := newDesk(t)
	d.Ask(d.now, 1, false, Forever)
	r := d.one()
	d.Answered(d.now, r.Sent, lease.Answer{ID: r.ID, Outcome: lease.Waiting})
	d.pass(50 * ms)
	again := d.one()
	require.Equal(t, r.ID, again.ID)
	d.Answered(d.now, again.Sent, lease.Answer{ID: r.ID, Outcome: lease.Ended})
	require.NotEqual(t, r.ID, d.one().ID)
}

func TestFailuresAreAskedAgainUnderTheSameIDWithinTheBackoff(t *testing.T) {
	d := newDesk(t)
	d.Ask(d.now, 1, false, Forever)
	var id lease.ID
	for i := range 40 {
		r := d.one()
		if i == 0 {
			id = r.ID
		}
		require.Equal(t, id, r.ID)
		d.Failed(d.now, r.Sent, r.ID, lease.ErrNoCoordinator)
		require.ErrorIs(t, d.Trouble(), lease.ErrNoCoordinator)
		d.pass(d.cfg.BackoffMax + 1)
	}
}

func TestACallerLeavesByItsDeadline(t *testing.T) {
	d := newDesk(t)
	c := d.Ask(d.now, 1, false, 300*ms)
	d.one()
	d.pass(300 * ms)
	require.ErrorIs(t, c.Err(), lease.ErrTimedOut)
	require.Len(t, d.Served(), 1)
	_, ids := d.Report(d.now, false)
	require.Len(t, ids, 1, "its request leaves the line")
}

func TestCancellingTheHeadServesThoseBehindAtOnce(t *testing.T) {
	d := newDesk(t)
	head := d.Ask(d.now, 5, false, Forever)
	r5 := d.one()
	small := d.Ask(d.now, 1, false, Forever)
	r1 := d.one()
	require.EqualValues(t, 5, r5.Need.Tokens)
	require.EqualValues(t, 1, r1.Need.Tokens)
	d.Answered(d.now, r1.Sent, granted(r1, 1, 0, rate))
	require.Equal(t, Waiting, small.State(), "first come, first served")
	d.Cancel(d.now, head)
	require.Equal(t, Taken, small.State())
}

func TestHeadCollectsOverSeveralLeases(t *testing.T) {
	d := newDesk(t)
	c1 := d.Ask(d.now, 1, false, Forever)
	r1 := d.one()
	d.Answered(d.now, r1.Sent, granted(r1, 3, 0, rate))
	d.Finish(d.now, c1)
	require.True(t, d.Spend(d.now, c1))
	head := d.Ask(d.now, 4, false, Forever)
	r := d.one()
	d.Answered(d.now, r.Sent, granted(r, 4, 0, rate))
	require.True(t, d.Spend(d.now, head))
	d.Finish(d.now, head)
	b := d.Books()
	require.EqualValues(t, 4, b.Spent)
	require.EqualValues(t, 3, b.Held)
}

func TestRefillsDoubleWhileUsedUpFast(t *testing.T) {
	d := newDesk(t)
	var wants []int64
	for range 6 {
		c := d.Ask(d.now, 1, false, Forever)
		if c.State() == Waiting {
			r := d.one()
			wants = append(wants, r.Want.Tokens)
			d.Answered(d.now, r.Sent, granted(r, r.Want.Tokens, 0, rate))
		}
		d.Spend(d.now, c)
		d.Finish(d.now, c)
		for d.atHand(d.now) > 0 {
			d.Allow(d.now, 1)
		}
		d.now += ms
		d.Look()
		d.Tick(d.now)
		for _, r := range d.Requests(d.now) {
			wants = append(wants, r.Want.Tokens)
			d.Answered(d.now, r.Sent, granted(r, r.Want.Tokens, 0, rate))
		}
	}
	require.Greater(t, wants[len(wants)-1], int64(8), "%v", wants)
}

func TestContendedRequestsAreSmallOneForEachCallerAndNeverAhead(t *testing.T) {
	d := newDesk(t)
	c := d.Ask(d.now, 1, false, Forever)
	r := d.one()
	a := granted(r, 1, 0, rate)
	a.Waited = ms
	d.Answered(d.now, r.Sent, a)
	d.Spend(d.now, c)
	d.Finish(d.now, c)
	require.Empty(t, d.Requests(d.now), "nothing is prefetched")
	for range 40 {
		d.Ask(d.now, 1, false, Forever)
	}
	rs := d.Requests(d.now)
	require.Len(t, rs, d.cfg.MaxInFlight)
	for _, r := range rs {
		require.Equal(t, lease.Amount{Tokens: 1}, r.Want)
	}
}

func TestPermanentFailuresFailTheCallers(t *testing.T) {
	d := newDesk(t)
	c := d.Ask(d.now, 1, false, Forever)
	r := d.one()
	d.Failed(d.now, r.Sent, r.ID, fmt.Errorf("asking: %w", lease.ErrFormat))
	require.ErrorIs(t, c.Err(), lease.ErrFormat)
	var refused *RefusedError
	require.True(t, errors.As(c.Err(), &refused) && refused.Never())
}
