package worker

import (
	"context"
	"errors"
	"time"

	"ration/lease"
)

// Contact asks whether the lessor of a key answers, until it does or ctx ends. It
// gives up an id that no request ever had, which changes nothing there.
func (w *Worker) Contact(ctx context.Context, key lease.Key) error {
	f := w.life.Load()
	r := lease.Report{Holder: f.holder, GivenUp: []lease.GivenUp{{ID: f.id(), Keys: []lease.Key{key}}}}
	for {
		err := w.contact(ctx, r)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(w.cfg.Pool.BackoffMin):
		}
		if ctx.Err() == nil && absent(err) {
			continue
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return lease.ErrNoCoordinator
		}
		return err
	}
}

// absent says that whoever is to answer may do so a moment later. An error of
// neither the lessor nor the wait, such as that NATS forbids to ask, is no absence.
func absent(err error) bool {
	var told *lease.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &told) && passing(err)
}

func (w *Worker) contact(ctx context.Context, r lease.Report) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.SendTimeout)
	defer cancel()
	r.Sent = w.clock.now()
	_, err := w.lessor.Report(ctx, r)
	return err
}
