package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

func of(unit string, n int64) lease.UnitAmount { return lease.UnitAmount{Unit: unit, N: n} }

// grantedUnits is granted with units besides.
func grantedUnits(r lease.Request, tokens int64, units ...lease.UnitAmount) lease.Answer {
	a := granted(r, tokens, 0, rate)
	a.Granted.Units = units
	return a
}

// hasUnits asks for one token and 300 of w, and gives the call, spent, with a lease
// granted that much and more.
func (d *desk) hasUnits(tokens, w int64) *Call {
	c := d.Ask(d.now, 1, false, Forever, of("w", 300))
	r := d.one()
	require.Equal(d.t, lease.Units{of("w", 300)}, r.Need.Units)
	d.Answered(d.now, r.Sent, grantedUnits(r, tokens, of("w", w)))
	require.Equal(d.t, Taken, c.State())
	require.True(d.t, d.Spend(d.now, c))
	d.Served()
	return c
}

func balancedUnits(t testing.TB, b Books, msg string) {
	t.Helper()
	require.Equal(t, b.UnitsGranted, b.UnitsSpent+b.UnitsReturned+b.UnitsExpired+b.UnitsHeld,
		"%s: units granted = spent + returned + expired + held: %+v", msg, b)
}

func TestCallTakesTokensAndUnitsTogetherOrNothing(t *testing.T) {
	d := newDesk(t)
	c := d.hasUnits(5, 500)
	short := d.Try(d.now, 1, of("w", 201))
	require.Nil(t, short, "200 are left")
	require.Nil(t, d.Try(d.now, 1, of("v", 1)), "of another unit there is none")
	require.EqualValues(t, 5, d.Books().Held, "no token was taken without its units, and the first call may return its own")
	enough := d.Try(d.now, 1, of("w", 200))
	require.NotNil(t, enough)
	require.True(t, d.Spend(d.now, enough))
	d.Finish(d.now, enough)
	d.Finish(d.now, c)
	d.pass(10 * ms)
	count := d.told()
	require.Equal(t, []lease.Point{{Count: 2, Age: 10 * ms, Units: lease.Units{of("w", 500)}}}, count.Points)
	balancedUnits(t, d.Books(), "two calls")
}

// What a call takes of several leases each of them tells of, at the same date.
func TestUnitsOfSeveralLeasesAreToldOfByEach(t *testing.T) {
	d := newDesk(t)
	d.Finish(d.now, d.hasUnits(5, 500))
	d.pass(5 * ms)
	second := d.Ask(d.now, 1, false, Forever, of("w", 300))
	require.Equal(t, Waiting, second.State(), "200 are left")
	r := d.one()
	d.Answered(d.now, r.Sent, grantedUnits(r, 1, of("w", 300)))
	require.True(t, d.Spend(d.now, second))
	d.Finish(d.now, second)
	d.Served()
	d.pass(5 * ms)
	counts, _ := d.Report(d.now, true)
	require.Len(t, counts, 2)
	require.Equal(t, []lease.Point{
		{Count: 1, Age: 10 * ms, Units: lease.Units{of("w", 300)}},
		{Count: 2, Age: 5 * ms, Units: lease.Units{of("w", 500)}},
	}, counts[0].Points)
	require.Equal(t, []lease.Point{{Count: 0, Age: 5 * ms, Units: lease.Units{of("w", 100)}}}, counts[1].Points)

	require.EqualValues(t, 1, counts[1].Returned)
	require.Equal(t, lease.Units{of("w", 200)}, counts[1].ReturnedUnits, "it fell short of what was wanted, so others want it")

	// A point of units alone is acknowledged as others are: nothing is left to tell of
	// the second lease.
	d.Replied(d.now, lease.Report{Sent: d.now, Counts: counts}, lease.Reply{})
	require.Empty(t, d.told().Points)
	balancedUnits(t, d.Books(), "two leases")
}

