package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// failing answers reports with one error after another, and then with none.
type failing struct {
	errs  []error
	asked int
}

func (l *failing) Acquire(ctx context.Context, _ lease.Request) (lease.Answer, error) {
	<-ctx.Done()
	return lease.Answer{}, ctx.Err()
}

func (l *failing) Report(context.Context, lease.Report) (lease.Reply, error) {
	if l.asked++; l.asked <= len(l.errs) {
		return lease.Reply{}, l.errs[l.asked-1]
	}
	return lease.Reply{}, nil
}

func (l *failing) Recalls(ctx context.Context, _ lease.Holder, _ func(lease.Recall)) error {
	<-ctx.Done()
	return nil
}

// TestContactWaitsForWhoIsAbsentAlone: what no waiting changes is told at once.
func TestContactWaitsForWhoIsAbsentAlone(t *testing.T) {
	forbidden := errors.New("it is forbidden")
	for _, c := range []struct {
		err  error
		goes bool
	}{
		{lease.ErrNoCoordinator, true}, {fmt.Errorf("asking: %w", lease.ErrStopped), true}, {lease.ErrInternal, true},
		{context.DeadlineExceeded, true}, {lease.ErrFormat, false}, {lease.ErrBadRequest, false}, {forbidden, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &failing{errs: []error{c.err, c.err}}
			config := DefaultConfig()
			config.MonotonicOnly = true
			w, err := New(l, config)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err = w.Contact(ctx, "k")
			if c.goes {
				require.NoError(t, err, "%v", c.err)
				require.Equal(t, 3, l.asked)
			} else {
				require.ErrorIs(t, err, c.err)
				require.Equal(t, 1, l.asked)
			}
			require.NoError(t, w.Close(t.Context()))
		})
	}
}
