package lease_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestTenantsCannotReachEachOther: rights are granted by tenant, and a message
// of one that names the holder and ids of another returns nothing of its, ends
// nothing of its, and does not make its messages look old.
func TestTenantsCannotReachEachOther(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "{tenant}", rules: [100/1m, 4 concurrent]}]`), lease.DefaultConfig())
	r := ask("victim", 1, start, time.Second, "theirs")
	r.Need, r.Want = lease.Amount{Tokens: 10, Slots: 2}, lease.Amount{Tokens: 10, Slots: 2}
	require.Equal(t, lease.Granted, turn(t, l, start, r).Answers[0].Answer.Outcome)
	next := ask("victim", 2, start, time.Second, "theirs")

	ours := []lease.Key{"ours"}
	got := turn(t, l, start, &lease.Report{
		Holder: r.ID.Holder, Sent: math.MaxInt64, Heartbeat: true, Goodbye: true,
		Counts:  []lease.Count{{ID: r.ID, Keys: ours, Returned: 10, Freed: 2}},
		GivenUp: []lease.GivenUp{{ID: r.ID, Keys: ours}, {ID: next.ID, Keys: ours}},
	})
	require.Equal(t, []lease.ID{r.ID}, got.Replies[0].Reply.Ended, "they have no such lease")
	require.Equal(t, lease.Amount{Tokens: 10, Slots: 2}, l.Summary(start).Held)
	require.Equal(t, lease.Granted, turn(t, l, start, next).Answers[0].Answer.Outcome, "the id is not given up, and it is not old")
}

// TestReportOfOtherKeysThanTheLeasesTouchesNothing, also of the same tenant.
func TestReportOfOtherKeysThanTheLeasesTouchesNothing(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "{t}/{k}", rules: [100/1m]}]`), lease.DefaultConfig())
	r := ask("a", 1, start, 0, "t/x")
	turn(t, l, start, r)
	turn(t, l, start, &lease.Report{Holder: r.ID.Holder, Counts: []lease.Count{{ID: r.ID, Keys: []lease.Key{"t/y"}, Returned: 1}}})
	require.Equal(t, int64(1), l.Summary(start).Held.Tokens)
}

// TestOneIDIsOneRequest: an id used again for other keys, or for more, is
// refused, and not answered with the grant that it had.
func TestOneIDIsOneRequest(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "t/{k}", rules: [10/1m]}]`), lease.DefaultConfig())
	turn(t, l, start, ask("a", 1, start, 0, "t/x"))
	other := ask("a", 1, start, 0, "t/y")
	got := turn(t, l, start, other).Answers[0].Answer
	require.Equal(t, lease.Refused, got.Outcome)
	require.ErrorIs(t, got.Refusal.Reason, lease.ErrBadRequest)
	more := ask("a", 1, start, 0, "t/x")
	more.Need.Tokens, more.Want.Tokens = 5, 5
	require.ErrorIs(t, turn(t, l, start, more).Answers[0].Answer.Refusal.Reason, lease.ErrBadRequest)
	all := ask("b", 1, start, 0, "t/x")
	all.Need.Tokens, all.Want.Tokens = 9, 9
	waits := ask("c", 1, start, 2*time.Minute, "t/x")
	changed := ask("c", 1, start, 2*time.Minute, "t/x")
	changed.Need.Tokens, changed.Want.Tokens = 2, 2
	got = turn(t, l, start, all, waits, changed).Answers[0].Answer // grants are answered last
	require.ErrorIs(t, got.Refusal.Reason, lease.ErrBadRequest)
	require.Equal(t, 1, l.Summary(start).Waiting, "the first still waits")
}
