package coordinator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ration/lease"
)

// errAway says that the mirror is not waited for any longer.
var errAway = errors.New("coordinator: the mirror is away")

// impatient is how the turn loop asks a mirror that it does not wait for: elsewhere, one
// question at a time, and what follows from the answer is done by the turn loop, now or
// later.
type impatient struct {
	Absence
	asking  bool
	follows chan func() error // what follows from the answer
	failure error             // the last
	said    time.Time         // when it was said last that it is away
	saying  bool              // that it is back is to be said
	scope   sync.WaitGroup
}

// begin readies what the mirror is asked under: for one that is not waited for until end is
// called, since no question lasts, and the last ones are to be answered.
func (m *mirror) begin(ctx context.Context) (asking context.Context, follows <-chan func() error, end func()) {
	config := &m.leader.config
	if config.Policy.Mirror != lease.AvailableMirror || config.Lease.Unmirrored {
		return ctx, nil, func() {}
	}
	m.impatient = &impatient{follows: make(chan func() error, 1)}
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return asking, m.impatient.follows, func() {
		cancel()
		m.impatient.scope.Wait()
	}
}

// ask asks the mirror elsewhere. What follows from the answer is done when the turn loop
// takes it; a failure comes late, so that not all time goes into asking again.
func (m *mirror) ask(ctx context.Context, do func(context.Context) error, then func(error) error) {
	i := m.impatient
	i.asking = true
	i.scope.Go(func() {
		within, cancel := context.WithTimeout(ctx, m.leader.config.Seat.TTL)
		err := do(within)
		cancel()
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
		i.follows <- func() error {
			i.asking = false
			return then(err)
		}
	})
}

// hurry is retry for a mirror that is not waited for. It gives errAway when patience is
// over; then do is gone on with, and with it the turn, and the turn loop does what follows.
func (m *mirror) hurry(ctx context.Context, l *lease.Ledger, turn *lease.Turn, do func(context.Context) error) error {
	m.impatient.failure = errAway
	m.again(ctx, l, turn, do)
	patience := time.NewTimer(hasty)
	defer patience.Stop()
	for m.impatient.asking {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case follows := <-m.impatient.follows:
			if err := follows(); err != nil {
				return err
			}
		case <-patience.C:
			if m.impatient.Late(l, turn, time.Now()) {
				m.impatient.saying = false
			}
			m.sayAway()
			m.tell()
			return errAway
		}
	}
	return nil
}

// sayAway says once that the mirror is away: of one that is so again and again only now and
// then, unless it lasts.
func (m *mirror) sayAway() {
	i := m.impatient
	b, _ := i.Behind()
	if !i.saying && (i.said.IsZero() || time.Since(i.said) >= 5*time.Second || time.Since(b.Since) >= time.Second) {
		i.saying, i.said = true, time.Now()
		m.leader.config.Log.Warn("the mirror does not answer; grants go on without it, and are forgotten if this coordinator ends before it has caught up", "error", i.failure)
	}
}

// sayCaughtUp says that the mirror has caught up, if it was said that it is away.
func (m *mirror) sayCaughtUp(b Behind) {
	if m.impatient.saying {
		m.leader.config.Log.Info("the mirror has caught up; every grant is recorded again before it is told",
			"after", time.Since(b.Since).Round(time.Millisecond), "leases", b.Leases, "tokens", b.Granted.Tokens, "slots", b.Granted.Slots)
	}
}

// again asks do of the mirror.
func (m *mirror) again(ctx context.Context, l *lease.Ledger, turn *lease.Turn, do func(context.Context) error) {
	m.ask(ctx, do, func(err error) error {
		switch {
		case err == nil:
			m.answered(l, turn)
		case m.course.Again(err):
			m.leader.config.Log.Warn("the mirror has lost what it had; writing it back", "error", err)
			m.seize(ctx, l, turn, do)
		case errors.Is(err, lease.ErrFenced):
			return err
		default:
			if m.impatient.failure = err; m.impatient.Away() {
				m.sayAway()
			}
			m.again(ctx, l, turn, do)
		}
		return nil
	})
}

