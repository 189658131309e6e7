package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration"
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
		h, err := turn(soft, t.Context(), limiter, 1, wait)
		if h != nil {
			require.NoError(t, err, "round %d", i)
			require.NoError(t, h.Context().Err(), "a handle outlives the taking")
			h.Finish()
			handles++
			continue
		}
		require.Error(t, err, "round %d", i)
		require.True(t, errors.Is(err, why) || late(err), "round %d: %v", i, err)
		reasons++
	}
	require.Positive(t, reasons)
	t.Logf("%d handles, %d reasons", handles, reasons)
}
