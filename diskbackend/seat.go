package diskbackend

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"go.etcd.io/bbolt"

	"ration/lease"
)

// Look reads the seat. Its clock is the machine's, and its Run is empty, as it runs in
// no process that could lose it. It never waits for the disk but where a campaign does, and
// where the file has to be opened again.
func (m *Mirror) Look(ctx context.Context) (lease.Seat, error) {
	if m.isGone() {
		if err := m.again(ctx); err != nil {
			return lease.Seat{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return lease.Seat{}, failed("using", m.path, fs.ErrClosed)
	}
	s := m.seat
	s.Now = wall()
	return s, nil
}

// Campaign puts next into the place of the seat if that has not moved since it was
// seen.
func (m *Mirror) Campaign(ctx context.Context, seen, next lease.Seat) error {
	if err := m.write(ctx); err != nil {
		return err
	}
	defer m.written()
	m.mu.Lock()
	defer m.mu.Unlock() // also while it is written: meanwhile nobody may use the seat
	switch {
	case m.closed:
		return failed("using", m.path, fs.ErrClosed)
	case m.gone:
		return lease.ErrMoved
	case m.seat.Epoch != (lease.Epoch{}) && m.seat.Partitions != next.Partitions:
		return fmt.Errorf("diskbackend: %s is of a cell of %d, and not of %d: %w", m.path, m.seat.Partitions, next.Partitions, lease.ErrPartitions)
	case m.seat.Moved(&seen):
		return lease.ErrMoved
	}
	next.Revision, next.Available = m.seat.Revision, m.seat.Available
	next.Seq, next.Vacant, next.Fresh = 0, false, false
	next.Clock, next.Now, next.Run, next.Running = wall(), 0, "", ""
	err := m.update(func(tx *bbolt.Tx) error {
		if err := m.sweep(tx, next.Pulse.Instant, sweepFirst); err != nil {
			return err
		}
		return putSeat(tx, &next)
	})
	if err != nil {
		return failed("campaigning in", m.path, err)
	}
	m.seat, m.saved = next, time.Now()
	return nil
}

// Renew shows that the leader lives. That is on disk within a second, and at once where
// the seat is older there.
func (m *Mirror) Renew(_ context.Context, e lease.Epoch, p lease.Pulse) error {
	m.look()
	m.mu.Lock()
	err := m.seat.Fence(e)
	switch {
	case m.gone && !m.closed:
		err = lease.ErrLost
	case m.closed:
		err = failed("using", m.path, fs.ErrClosed)
	case err == nil:
		if err = m.seat.Renewed(p); err != nil {
			break
		}
		m.seat.Pulse, m.seat.Clock = p, wall()
		m.seat.Pulse.Run, m.seat.Pulse.Revision = "", 0
	}
	due := time.Since(m.saved) >= saveEvery
	m.mu.Unlock()
	if err != nil || !due {
		return err
	}
	select {
	case m.writing <- struct{}{}:
	default:
		return nil // who writes now writes the seat
	}
	defer m.written()
	return m.save()
}

// save writes the seat as it is.
func (m *Mirror) save() error {
	m.mu.Lock()
	s, closed := m.seat, m.closed
	m.mu.Unlock()
	if closed {
		return nil // and it was written then
	}
	if err := m.update(func(tx *bbolt.Tx) error { return putSeat(tx, &s) }); err != nil {
		return failed("writing the seat to", m.path, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved = time.Now()
	return nil
}

// Resign gives the seat up.
func (m *Mirror) Resign(ctx context.Context, e lease.Epoch) error {
	if err := m.write(ctx); err != nil {
		return err
	}
	defer m.written()
	if _, err := m.use(e); err != nil {
		return err
	}
	m.mu.Lock()
	m.seat.Vacant = true
	m.mu.Unlock()
	return m.save()
}
