package coordinator_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"ration/coordinator"
	"ration/lease"
)

// absent is a mirror that can be away altogether: what it is asked fails, or hangs, or is
// done and the answer is lost.
type absent struct {
	*coordinator.Memory
	how  atomic.Pointer[string]
	away atomic.Bool
	slow atomic.Int64 // a turn takes so many nanoseconds

	mu   sync.Mutex
	seqs []uint64 // of the turns that were given, again and again
}

var ways = []string{"fails", "hangs", "loses the answer"}

// asked gives what becomes of a question: whether it is done, and its error.
func (a *absent) asked(ctx context.Context) (done bool, err error) {
	switch {
	case !a.away.Load():
		return true, nil
	case *a.how.Load() == "hangs":
		<-ctx.Done()
		return false, ctx.Err()
	}
	return *a.how.Load() == "loses the answer", errors.New("away")
}

func (a *absent) Apply(ctx context.Context, t *lease.Turn) error {
	a.mu.Lock()
	a.seqs = append(a.seqs, t.Seq)
	a.mu.Unlock()
	time.Sleep(time.Duration(a.slow.Load()))
	done, err := a.asked(ctx)
	if done {
		err = errors.Join(err, a.Memory.Apply(ctx, t))
	}
	return err
}

func (a *absent) Load(ctx context.Context, e lease.Epoch, keys []lease.Key) ([]lease.Record, error) {
	if _, err := a.asked(ctx); err != nil {
		return nil, err
	}
	return a.Memory.Load(ctx, e, keys)
}

func (a *absent) Keys(ctx context.Context, e lease.Epoch, from string) ([]lease.Key, string, error) {
	if _, err := a.asked(ctx); err != nil {
		return nil, "", err
	}
	return a.Memory.Keys(ctx, e, from)
}

func (a *absent) Look(ctx context.Context) (lease.Seat, error) {
	if _, err := a.asked(ctx); err != nil {
		return lease.Seat{}, err
	}
	return a.Memory.Look(ctx)
}

func (a *absent) Campaign(ctx context.Context, seen, next lease.Seat) error {
	done, err := a.asked(ctx)
	if done {
		err = errors.Join(err, a.Memory.Campaign(ctx, seen, next))
	}
	return err
}

func (a *absent) Renew(ctx context.Context, e lease.Epoch, p lease.Pulse) error {
	if _, err := a.asked(ctx); err != nil {
		return err
	}
	return a.Memory.Renew(ctx, e, p)
}

func (a *absent) Resign(ctx context.Context, e lease.Epoch) error {
	if _, err := a.asked(ctx); err != nil {
		return err
	}
	return a.Memory.Resign(ctx, e)
}
