package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"ration/lease"
)

// goodbyes is how often a goodbye is said at most.
const goodbyes = 3

// goodbye tells the final counts of all lanes, all messages at once. The first
// time does not ask whether ctx has ended, since it is clean-up; the others do.
func (t *tenant) goodbye(ctx context.Context) error {
	err := t.sayGoodbye(context.WithoutCancel(ctx))
	for try := 1; err != nil && try < goodbyes; try++ {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(t.worker.cfg.Pool.BackoffMax):
		}
		if again := t.sayGoodbye(ctx); again == nil || ctx.Err() == nil {
			err = again // else the first one says more
		}
	}
	return err
}

func (t *tenant) sayGoodbye(ctx context.Context) error {
	life := t.worker.life.Load()
	sent := t.worker.clock.now()
	var parts []told
	for _, l := range t.all() {
		if part, _, _ := l.report(life, true, sent); len(part.counts)+len(part.givenUp) > 0 {
			parts = append(parts, part)
		}
	}
	return atOnce(pack(parts, t.worker.cfg.MaxCounts), func(message []told) error {
		r := lease.Report{Holder: life.holder, Sent: sent, Goodbye: true}
		return t.tell(ctx, r, message)
	})
}

// atOnce calls f for all at once, waits for them, and joins their errors, those
// that say the same as one.
func atOnce[T any](all []T, f func(T) error) error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, one := range all {
		group.Go(func() { errs[i] = f(one) })
	}
	group.Wait()
	said := map[string]bool{}
	var joined []error
	for _, err := range errs {
		if err != nil && !said[err.Error()] {
			said[err.Error()] = true
			joined = append(joined, err)
		}
	}
	return errors.Join(joined...)
}
