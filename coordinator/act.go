package coordinator

import (
	"cmp"
	"context"
	"time"

	"ration/algo"
	"ration/lease"
)

// Act does what an operator asks of a key: it is a change in a turn, and returns when that is
// recorded. All acts may be repeated: a charge counts once by its id. A reset waits until all
// keys are loaded after a takeover.
//
// The error is that of lease.Act.Validate or of lease.Ledger.Act, and then nothing was done; or
// else it is unknown whether anything was. Where the mirror is away, and turns go on without,
// it is lease.ErrMirrorAway, and the act may be in force.
func (l *Leader) Act(ctx context.Context, a lease.Act) (lease.Acted, error) {
	if err := a.Validate(); err != nil {
		return lease.Acted{}, err
	}
	if a.Verb == lease.VerbReset {
		if err := l.complete(ctx); err != nil {
			return lease.Acted{}, err
		}
	}
	return await(ctx, func(told func(lease.Acted, error)) {
		var acted lease.Acted
		var refused error
		l.inbox.put(envelope{
			about: a.Key,
			change: func(ledger *lease.Ledger) {
				now, wall := l.clock.read()
				acted, refused = ledger.Act(now, wall, a)
			},
			looked: func(err error) { told(acted, cmp.Or(refused, err)) },
		})
	})
}

// complete waits until the ledger has all that the mirror has.
func (l *Leader) complete(ctx context.Context) error {
	for {
		complete := false
		if err := l.Look(ctx, func(_ algo.Instant, ledger *lease.Ledger) { complete = ledger.Complete() }); err != nil || complete {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pageEvery):
		}
	}
}
