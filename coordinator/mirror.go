package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"ration/algo"
	"ration/lease"
)

// mirror is how the turn loop keeps the mirror what the ledger is: one script at a time,
// in the order of the turns.
type mirror struct {
	leader *Leader
	course *Course
	listed []lease.Key // to be loaded next, unless they have been
	from   string      // where listing goes on
	paged  algo.Instant
	// impatient is nil unless the policy lets grants go on without the mirror.
	impatient *impatient
}

// load restores keys that the ledger needs.
func (m *mirror) load(ctx context.Context, l *lease.Ledger, keys []lease.Key) error {
	if len(keys) == 0 {
		return nil
	}
	if m.away() {
		return errAway
	}
	var records []lease.Record
	err := m.retry(ctx, l, nil, "loading keys", func(ctx context.Context) (err error) {
		records, err = m.leader.config.Mirror.Load(ctx, m.course.Epoch(), keys)
		return err
	})
	if err != nil {
		return fmt.Errorf("coordinator: loading %d keys from %q: %w", len(keys), keys[0], err)
	}
	for _, r := range records {
		if r.Damaged != nil && !l.Has(r.Key) {
			m.leader.config.Log.Error("a record cannot be read; its key counts as fully spent, and it is written anew", "error", r.Damaged)
		}
		l.Restore(r)
	}
	return nil
}

const (
	pageEvery = 5 * time.Millisecond
	pageMost  = 128
)

// loadSome loads some of the keys that nobody has asked for yet, and so few at a time
// that nobody waits for long who asks meanwhile.
func (m *mirror) loadSome(ctx context.Context, l *lease.Ledger) error {
	now := m.leader.clock.now()
	if m.course.Loaded() || m.away() || len(m.listed) == 0 && now.Sub(m.paged) < pageEvery {
		return nil
	}
	if len(m.listed) == 0 {
		m.paged = now
		from, next := m.from, ""
		var keys []lease.Key
		err := m.retry(ctx, l, nil, "listing keys", func(ctx context.Context) (err error) {
			keys, next, err = m.leader.config.Mirror.Keys(ctx, m.course.Epoch(), from)
			return err
		})
		if err != nil {
			return fmt.Errorf("coordinator: listing keys: %w", err)
		}
		m.listed, m.from = keys, next
	}
	var missing []lease.Key
	rest := m.listed
	for len(rest) > 0 && len(missing) < pageMost {
		if !l.Has(rest[0]) {
			missing = append(missing, rest[0])
		}
		rest = rest[1:]
	}
	if err := m.load(ctx, l, missing); err != nil {
		return err // they are still to be loaded if it goes on
	}
	m.listed = rest
	if len(m.listed) == 0 && m.from == "" {
		m.course.AllLoaded(l)
	}
	return nil
}

// next is when there is more to load.
func (m *mirror) next() (algo.Instant, bool) {
	switch {
	case m.course.Loaded() || m.away():
		return 0, false
	case len(m.listed) > 0:
		return m.paged, true
	}
	return m.paged.Add(pageEvery), true
}

// away says that the mirror is not to be asked: it has not answered the last question.
func (m *mirror) away() bool { return m.impatient != nil && m.impatient.Away() }

// even says that the ledger has all that the mirror has, and the mirror what the ledger has
// but for the last turn.
func (m *mirror) even() bool {
	behind := false
	if m.impatient != nil {
		_, behind = m.impatient.Behind()
	}
	return m.course.Loaded() && !behind
}

// record records the turn.
func (m *mirror) record(ctx context.Context, l *lease.Ledger, turn *lease.Turn) error {
	if m.impatient != nil {
		return m.recordSoon(ctx, l, turn)
	}
	m.course.Number(l, turn, wall())
	err := m.retry(ctx, l, turn, "recording a turn", func(ctx context.Context) error { return m.leader.config.Mirror.Apply(ctx, turn) })
	if err != nil {
		return fmt.Errorf("coordinator: recording turn %d: %w", turn.Seq, err)
	}
	m.applied(l, turn)
	return nil
}

// applied notes that the mirror has a turn.
func (m *mirror) applied(l *lease.Ledger, turn *lease.Turn) {
	m.leader.applied.Store(turn.Seq)
	m.leader.holders.Store(int64(l.Known()))
	m.course.Applied(l, turn)
}

// hasty is how long a request that does not wait is left without an answer while the
// mirror fails.
const hasty = 30 * time.Millisecond

// retry calls do until it works, the seat is lost, or ctx ends, and says once a
// second that it does not work. The very same turn goes again under the same number:
// it may have been recorded, and a number never serves two turns. Where the mirror has
// lost something, all is written back first, and a turn that is to be recorded with it.
func (m *mirror) retry(ctx context.Context, l *lease.Ledger, turn *lease.Turn, what string, do func(context.Context) error) error {
	if m.impatient != nil {
		return m.hurry(ctx, l, turn, do)
	}
	var told, said time.Time
	for {
		err := m.once(ctx, do)
		if err != nil && m.course.Again(err) {
			if time.Since(said) >= time.Second {
				said = time.Now()
				m.leader.config.Log.Warn("the mirror has lost what it had; writing it back", "doing", what, "error", err)
			}
			if err = m.winBack(ctx, l, turn); err == nil {
				continue
			}
		}
		switch {
		case err == nil:
			m.leader.away.works()
			return nil
		case errors.Is(err, lease.ErrFenced):
			return err
		}
		if m.leader.away.fails() >= hasty {
			m.leader.inbox.refuse(lease.ErrMirrorAway)
		}
		if time.Since(told) >= time.Second {
			told = time.Now()
			m.leader.config.Log.Warn("the mirror fails; nothing is answered until it works", "doing", what, "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// once gives something that asks the mirror a seat TTL; where there is no mirror, nothing
// is waited for.
func (m *mirror) once(ctx context.Context, do func(context.Context) error) error {
	if m.leader.config.Lease.Unmirrored {
		return do(ctx)
	}
	late := time.AfterFunc(hasty, func() { // it may hang for long
		m.leader.away.fails()
		m.leader.inbox.refuse(lease.ErrMirrorAway)
	})
	defer late.Stop()
	within, cancel := context.WithTimeout(ctx, m.leader.config.Seat.TTL)
	defer cancel()
	return do(within)
}

// winBack takes the seat of a mirror that has lost something, unless another has led
// since, and lets the ledger write everything back.
func (m *mirror) winBack(ctx context.Context, l *lease.Ledger, turn *lease.Turn) error {
	return m.once(ctx, func(ctx context.Context) error {
		seen, err := m.leader.config.Elector.Look(ctx)
		if err != nil {
			return err
		}
		next, won, err := m.course.Bid(l, seen, m.leader.hear(), m.leader.clock.now(), wall(), mark())
		if err == nil && !won {
			err = m.leader.config.Elector.Campaign(ctx, seen, next)
		}
		if err != nil {
			return err
		}
		m.course.Won(l, next, turn, wall())
		m.leader.epoch.Store(&next.Epoch)
		return nil
	})
}

// mark is that of a new epoch.
func mark() uint64 { return rand.Uint64() }
