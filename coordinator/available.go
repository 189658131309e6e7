package coordinator

import (
	"context"
	"errors"
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
	failure error             // the last of this question; nil while none is known
	said    time.Time         // when it was said last that it is away
	why     time.Time         // when it was said last why; zero for not yet
	saying  bool              // that it is back is to be said
	scope   sync.WaitGroup
}

// begin readies what the mirror is asked under: for one that is not waited for until end is
// called, since no question lasts, and the last ones are to be answered.
func (m *mirror) begin(ctx context.Context) (asking context.Context, follows <-chan func() error, end func()) {
	if m.leader.mode != lease.AvailableMirror || m.leader.config.Lease.Unmirrored {
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
//
// Patience is about the mirror: who was put aside itself meanwhile, and so may have been
// replaced, has not waited for it, and begins again.
func (m *mirror) hurry(ctx context.Context, l *lease.Ledger, turn *lease.Turn, do func(context.Context) error) error {
	i := m.impatient
	i.failure = nil
	m.again(ctx, l, turn, do)
	began, over := time.Now(), false
	patience := time.NewTimer(hasty)
	defer patience.Stop()
	for i.asking {
		var follow func() error
		if !over {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case follow = <-i.follows:
			case <-patience.C:
				over = true
				continue
			}
		} else {
			select {
			case follow = <-i.follows: // what has come is not late
			default:
				if time.Since(began) < 2*hasty {
					m.late(l, turn)
					return errAway
				}
				began, over = time.Now(), false
				patience.Reset(hasty)
				continue
			}
		}
		if err := follow(); err != nil {
			return err
		}
	}
	return nil
}

// late goes on without a mirror that was given a turn, or nil for another question.
func (m *mirror) late(l *lease.Ledger, turn *lease.Turn) {
	if m.impatient.Late(l, turn, time.Now()) {
		m.impatient.saying = false
	}
	m.sayAway()
	m.tell()
}

// sayAway says once that the mirror is away: of one that is so again and again only now and
// then, unless it lasts. Why it is so may be known later, and is said then, and now and then.
func (m *mirror) sayAway() {
	const seldom = 5 * time.Second
	i, log := m.impatient, m.leader.config.Log
	b, _ := i.Behind()
	now := time.Now()
	if !i.saying && (i.said.IsZero() || now.Sub(i.said) >= seldom || now.Sub(b.Since) >= time.Second) {
		i.saying, i.said, i.why = true, now, time.Time{}
		if i.failure != nil {
			i.why, log = now, log.With("error", i.failure)
		}
		log.Warn("the mirror does not answer; grants go on without it, and are forgotten if this coordinator ends before it has caught up")
		return
	}
	if i.saying && i.failure != nil && now.Sub(i.why) >= seldom {
		i.why = now
		log.Warn("the mirror still does not answer", "error", i.failure)
	}
}

// sayCaughtUp says that the mirror has caught up, if it was said that it is away.
func (m *mirror) sayCaughtUp(b Behind) {
	if m.impatient.saying {
		m.leader.config.Log.Info("the mirror has caught up; every grant is recorded again before it is told",
			"after", time.Since(b.Since), "leases", b.Leases, "tokens", b.Granted.Tokens, "slots", b.Granted.Slots)
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
		if seen, err = elector.Look(ctx); err == nil && !m.leader.hear().Connected {
			err = errUnheard
		}
		return err
	}, func(err error) error {
		if err != nil {
			m.seize(ctx, l, turn, do)
			return nil
		}
		next, has, err := m.course.Bid(l, seen, m.leader.hear(), m.leader.clock.now(), wall(), mark())
		switch {
		case errors.Is(err, errUnheard):
			m.seize(ctx, l, turn, do)
			return nil
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
