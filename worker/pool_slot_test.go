package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// slotted gives a desk with one call that runs, of a lease of so much.
func slotted(t *testing.T, tokens, slots int64) (*desk, *Call) {
	d := newDesk(t)
	c := d.Ask(d.now, 1, true, Forever)
	r := d.one()
	require.Equal(t, lease.Amount{Tokens: 1, Slots: 1}, r.Need)
	d.Answered(d.now, r.Sent, granted(r, tokens, slots, capped))
	require.True(t, d.Spend(d.now, c))
	require.True(t, c.HasSlot())
	d.Served()
	return d, c
}

func TestACallerThatCannotGiveASlotBackIsRefused(t *testing.T) {
	d, _ := slotted(t, 5, 2)
	c := d.Ask(d.now, 1, false, Forever)
	require.ErrorIs(t, c.Err(), lease.ErrNeedsSlot)
	require.False(t, d.Allow(d.now, 1))
}

func TestASlotServesOneCallAfterAnotherWithoutAMessage(t *testing.T) {
	d, c := slotted(t, 10, 1)
	for range 5 {
		next := d.Ask(d.now, 1, true, Forever)
		require.Equal(t, Waiting, next.State())
		d.Requests(d.now)
		d.Finish(d.now, c)
		require.Equal(t, Taken, next.State())
		require.True(t, d.Spend(d.now, next))
		c = next
		d.now += ms
	}
	require.EqualValues(t, 5, d.Books().Handed)
	require.Zero(t, d.told().Freed)
}

func TestASlotThatNobodyWantsIsFreedSoon(t *testing.T) {
	d, c := slotted(t, 1, 1)
	d.Finish(d.now, c)
	d.pass(d.cfg.SlotLinger)
	require.LessOrEqual(t, d.Due(), d.now+ms)
	got := d.told()
	require.EqualValues(t, 1, got.Freed)
	require.Zero(t, got.Cut)
}

func TestAnAbandonedCallsSlotIsCutAndNotUsedAgain(t *testing.T) {
	d, c := slotted(t, 5, 1)
	next := d.Ask(d.now, 1, true, Forever)
	d.Requests(d.now)
	d.Abandon(d.now, c)
	require.Equal(t, Waiting, next.State())
	got := d.told()
	require.EqualValues(t, 1, got.Cut)
	require.Zero(t, got.Freed)
	require.Equal(t, []lease.Point{{Count: 1}}, got.Points, "it left: its token is spent")
}

func TestRecalledSlotsGoBackAsCallsEndThoughOthersWait(t *testing.T) {
	d, c := slotted(t, 5, 1)
	next := d.Ask(d.now, 1, true, Forever)
	d.Requests(d.now)
	d.Recalled(d.now, lease.Recall{Key: "k", Slots: 1})
	require.Zero(t, d.told().Freed)
	d.Finish(d.now, c)
	require.Equal(t, Waiting, next.State())
	require.EqualValues(t, 1, d.told().Freed)
}

func TestACallThatIsLongerThanTheSlotTTLKeepsItsSlotByHeartbeats(t *testing.T) {
	d, c := slotted(t, 1, 1)
	for range 30 {
		d.pass(time.Second)
		sent := lease.Report{Sent: d.now, Heartbeat: true}
		sent.Counts, _ = d.Report(d.now, true)
		d.pass(10 * ms)
		d.Replied(d.now, sent, lease.Reply{Renewed: []lease.Renewal{{ID: d.id(1), SlotTTL: 10 * time.Second}}})
	}
	require.Equal(t, Running, c.State())
	d.Finish(d.now, c)
	d.pass(5 * ms)
	require.EqualValues(t, 1, d.told().Freed)
}

func TestRenewalCountsFromTheSendingOfItsReport(t *testing.T) {
	d, c := slotted(t, 1, 1)
	sent := lease.Report{Sent: time.Second, Heartbeat: true}
	d.now = time.Second
	sent.Counts, _ = d.Report(d.now, true)
	d.pass(5 * time.Second)
	d.Replied(d.now, sent, lease.Reply{Renewed: []lease.Renewal{{ID: d.id(1), SlotTTL: 10 * time.Second}}})
	end := 11*time.Second - lease.Margin(10*time.Second)
	d.pass(end - d.now - 1)
	require.Equal(t, Running, c.State())
	d.pass(1)
	require.Equal(t, Lost, c.State())
	require.Equal(t, []*Call{c}, d.Served())
}

func TestALostSlotEndsItsCallAndIsNeitherUsedNorFreed(t *testing.T) {
	d, c := slotted(t, 20, 1)
	counts, _ := d.Report(d.now, true)
	d.Replied(d.now, lease.Report{Counts: counts}, lease.Reply{Ended: []lease.ID{d.id(1)}})
	require.Equal(t, Lost, c.State())
	require.ErrorIs(t, c.Err(), ErrLeaseLost)
	d.Finish(d.now, c)
	counts, _ = d.Report(d.now, true)
	require.Empty(t, counts)
	require.Equal(t, Waiting, d.Ask(d.now, 1, true, Forever).State())
}

func TestANewIncarnationLosesSlotsAndAsksAnew(t *testing.T) {
	d, c := slotted(t, 1, 1)
	next := d.Ask(d.now, 1, true, Forever)
	old := d.Requests(d.now)
	d.Restart(d.now)
	require.Equal(t, Lost, c.State())
	require.Equal(t, Waiting, next.State())
	fresh := d.Requests(d.now)
	require.Len(t, fresh, 1)
	require.NotEqual(t, old[0].ID, fresh[0].ID)
	d.Answered(d.now, old[0].Sent, granted(old[0], 1, 1, capped))
	require.Equal(t, Waiting, next.State(), "an answer to the old life is dropped")
}

func TestOnCloseSlotsThatServeAreCut(t *testing.T) {
	d, c := slotted(t, 3, 2)
	d.Close(d.now)
	require.Equal(t, Lost, c.State())
	got := d.told()
	require.EqualValues(t, 1, got.Cut)
	require.EqualValues(t, 1, got.Freed)
	require.EqualValues(t, 2, got.Returned)
}

func TestTokensAreAskedForWithoutASlotWhereOneIsIdle(t *testing.T) {
	d, c := slotted(t, 1, 1)
	next := d.Ask(d.now, 1, true, Forever)
	require.Equal(t, lease.Amount{Tokens: 1, Slots: 1}, d.one().Need)
	d.Finish(d.now, c)
	r := d.one()
	require.Equal(t, lease.Amount{Tokens: 1}, r.Need)
	d.Answered(d.now, r.Sent, granted(r, 1, 0, capped))
	require.Equal(t, Taken, next.State())
}
