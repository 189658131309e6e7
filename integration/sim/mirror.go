package sim

import (
	"context"
	"time"

	"ration/coordinator"
	"ration/lease"
)

// mirror asks the store under the leader's epoch until it does what it is asked, and then
// goes on. Where the store has lost something the leader wins it back first, and t can be
// applied then.
func (l *lessor) mirror(t *lease.Turn, do func(epoch lease.Epoch) call, then func()) {
	led, found := l.course, ""
	again := func() { l.mirror(t, do, then) }
	l.site.store.call(&l.host, find(t, do(led.Epoch()), &found), func(err error) {
		if l.course != led {
			return
		}
		l.learned(t, found, err)
		switch {
		case err == nil:
			then()
		case l.course.Again(err):
			l.winBack(t, again)
		case lease.Code(err) == lease.ErrFenced.Code():
			l.world.count("deposed by a turn")
			l.depose()
		default:
			l.world.count("outcome unknown")
			l.unknown = t
			l.after(10*time.Millisecond, l.while(led, again))
		}
	})
}

// find looks, as a call is carried out, whether the store has the turn already.
func find(t *lease.Turn, do call, found *string) call {
	if t == nil {
		return do
	}
	epoch, seq := t.Epoch, t.Seq
	return func(ctx context.Context, m *coordinator.Memory) error {
		*found = "unknown, and was applied then"
		if seat := seatOf(m); seat.Epoch == epoch && seat.Seq == seq {
			*found = "unknown, and had been applied"
		}
		return do(ctx, m)
	}
}

// learned counts what had become of a turn of which it was not known, once it is.
func (l *lessor) learned(t *lease.Turn, found string, err error) {
	if t == nil || l.unknown != t {
		return
	}
	switch {
	case err == nil:
		l.world.count(found)
	case lease.Code(err) == lease.ErrGap.Code():
		l.world.count("unknown, and came to a gap")
	case lease.Code(err) == lease.ErrLost.Code():
		l.world.count("unknown, and the store had lost it")
	case lease.Code(err) == lease.ErrFenced.Code():
		l.world.count("unknown, and was fenced")
	default:
		return
	}
	l.unknown = nil
}

func (l *lessor) apply(t *lease.Turn, recorded []func()) {
	l.mirror(t, func(lease.Epoch) call {
		sent := *t // what is late has its old content
		return func(ctx context.Context, m *coordinator.Memory) error { return m.Apply(ctx, &sent) }
	}, func() {
		l.applied = t.Seq
		l.course.Applied(l.ledger, t)
		for _, done := range recorded {
			done()
		}
		l.deliver(t)
	})
}

// winBack campaigns for the seat of a store that has lost something, and goes on.
func (l *lessor) winBack(t *lease.Turn, then func()) {
	led := l.course
	later := func(err error) {
		if lease.Code(err) == lease.ErrFenced.Code() {
			l.world.count("deposed by the store's loss")
			l.depose()
			return
		}
		l.after(10*time.Millisecond, l.while(led, then))
	}
	won := func(seat lease.Seat) {
		l.world.count("won back")
		l.course.Won(l.ledger, seat, t, l.wall())
		then()
	}
	var seen lease.Seat
	l.site.store.call(&l.host, func(ctx context.Context, m *coordinator.Memory) (err error) {
		seen, err = m.Look(ctx)
		return err
	}, func(err error) {
		if l.course != led {
			return
		}
		if err != nil {
			later(err)
			return
		}
		next, already, err := l.course.Bid(l.ledger, seen, l.hear(), l.instant(), l.wall(), l.world.rand.Uint64())
		switch {
		case err != nil:
			later(err)
			return
		case already:
			l.world.count("won back unheard")
			won(next)
			return
		}
		if l.site.allKnow() && l.world.chance(0.3, "leader paused while it wins back") {
			l.pause(l.world.between(200*time.Millisecond, 2*time.Second))
		}
		l.after(0, l.while(led, func() {
			l.site.store.campaign(&l.host, seen, next, func(err error) {
				switch {
				case l.course != led:
				case err != nil:
					later(err)
				default:
					won(next)
				}
			})
		}))
	})
}

// while gives a function that does f if the leader still leads as it did.
func (l *lessor) while(led *coordinator.Course, f func()) func() {
	return func() {
		if l.course == led {
			f()
		}
	}
}
