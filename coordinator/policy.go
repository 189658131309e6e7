package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ration/lease"
)

// errReformed says that what a leader does about its mirror is another thing under the
// policy that is in force now: it leads anew.
var errReformed = errors.New("coordinator: another policy is in force")

// InForce is a policy, and the revision under which it was in force last; 0 is for never.
type InForce struct {
	Policy   *lease.Policy
	Revision uint64
}

// Force gives the policy that a leader goes by who has won a seat, of the one that it
// knows. That of the mirror counts, whatever a file says: read gives it. Where the mirror
// has none, or has gone back behind it, the known one does.
func Force(seat lease.Seat, known InForce, read func() (lease.PolicyRecord, error)) (InForce, error) {
	if seat.Revision == 0 || seat.Revision < known.Revision {
		return known, nil
	}
	r, err := read()
	if err != nil {
		return known, err
	}
	if r.Revision != seat.Revision {
		return known, fmt.Errorf("coordinator: the seat names policy revision %d, and the mirror has %d", seat.Revision, r.Revision)
	}
	p, err := lease.ParsePolicy("revision "+fmt.Sprint(r.Revision), []byte(r.Text))
	if err != nil {
		return known, fmt.Errorf("%w: the policy in force cannot be read by this version; start one that reads it:\n%w", lease.ErrFormat, err)
	}
	return InForce{p, r.Revision}, nil
}

// force finds the policy for a seat that was won, asking until the mirror answers.
func (c *Coordinator) force(ctx context.Context, seat lease.Seat) (InForce, error) {
	for {
		p, err := Force(seat, *c.policy.Load(), func() (r lease.PolicyRecord, err error) {
			err = c.within(ctx, func(ctx context.Context) (err error) {
				r, err = c.config.Mirror.Policy(ctx)
				return err
			})
			return r, err
		})
		if err == nil || errors.Is(err, lease.ErrFormat) {
			return p, err
		}
		c.config.Log.Warn("the mirror does not tell the policy in force; nobody is served until it does", "error", err)
		if err := pause(ctx, c.config.RenewEvery); err != nil {
			return p, err
		}
	}
}

// learn takes up the policy in force, while another leads: if the mirror loses it with its
// leader, it is known here.
func (c *Coordinator) learn(ctx context.Context, seen lease.Seat) {
	if seen.Revision == 0 || seen.Revision == c.policy.Load().Revision {
		return
	}
	p, err := Force(seen, *c.policy.Load(), func() (lease.PolicyRecord, error) { return c.config.Mirror.Policy(ctx) })
	if err == nil { // else it is asked for again when it matters
		c.policy.Store(&p)
	}
}

// Policy is the policy in force as far as the coordinator knows, or that of its config with
// revision 0. It may be called from any goroutine.
func (c *Coordinator) Policy() InForce { return *c.policy.Load() }

// Policy is the one that the leader goes by. It may be called from any goroutine.
func (l *Leader) Policy() InForce { return *l.policy.Load() }

// Change puts another policy into force, under a revision of at least so much, and gives
// that when the turn of the change is recorded. The same policy again changes nothing, and
// its revision is given. It waits until all records of the mirror are loaded and the mirror
// has caught up. What was not taken up before ctx ended is not done; else it is unknown
// whether the policy is in force, and it can be given again. A leader whose policy says of the
// mirror what the one before did not stops serving, and leads anew.
func (l *Leader) Change(ctx context.Context, p *lease.Policy, least uint64) (revision uint64, err error) {
	return await(ctx, func(told func(uint64, error)) {
		l.inbox.put(envelope{policy: p, least: least, changed: told, over: ctx.Err})
	})
}

// reforms is the changes of policy that wait for their turn, and those that are in it.
type reforms struct {
	waiting []envelope
	in      []reformed
}

type reformed struct {
	revision uint64
	told     func(uint64, error)
}

// gather takes the changes of policy out of what came.
func (r *reforms) gather(came []envelope) {
	for i := range came {
		if came[i].policy != nil {
			r.waiting = append(r.waiting, came[i])
		}
	}
}

// abandon lets go of the changes that nobody waits for any more.
func (r *reforms) abandon() {
	r.waiting = slices.DeleteFunc(r.waiting, func(e envelope) bool {
		err := e.over()
		if err != nil {
			e.changed(0, err)
		}
		return err != nil
	})
}

// reform lets the turn that comes be the one of all that wait, if the mirror has nothing
// that the ledger lacks, nor lacks anything.
func (t *turns) reform() {
	r := &t.reforms
	if r.abandon(); len(r.waiting) == 0 || !t.mirror.even() {
		return
	}
	for _, e := range r.waiting {
		revision, changed := t.ledger.Change(e.policy, e.least)
		if changed {
			t.leader.config.Log.Info("another policy is in force", "revision", revision)
			t.leader.revision.Store(revision) // before a renewal finds it in the mirror
		}
		r.in = append(r.in, reformed{revision, e.changed})
	}
	clear(r.waiting)
	r.waiting = r.waiting[:0]
}

// reformed tells of the changes that the turn had, and says whether to lead anew.
func (t *turns) reformed() error {
	r := &t.reforms
	if len(r.in) > 0 {
		p, revision := t.ledger.Policy()
		t.leader.policy.Store(&InForce{p, revision})
	}
	var err error
	if t.mirror.away() {
		err = lease.ErrMirrorAway // it is in force, and not recorded
	}
	for i, c := range r.in {
		c.told(c.revision, err)
		r.in[i] = reformed{}
	}
	r.in = r.in[:0]
	if !t.leader.config.Lease.Unmirrored && t.leader.Policy().Policy.Mirror != t.leader.mode && t.mirror.even() {
		return errReformed
	}
	return nil
}

// fail tells all that they will not come into force here.
func (r *reforms) fail(err error) {
	for _, e := range r.waiting {
		e.changed(0, err)
	}
	for _, c := range r.in {
		c.told(0, err)
	}
}
