package bus

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestClerkSaysWhyThereIsNoAnswer: what the coordinator does not do in time waits for its
// mirror, and what it does not do any more is the next leader's. Neither is a fault of it.
func TestClerkSaysWhyThereIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clerk{tells: "what was done", most: 1 << 10}
		hangs := func(ctx context.Context) (any, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("recording it: %w", ctx.Err())
		}
		began := time.Now()
		_, err := c.answer(t.Context(), hangs)
		require.Equal(t, lease.ErrMirrorAway.Code(), lease.Code(err))
		require.Equal(t, clerkWait, time.Since(began))

		serving, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		_, err = c.answer(serving, hangs)
		require.Equal(t, lease.ErrStopped.Code(), lease.Code(err))

		own := fmt.Errorf("%w: no", lease.ErrBadRequest)
		_, err = c.answer(t.Context(), func(context.Context) (any, error) { return nil, own })
		require.Equal(t, own, err)
	})
}
