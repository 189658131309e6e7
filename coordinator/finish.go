package coordinator

import "context"

// finish lets a mirror catch up, before the seat is given up. One that is away has a seat TTL
// to come back: what was granted without it would be forgotten.
func (t *turns) finish(ctx context.Context) {
	i := t.mirror.impatient
	if i == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.leader.config.Seat.TTL)
	defer cancel()
	for _, behind := i.Behind(); behind && ctx.Err() == nil; _, behind = i.Behind() {
		if t.catchUp(ctx) != nil {
			break
		}
	}
	if b, behind := i.Behind(); behind {
		t.leader.config.Log.Warn("the mirror has not caught up; what it lacks is forgotten", "since", b.Since, "leases", b.Leases, "tokens", b.Granted.Tokens, "slots", b.Granted.Slots)
	}
}

// catchUp takes up one answer of a mirror that is away, or else takes a turn.
func (t *turns) catchUp(ctx context.Context) error {
	i := t.mirror.impatient
	if !i.Away() {
		t.gather()
		return t.step(ctx)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case follow := <-i.follows:
		return follow()
	}
}
