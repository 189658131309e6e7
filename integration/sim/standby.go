package sim

import (
	"context"
	"errors"
	"time"

	"ration/coordinator"
	"ration/lease"
)

const (
	seatTTL    = 400 * time.Millisecond
	seatEarly  = 60 * time.Millisecond
	lookEvery  = 20 * time.Millisecond
	renewEvery = 50 * time.Millisecond
)

// stand lets the coordinator look at the seat, again and again, until it leads.
func (l *lessor) stand() {
	if l.course != nil {
		return
	}
	var seen lease.Seat
	l.site.store.call(&l.host, func(ctx context.Context, m *coordinator.Memory) (err error) {
		seen, err = m.Look(ctx)
		return err
	}, func(err error) {
		if err == nil && l.consider(seen) {
			return
		}
		l.after(lookEvery, l.stand)
	})
}

// consider says whether to wait for what comes of a campaign.
func (l *lessor) consider(seen lease.Seat) bool {
	next, campaign, won := l.candidate.Watch(l.elapsed(), l.wall(), seen, l.site.heard(l, seen.Epoch))
	switch {
	case won:
		l.world.count("won unheard")
		l.candidate.Won(next)
		l.lead(next)
		return true
	case !campaign:
		return false
	}
	next.Epoch.Mark = l.world.rand.Uint64()
	next.Mirror = max(next.Mirror, 1)
	l.candidate.Bid(next.Epoch)
	l.site.store.campaign(&l.host, seen, next, func(err error) {
		if err != nil {
			l.after(lookEvery, l.stand)
			return
		}
		l.candidate.Won(next)
		l.lead(next)
	})
	return true
}

// lead begins a leadership.
func (l *lessor) lead(seat lease.Seat) {
	l.world.count("takeover")
	l.tookOver()
	l.force(seat)
	l.ledger = lease.NewLedger(l.known.Policy, l.config)
	l.course = coordinator.NewCourse(seat, l.ledger, l.known.Revision)
	l.led, l.began, l.origin = l.world.now, l.elapsed(), seat.Pulse.Instant
	if l.site.steady {
		l.origin = l.wall() // whose windows begin by it, and an estimate bears no lag
	}
	l.heardAt, l.pulse, l.later = l.elapsed(), lease.Pulse{}, 0
	l.in, l.acts, l.putOff, l.busy, l.unknown, l.applied, l.reforms = nil, nil, told{}, false, nil, 0, nil
	clear(l.givenUp)
	led := l.course
	l.after(l.world.between(0, 5*time.Millisecond), func() {
		if l.course == led {
			l.serving = true
			l.turn()
		}
	})
	l.after(renewEvery, func() { l.renew(led) })
}

// force finds the policy that is in force, which the store tells at once.
func (l *lessor) force(seat lease.Seat) {
	var err error
	l.known, err = coordinator.Force(seat, l.known, func() (lease.PolicyRecord, error) {
		return l.site.store.memory.Policy(context.Background())
	})
	if err != nil {
		l.say("the policy in force: %v", err)
	}
}

// depose ends a leadership whose seat is lost: nothing of it is answered any more.
func (l *lessor) depose() {
	if l.pauseAt > l.led && l.world.now >= l.paused {
		l.world.count("woken leader is fenced")
	}
	l.candidate.Led(l.elapsed(), l.instant(), l.course.Epoch())
	l.candidate.Deposed(l.elapsed())
	l.end()
	l.stand()
}

// end forgets a leadership.
func (l *lessor) end() {
	if l.course == nil {
		return
	}
	l.past = append(l.past, l.ledger.Stats())
	l.course, l.serving, l.busy, l.in, l.acts, l.putOff = nil, false, false, nil, nil, told{}
	l.turning = false
	clear(l.answers)
	clear(l.replies)
	clear(l.keys)
}

// renew shows that the leader lives. Who cannot be asked gives up.
func (l *lessor) renew(led *coordinator.Course) {
	if l.course != led {
		return
	}
	l.after(renewEvery, func() { l.renew(led) })
	if l.hear().Connected {
		l.heardAt = l.elapsed()
	} else if l.elapsed()-l.heardAt > seatTTL/4 && !l.busy {
		l.world.count("deaf leader resigns")
		l.resign()
		return
	}
	l.pulse.Beat++
	l.pulse.Instant, l.pulse.Wall = l.instant(), l.wall()
	_, l.pulse.Revision = l.ledger.Policy()
	pulse, epoch := l.pulse, led.Epoch()
	l.pulse.Run = ""
	l.site.store.call(&l.host, func(ctx context.Context, m *coordinator.Memory) error {
		return m.Renew(ctx, epoch, pulse)
	}, func(err error) {
		switch {
		case l.course != led || led.Epoch() != epoch:
		case errors.Is(err, lease.ErrPolicy):
			if _, revision := l.ledger.Policy(); revision > pulse.Revision {
				return // its own change has come first
			}
			l.say("goes by policy %d, and another is in force", pulse.Revision)
		case errors.Is(err, lease.ErrFenced):
			l.world.count("renewal is fenced")
			l.turn()
		case errors.Is(err, lease.ErrLost):
			l.turn()
		}
	})
	if l.world.chance(0.05, "") {
		l.lookAtLife(led)
	}
}

// lookAtLife lets the seat name the store's life, if that has the last turn.
func (l *lessor) lookAtLife(led *coordinator.Course) {
	var seen lease.Seat
	l.site.store.call(&l.host, func(ctx context.Context, m *coordinator.Memory) (err error) {
		seen, err = m.Look(ctx)
		return err
	}, func(err error) {
		if err == nil && l.course == led && seen.Epoch == led.Epoch() && seen.Seq == l.applied && seen.Run != seen.Running {
			l.world.count("store is whole in its new life")
			l.pulse.Run = seen.Running
		}
	})
}

// resign hands over: nobody is answered any more, and the seat is vacant.
func (l *lessor) resign() {
	epoch := l.course.Epoch()
	l.depose()
	l.site.store.call(&l.host, func(ctx context.Context, m *coordinator.Memory) error {
		return m.Resign(ctx, epoch)
	}, func(error) {})
}
