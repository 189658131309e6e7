package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration"
	"ration/lease"
)

// TestTurnIsAHandleOrAReason ends the taking at all moments around a grant.
func TestTurnIsAHandleOrAReason(t *testing.T) {
	c, err := ration.Local(policy)
	require.NoError(t, err)
	defer c.Close(context.Background())
	limiter, err := c.Limiter("free")
	require.NoError(t, err)
	why := errors.New("enough")
	handles, reasons := 0, 0
	for i := range 2000 {
		soft, stop := context.WithCancelCause(t.Context())
		go stop(why)
		wait := time.Duration(0)
		if i%2 == 1 {
			wait = time.Nanosecond
		}
		h, err := turn(soft, t.Context(), limiter, 1, nil, wait)
		if h != nil {
			require.NoError(t, err, "round %d", i)
			require.NoError(t, h.Context().Err(), "a handle outlives the taking")
			h.Finish()
			handles++
			continue
		}
		require.Error(t, err, "round %d", i)
		require.True(t, errors.Is(err, why) || errors.Is(err, errLate), "round %d: %v", i, err)
		reasons++
	}
	require.Positive(t, reasons)
	t.Logf("%d handles, %d reasons", handles, reasons)
}

// TestAWaitThatIsOverIsSaidInOneWay, whoever noticed first.
func TestAWaitThatIsOverIsSaidInOneWay(t *testing.T) {
	require.NoError(t, lateness(nil))
	for _, err := range []error{
		errLate,
		context.DeadlineExceeded,
		lease.ErrTimedOut,
		fmt.Errorf("%w: %w", context.DeadlineExceeded, lease.ErrNoCoordinator),
		&ration.Refused{Key: "k", Rule: "1/10s", Wait: 9 * time.Second, Reason: lease.ErrTooLate},
		&ration.Refused{Reason: lease.ErrTooLate},
		&ration.Refused{Key: "k", Pause: "since then: so", Reason: lease.ErrPaused},
	} {
		said := lateness(err)
		require.ErrorIs(t, said, errLate, "%v", err)
		require.Regexp(t, "^no turn within --wait", said.Error())
	}
	refusal := &ration.Refused{Reason: lease.ErrNever, Never: true}
	require.Equal(t, error(refusal), lateness(refusal))
	require.ErrorContains(t, lateness(&ration.Refused{Key: "k", Rule: "1/10s", Wait: 9 * time.Second, Reason: lease.ErrTooLate}),
		`no turn within --wait: rule "1/10s" of "k" has none for 9s`)
}

// TestAWaitThatWasOverHereNamesTheRuleThatAnotherWasTold, as long as that has no
// turn.
func TestAWaitThatWasOverHereNamesTheRuleThatAnotherWasTold(t *testing.T) {
	c, err := ration.Local("limits: [{key: k, rules: [1/1h]}]")
	require.NoError(t, err)
	defer c.Close(context.Background())
	limiter, err := c.Limiter("k")
	require.NoError(t, err)
	v := &shift{limiter: limiter, cost: 1, wait: time.Nanosecond, tally: newTally(), hard: t.Context()}
	v.tight.Store(&tightness{"2/1m", "other", time.Now().Add(time.Minute), time.Minute})
	_, err = v.await(t.Context())
	require.ErrorIs(t, err, errLate)
	require.Regexp(t, `^no turn within --wait: rule "(2/1m" of "other" has none for (1m0s|59\.\d+s)|1/1h" of "k" .*)$`, err.Error())
	v.tight.Store(&tightness{"2/1m", "other", time.Now(), time.Minute})
	_, err = v.await(t.Context())
	require.ErrorIs(t, err, errLate)
	require.NotContains(t, err.Error(), "other", "it may have one by now")
	require.Positive(t, v.tally.waited, "waits without a turn are counted")
}
