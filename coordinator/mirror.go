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
	seat   lease.Seat // as it was won last
	seq    uint64     // of the last turn

	from   string // where loading all goes on
	loaded bool   // all there was
	paged  algo.Instant
	sound  algo.Instant // when nothing is in doubt any more; 0 if nothing is
	bid    lease.Epoch  // the last, of which there may be no answer
}

// begin readies a ledger for the seat.
func (m *mirror) begin(l *lease.Ledger) {
	start := lease.Start{
		Epoch:    m.seat.Epoch.Number,
		Instant:  m.seat.Pulse.Instant,
		Dial:     m.seat.Dial,
		Complete: m.seat.Fresh,
		Lost:     m.seat.Lost,
		Lagged:   m.seat.Lagged,
	}
	l.Start(start)
	m.loaded = l.Complete()
	m.doubt(l)
}

// doubt reckons until when records are in doubt.
func (m *mirror) doubt(l *lease.Ledger) {
	m.sound = 0
	for _, d := range []lease.Doubt{m.seat.Lost, m.seat.Lagged} {
		if d.Epoch > 0 {
			m.sound = max(m.sound, d.At.Add(l.Longest()))
		}
	}
}

// load restores keys that the ledger needs.
func (m *mirror) load(ctx context.Context, l *lease.Ledger, keys []lease.Key) error {
	if len(keys) == 0 {
		return nil
	}
	var records []lease.Record
	err := m.retry(ctx, l, nil, "loading keys", func(ctx context.Context) (err error) {
		records, err = m.leader.config.Mirror.Load(ctx, m.seat.Epoch, keys)
		return err
	})
	if err != nil {
		return fmt.Errorf("coordinator: loading %d keys from %q: %w", len(keys), keys[0], err)
	}
	for _, r := range records {
		l.Restore(r)
	}
	return nil
}

const (
	pageEvery = 5 * time.Millisecond
	pageMost  = 128
)

// loadSome loads some of the keys that nobody has asked for yet.
func (m *mirror) loadSome(ctx context.Context, l *lease.Ledger) error {
	now := m.leader.clock.now()
	if m.loaded || now.Sub(m.paged) < pageEvery {
		return nil
	}
	m.paged = now
	var keys []lease.Key
	next := m.from
	err := m.retry(ctx, l, nil, "listing keys", func(ctx context.Context) (err error) {
		keys, next, err = m.leader.config.Mirror.Keys(ctx, m.seat.Epoch, m.from)
		return err
	})
	if err != nil {
		return fmt.Errorf("coordinator: listing keys: %w", err)
	}
	var missing []lease.Key
	for _, k := range keys {
		if !l.Has(k) {
			missing = append(missing, k)
		}
	}
	for len(missing) > 0 {
		n := min(len(missing), pageMost)
		if err := m.load(ctx, l, missing[:n]); err != nil {
			return err
		}
		missing = missing[n:]
	}
	if m.from = next; next == "" {
		m.loaded = true
		if m.sound == 0 {
			l.SetComplete()
		}
	}
	return nil
}

// next is when there is more to load or to write back.
func (m *mirror) next() (algo.Instant, bool) {
	if m.loaded {
		return 0, false
	}
	return m.paged.Add(pageEvery), true
}

// record records the turn.
func (m *mirror) record(ctx context.Context, l *lease.Ledger, turn *lease.Turn) error {
	m.number(l, turn)
	err := m.retry(ctx, l, turn, "recording a turn", func(ctx context.Context) error { return m.leader.config.Mirror.Apply(ctx, turn) })
	if err != nil {
		return fmt.Errorf("coordinator: recording turn %d: %w", turn.Seq, err)
	}
	m.leader.applied.Store(turn.Seq)
	if turn.Sound {
		m.seat.Lost, m.seat.Lagged, m.sound = lease.Doubt{}, lease.Doubt{}, 0
		l.Trust()
		if m.loaded {
			l.SetComplete()
		}
	}
	return nil
}

// number makes the turn the next one.
func (m *mirror) number(l *lease.Ledger, turn *lease.Turn) {
	m.seq++
	turn.Epoch, turn.Seq, turn.Wall = m.seat.Epoch, m.seq, wall()
	turn.Sound = m.sound != 0 && (turn.Rewritten && l.Complete() || !turn.Instant.Before(m.sound))
}

// hasty is how long a request that does not wait is left without an answer while the
// mirror fails.
const hasty = 30 * time.Millisecond

// retry calls do until it works, the seat is lost, or ctx ends, and says once a
// second that it does not work. The very same turn goes again under the same number:
// it may have been recorded, and a number never serves two turns. Where the mirror has
// lost something, all is written back first, and a turn that is to be recorded with it.
func (m *mirror) retry(ctx context.Context, l *lease.Ledger, turn *lease.Turn, what string, do func(context.Context) error) error {
	var told time.Time
	for {
		err := m.once(ctx, do)
		fenced := errors.Is(err, lease.ErrFenced)
		if errors.Is(err, lease.ErrGap) || errors.Is(err, lease.ErrLost) || fenced && m.bid.Number > m.seat.Epoch.Number {
			m.leader.config.Log.Warn("the mirror has lost what it had; writing it back", "doing", what, "error", err)
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

func (m *mirror) once(ctx context.Context, do func(context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, m.leader.config.Seat.TTL)
	defer cancel()
	return do(within)
}

// winBack takes the seat of a mirror that has lost something, unless another has led
// since, and lets the ledger write everything back. What is in no ledger counts as
// lost.
func (m *mirror) winBack(ctx context.Context, l *lease.Ledger, turn *lease.Turn) error {
	return m.once(ctx, func(ctx context.Context) error {
		m.seat.Dial = l.Dial()
		seat, err := m.win(ctx)
		if err != nil {
			return err
		}
		m.seat, m.bid, m.seq, m.loaded = seat, lease.Epoch{}, 0, true
		m.leader.epoch.Store(&seat.Epoch)
		l.Lose(seat.Lost)
		m.doubt(l)
		if l.Rewrite(turn); turn != nil {
			m.number(l, turn)
		}
		return nil
	})
}

// win campaigns for the seat that was the leader's.
func (m *mirror) win(ctx context.Context) (lease.Seat, error) {
	seen, err := m.leader.config.Elector.Look(ctx)
	switch {
	case err != nil:
		return seen, err
	case m.bid.Number > 0 && seen.Epoch == m.bid:
		return seen, nil // won by the last bid, though nobody said so
	case seen.Epoch.Number >= m.seat.Epoch.Number && seen.Epoch != m.seat.Epoch:
		return seen, lease.ErrFenced
	}
	next := m.seat
	next.Epoch = lease.Epoch{Number: max(m.bid.Number, m.seat.Epoch.Number) + 1, Mark: rand.Uint64()}
	next.Run, next.Lagged = seen.Running, lease.Doubt{}
	next.Pulse.Instant, next.Pulse.Wall = m.leader.clock.now(), wall()
	next.Lost = lease.Doubt{Epoch: next.Epoch.Number, At: next.Pulse.Instant}
	m.bid = next.Epoch
	return next, m.leader.config.Elector.Campaign(ctx, seen, next)
}
