package diskbackend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"ration/algo"
	"ration/internal/recordtext"
	"ration/lease"
)

// Mirror is the copy of one partition's ledger, and its seat, in a directory. It is
// safe for concurrent use. Calls that write wait for each other, and for the disk: one
// that has begun to write does not end before the disk does, whatever its context
// says.
type Mirror struct {
	path string

	// writing has one value while something is written. What follows it belongs to
	// whoever put that there.
	writing chan struct{}
	text    recordtext.Writer
	broom   []byte // the first prefix that it has not looked at

	// mu guards the seat as it is. Of the one on disk the epoch is that of this, and a
	// beat or turns that changed nothing may be missing there.
	mu     sync.Mutex
	seat   lease.Seat
	saved  time.Time // when the seat was last written
	closed bool

	// The store is set where something is written, and read under mu too.
	db   *bbolt.DB
	file fs.FileInfo // of the store, as it was opened
	seen time.Time   // when that was last found in its place
	gone bool        // it is there no more
}

var (
	_ lease.Mirror  = (*Mirror)(nil)
	_ lease.Elector = (*Mirror)(nil)
)

// saveEvery is how old the seat on disk gets while nothing else is written.
const saveEvery = time.Second

// Close writes what is not on disk yet, and lets another process have the directory.
// Calls after it fail with fs.ErrClosed; a second one does nothing.
func (m *Mirror) Close() error {
	m.writing <- struct{}{}
	defer m.written()
	m.mu.Lock()
	seat, again := m.seat, m.closed
	m.closed = true
	m.mu.Unlock()
	if again {
		return nil
	}
	var err error
	if seat.Epoch != (lease.Epoch{}) && !m.isGone() {
		err = m.update(func(tx *bbolt.Tx) error { return putSeat(tx, &seat) })
	}
	if err = errors.Join(err, m.db.Close()); err != nil {
		return failed("closing", m.path, err)
	}
	return nil
}

// write waits until nobody else writes. Whoever got no error calls written.
func (m *Mirror) write(ctx context.Context) error {
	select {
	case m.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Mirror) written() { <-m.writing }

// update makes one transaction.
func (m *Mirror) update(change func(*bbolt.Tx) error) error { return told(m.db.Update(change)) }

// view reads what the last transaction left.
func (m *Mirror) view(read func(*bbolt.Tx) error) error {
	m.mu.Lock()
	db := m.db
	m.mu.Unlock()
	return told(db.View(read))
}

// told gives the store's errors the names that others know.
func told(err error) error {
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return fs.ErrClosed
	}
	return err
}

// use gives the seat, if that is an epoch's.
func (m *Mirror) use(e lease.Epoch) (lease.Seat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return lease.Seat{}, failed("using", m.path, fs.ErrClosed)
	}
	if m.gone {
		return m.seat, lease.ErrLost
	}
	return m.seat, m.seat.Fence(e)
}

// putSeat writes the seat.
func putSeat(tx *bbolt.Tx, s *lease.Seat) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return tx.Bucket(about).Put(seatName, text)
}

// getSeat reads it; there may be none.
func getSeat(tx *bbolt.Tx) (s lease.Seat, err error) {
	text := tx.Bucket(about).Get(seatName)
	if text == nil {
		return s, nil
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("the seat is %.200q: %w", text, err)
	}
	return s, nil
}

// Policy gives the policy in force.
func (m *Mirror) Policy(context.Context) (p lease.PolicyRecord, err error) {
	err = m.view(func(tx *bbolt.Tx) (err error) {
		p, err = getPolicy(tx)
		return err
	})
	if err != nil {
		return p, failed("reading the policy from", m.path, err)
	}
	return p, nil
}

// putPolicy writes the policy.
func putPolicy(tx *bbolt.Tx, p *lease.PolicyRecord) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return tx.Bucket(about).Put(policyName, text)
}

// getPolicy reads it; there may be none.
func getPolicy(tx *bbolt.Tx) (p lease.PolicyRecord, err error) {
	text := tx.Bucket(about).Get(policyName)
	if text == nil {
		return p, nil
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("the policy is %.200q: %w", text, err)
	}
	return p, nil
}

// wall is the machine's wall clock.
func wall() algo.Instant { return algo.Instant(time.Now().UnixNano()) }
