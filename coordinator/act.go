package coordinator

import (
	"cmp"
	"context"

	"ration/lease"
)

// Act does what an operator asks of a key: it is a change in a turn, and returns when that is
// recorded. All acts may be repeated: a charge counts once by its id. A reset waits until all
// that the mirror has is loaded after a takeover, whether that is in doubt or not. What was not
// taken up before ctx ended is not done.
//
// The error is that of lease.Act.Validate or of lease.Ledger.Act, and then nothing was done; or
// else it is unknown whether anything was. Where the mirror is away, and turns go on without,
// it is lease.ErrMirrorAway, and the act may be in force.
func (l *Leader) Act(ctx context.Context, a lease.Act) (lease.Acted, error) {
	if err := a.Validate(); err != nil {
		return lease.Acted{}, err
	}
	return await(ctx, func(told func(lease.Acted, error)) {
		var acted lease.Acted
		var refused error
		l.inbox.put(envelope{
			about: a.Key,
			whole: a.Verb == lease.VerbReset,
			change: func(ledger *lease.Ledger) {
				if refused = ctx.Err(); refused != nil {
					return
				}
				now, wall := l.clock.read()
				acted, refused = ledger.Act(now, wall, a)
			},
			looked: func(err error) { told(acted, cmp.Or(refused, err)) },
		})
	})
}