// seize takes the seat of a mirror that has lost something, unless another has led since,
// as winBack does. A turn that was answered meanwhile is never recorded itself.
func (m *mirror) seize(ctx context.Context, l *lease.Ledger, turn *lease.Turn, do func(context.Context) error) {
	elector := m.leader.config.Elector
	won := func(next lease.Seat) {
		away := m.impatient.Away()
		if away {
			m.impatient.Lost(l)
			turn = nil
		}
		m.course.Won(l, next, turn, wall())
		if m.leader.epoch.Store(&next.Epoch); away {
			m.answered(l, nil)
		} else {
			m.again(ctx, l, turn, do)
		}
	}
	var seen lease.Seat
	m.ask(ctx, func(ctx context.Context) (err error) {
		seen, err = elector.Look(ctx)
		return err
	}, func(err error) error {
		if err != nil {
			m.seize(ctx, l, turn, do)
			return nil
		}
		next, has, err := m.course.Bid(l, seen, m.leader.clock.now(), wall(), mark())
		switch {
		case err != nil:
			return err
		case has:
			won(next)
			return nil
		}
		m.ask(ctx, func(ctx context.Context) error { return elector.Campaign(ctx, seen, next) }, func(err error) error {
			if err != nil {
				m.seize(ctx, l, turn, do)
			} else {
				won(next)
			}
			return nil
		})
		return nil
	})
}

// answered goes on with a mirror that answers. Where it was away, it is known now that it
// has the turn that it was given.
func (m *mirror) answered(l *lease.Ledger, turn *lease.Turn) {
	if !m.impatient.Away() {
		return // who asked waits for it
	}
	if turn != nil {
		m.applied(l, turn)
	}
	m.impatient.Back(l)
	m.tell()
}

// recordSoon records the turn if the mirror answers soon; else it is answered without.
func (m *mirror) recordSoon(ctx context.Context, l *lease.Ledger, turn *lease.Turn) error {
	i := m.impatient
	if i.Away() {
		turn.Epoch = m.course.Epoch()
		i.Unrecorded(turn)
		m.tell()
		return nil
	}
	m.course.Number(l, turn, wall())
	given := *turn // the mirror may look at it when the ledger has long had the room of its answers
	given.Answers, given.Replies, given.Dropped, given.Recalls = nil, nil, nil, nil
	err := m.hurry(ctx, l, &given, func(ctx context.Context) error { return m.leader.config.Mirror.Apply(ctx, &given) })
	turn.Epoch = m.course.Epoch()
	switch {
	case errors.Is(err, errAway):
		i.Unrecorded(turn)
		m.tell()
		return nil
	case err != nil:
		return err
	}
	m.applied(l, &given)
	before, _ := i.Behind()
	if i.Recorded(&given) {
		m.sayCaughtUp(before)
		m.tell()
	}
	return nil
}

// tell lets others know how far the mirror is behind.
func (m *mirror) tell() {
	b, behind := m.impatient.Behind()
	if !behind {
		m.leader.behind.Store(nil)
		return
	}
	m.leader.behind.Store(&b)
}

// withhold fails what is about keys that the ledger does not know and the mirror does not
// tell: it goes on from what it knows.
func (t *turns) withhold() {
	t.came = slices.DeleteFunc(t.came, func(e envelope) bool {
		var in []lease.Message
		if e.one != nil {
			in = append(in, lease.Message{Request: &e.request})
		}
		if e.report != nil {
			in = append(in, lease.Message{Report: e.report})
		}
		for i := range e.requests {
			in = append(in, lease.Message{Request: &e.requests[i]})
		}
		unknown := len(t.ledger.Unloaded(in)) > 0
		if unknown {
			e.fail(lease.ErrMirrorAway)
		}
		return unknown
	})
	t.number()
}

// finish lets a mirror catch up that answers, before the seat is given up.
func (t *turns) finish(ctx context.Context) {
	i := t.mirror.impatient
	if i == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.leader.config.Seat.TTL)
	defer cancel()
	for b, behind := i.Behind(); behind; b, behind = i.Behind() {
		if i.Away() || ctx.Err() != nil {
			t.leader.config.Log.Warn("the mirror has not caught up; what it lacks is forgotten", "since", b.Since, "leases", b.Leases, "tokens", b.Granted.Tokens, "slots", b.Granted.Slots)
			return
		}
		t.gather()
		if t.step(ctx) != nil {
			return
		}
	}
}