func TestBatchAsksForUnitsInProportion(t *testing.T) {
	d := newDesk(t)
	d.demand.batch, d.demand.grown = 10, true
	for range 4 {
		d.Ask(d.now, 1, false, Forever, of("w", 300))
	}
	r := d.one()
	require.Equal(t, lease.Amount{Tokens: 1, Units: lease.Units{of("w", 300)}}, r.Need)
	require.Equal(t, lease.Amount{Tokens: 10, Units: lease.Units{of("w", 3000)}}, r.Want, "what ten such calls cost")

	// Of tokens there will be enough for one more; of units it asks for what it lacks.
	d.Ask(d.now, 1, false, Forever, of("v", 5), of("w", 2000))
	second := d.one()
	require.Equal(t, lease.Amount{Tokens: 1, Units: lease.Units{of("v", 5), of("w", 2000)}}, second.Need)
	require.LessOrEqual(t, second.Want.Tokens, int64(10)-6, "tokens that lack units serve first")
	require.NoError(t, second.Validate())

	d.Answered(d.now, r.Sent, grantedUnits(r, 10, r.Want.Units...))
	d.Answered(d.now, second.Sent, grantedUnits(second, second.Want.Tokens, second.Want.Units...))
	require.Len(t, d.Served(), 5)
	require.Empty(t, d.Requests(d.now), "the batch serves the others")
}

// However many units the callers of a key name, a request names what it may.
func TestRequestNamesNoMoreUnitsThanItMay(t *testing.T) {
	d := newDesk(t)
	for i := range 20 {
		d.Ask(d.now, 1, false, Forever, of(string(rune('a'+i)), 7))
	}
	for _, r := range d.Requests(d.now) {
		require.NoError(t, r.Validate())
	}
}

func TestSettleGivesUnusedUnitsToTheNextCallerOrBack(t *testing.T) {
	d := newDesk(t)
	c := d.hasUnits(2, 300)
	next := d.Ask(d.now, 1, false, Forever, of("w", 200))
	require.Equal(t, Waiting, next.State())
	require.NoError(t, d.Settle(d.now, c, 1, of("w", 90)))
	require.Equal(t, Taken, next.State(), "210 were not used")
	require.True(t, d.Spend(d.now, next))
	d.Served()
	require.NoError(t, d.Settle(d.now, next, 0, of("w", 0)))
	b := d.Books()
	require.EqualValues(t, 90, b.UnitsSpent)
	require.EqualValues(t, 1, b.Spent)
	balancedUnits(t, b, "settled")
	d.pass(time.Second)
	count := d.told()
	require.Equal(t, lease.Units{of("w", 210)}, count.ReturnedUnits)
	require.EqualValues(t, 1, count.Returned)

	all := newDesk(t)
	c = all.hasUnits(1, 300)
	require.NoError(t, all.Settle(all.now, c, 1), "of a unit that is not named all is used")
	require.EqualValues(t, 300, all.Books().UnitsSpent)

	over := newDesk(t)
	require.NoError(t, over.Settle(over.now, over.hasUnits(1, 300), 1, of("v", 7), of("w", 301)))
	require.EqualValues(t, 300, over.Books().UnitsSpent)
	require.EqualValues(t, 8, over.Books().UnitsOverspent)
	counts, _ := over.Report(over.now, false)
	require.Equal(t, lease.Units{of("v", 7), of("w", 1)}, counts[len(counts)-1].OverUnits)

	for _, wrong := range []lease.UnitAmount{of("w", algo.MaxLimit+1), of("w", -1)} {
		d := newDesk(t)
		c := d.hasUnits(1, 300)
		require.ErrorContains(t, d.Settle(d.now, c, 1, wrong), "all that it asked for counts as spent")
		require.EqualValues(t, 300, d.Books().UnitsSpent)
	}
}

func TestCancelledCallGivesItsUnitsBack(t *testing.T) {
	d := newDesk(t)
	d.Cancel(d.now, d.hasUnits(1, 300))
	count := d.told()
	require.EqualValues(t, 1, count.Returned)
	require.Equal(t, lease.Units{of("w", 300)}, count.ReturnedUnits)
	require.Empty(t, count.Points)
	balancedUnits(t, d.Books(), "cancelled")
}

func TestUnitsExpireWithTheirLease(t *testing.T) {
	d := newDesk(t)
	c := d.Ask(d.now, 1, false, Forever, of("w", 300))
	r := d.one()
	d.Answered(d.now, r.Sent, grantedUnits(r, 1, of("w", 400)))
	d.Served()
	d.now = 5*time.Second - lease.Margin(5*time.Second)
	require.False(t, d.Spend(d.now, c), "past the deadline it is no spend")
	require.Equal(t, Waiting, c.State())
	d.Tick(d.now)
	b := d.Books()
	require.EqualValues(t, 400, b.UnitsExpired)
	require.Zero(t, b.UnitsHeld)
	d.Cancel(d.now, c)
}

func TestIdleAndRecalledUnitsGoBack(t *testing.T) {
	for name, give := range map[string]func(*desk){
		"idle":     func(d *desk) { d.pass(400 * ms) },
		"recalled": func(d *desk) { d.pass(300 * ms); d.Recalled(d.now, lease.Recall{Key: "k"}) },
		"closed":   func(d *desk) { d.Close(d.now) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.Finish(d.now, d.hasUnits(1, 500)) // units without tokens are left
			give(d)
			require.Equal(t, lease.Units{of("w", 200)}, d.told().ReturnedUnits)
			balancedUnits(t, d.Books(), name)
		})
	}
}

// A refusal for want of units says nothing of callers who need fewer, or none.
func TestRefusalOfUnitsFailsWhoNeedsAsMany(t *testing.T) {
	d := newDesk(t)
	many := d.Ask(d.now, 1, false, Forever, of("w", 300))
	more := d.Ask(d.now, 1, false, Forever, of("w", 301))
	few := d.Ask(d.now, 1, false, Forever, of("w", 299))
	none := d.Ask(d.now, 7, false, Forever)
	r := d.Requests(d.now)[0]
	require.Equal(t, lease.Units{of("w", 300)}, r.Need.Units)
	d.Answered(d.now, r.Sent, refusal(r, lease.ErrNever))
	require.Equal(t, Failed, many.State())
	require.Equal(t, Failed, more.State())
	require.Equal(t, Waiting, few.State())
	require.Equal(t, Waiting, none.State())
}

// An Allow with units that finds none starts a refill of both, and one that was in
// vain does not keep Allow without units from its own.
func TestAllowWithUnitsRefills(t *testing.T) {
	d := newDesk(t)
	require.False(t, d.Allow(d.now, 2, of("w", 300)))
	r := d.one()
	require.Equal(t, lease.Amount{Tokens: 2, Units: lease.Units{of("w", 300)}}, r.Need)
	require.False(t, d.Allow(d.now, 2, of("w", 300)))
	require.Empty(t, d.Requests(d.now), "it is under way")
	d.Answered(d.now, r.Sent, refusal(r, lease.ErrLimit))
	require.False(t, d.Allow(d.now, 2, of("w", 300)))
	require.Empty(t, d.Requests(d.now), "it was in vain a moment ago")

	require.False(t, d.Allow(d.now, 1))
	plain := d.one()
	require.Equal(t, lease.Amount{Tokens: 1}, plain.Need)
	d.Answered(d.now, plain.Sent, granted(plain, 1, 0, rate))
	require.True(t, d.Allow(d.now, 1))
	for _, r := range d.Requests(d.now) {
		d.Answered(d.now, r.Sent, refusal(r, lease.ErrLimit))
	}

	d.pass(2 * time.Second)
	for _, r := range d.Requests(d.now) {
		d.Answered(d.now, r.Sent, refusal(r, lease.ErrLimit))
	}
	d.pass(2 * time.Second)
	require.False(t, d.Allow(d.now, 1, of("w", 300)))
	again := d.one()
	d.Answered(d.now, again.Sent, grantedUnits(again, again.Want.Tokens, again.Want.Units...))
	require.True(t, d.Allow(d.now, 1, of("w", 300)))
	d.pass(time.Second)
	balancedUnits(t, d.Books(), "allowed")
}

// What is kept for the next Allow stays what was asked for, however often the idle
// is looked at.
func TestKeptUnitsStayWhatWasAskedFor(t *testing.T) {
	d := newDesk(t)
	asked := lease.Units{of("w", 300)}
	require.False(t, d.Allow(d.now, 1, asked...))
	r := d.one()
	d.Answered(d.now, r.Sent, grantedUnits(r, 1, of("w", 300)))
	d.pass(time.Second)
	require.Equal(t, lease.Units{of("w", 300)}, asked)
	require.True(t, d.Allow(d.now, 1, asked...))
}

// An Allow with units and one without do not drive each other's refills out.
func TestRefillsWithAndWithoutUnitsAreBounded(t *testing.T) {
	d := newDesk(t)
	requests := 0
	for range 200 {
		d.Allow(d.now, 1, of("w", 5))
		d.Allow(d.now, 1)
		for _, r := range d.Requests(d.now) {
			requests++
			d.Answered(d.now, r.Sent, refusal(r, lease.ErrLimit))
		}
		d.pass(ms)
	}
	require.LessOrEqual(t, requests, 6, "two to a pause")
}
