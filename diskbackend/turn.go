package diskbackend

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"ration/algo"
	"ration/lease"
)

// Apply records the turn after the last one of its epoch: when it returns without an
// error, the turn is on the disk. One that changed nothing need not be.
func (m *Mirror) Apply(ctx context.Context, t *lease.Turn) error {
	if err := m.write(ctx); err != nil {
		return err
	}
	defer m.written()
	s, err := m.use(t.Epoch)
	if err != nil {
		return err
	}
	if apply, err := s.Follow(t.Seq); !apply {
		return err
	}
	m.mu.Lock()
	idle := len(t.Changes) == 0 && t.Policy == nil && !t.Sound && time.Since(m.saved) < saveEvery
	m.mu.Unlock()
	if follow(&s, t); !idle {
		if err := m.update(func(tx *bbolt.Tx) error { return m.record(tx, &s, t) }); err != nil {
			return failed(fmt.Sprintf("recording turn %d in", t.Seq), m.path, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	follow(&m.seat, t) // which may have had another beat meanwhile
	if !idle {
		m.saved = time.Now()
	}
	return nil
}

// follow makes the seat what it is after a turn.
func follow(s *lease.Seat, t *lease.Turn) {
	s.Seq, s.Clock = t.Seq, wall()
	s.Pulse.Instant, s.Pulse.Wall, s.Dial = t.Instant, t.Wall, t.Dial
	s.Reform(t.Policy)
	if t.Sound {
		s.Lost, s.Lagged = lease.Doubt{}, lease.Doubt{}
	}
}

// record writes what has changed, and the seat as it is then.
func (m *Mirror) record(tx *bbolt.Tx, s *lease.Seat, t *lease.Turn) error {
	for i := range t.Changes {
		if err := m.change(tx, t, &t.Changes[i]); err != nil {
			return fmt.Errorf("prefix %q: %w", t.Changes[i].Key, err)
		}
	}
	if t.Policy != nil {
		if err := putPolicy(tx, t.Policy); err != nil {
			return err
		}
	}
	if err := m.sweep(tx, t.Instant, sweepSome); err != nil {
		return err
	}
	return putSeat(tx, s)
}

// change makes the record of a prefix what lease.Record.Change would.
func (m *Mirror) change(tx *bbolt.Tx, t *lease.Turn, c *lease.Change) error {
	id := place(c.Key)
	if c.Gone || c.Whole {
		if err := wipe(tx, id); err != nil {
			return err
		}
	}
	if c.Gone {
		return nil
	}
	all := tx.Bucket(fields)
	var failed error
	m.text.Fields(c, t.Epoch.Number, func(field, value string) {
		if err := all.Put(under(id, field), []byte(value)); err != nil && failed == nil {
			failed = err
		}
	}, func(field string) {
		if err := all.Delete(under(id, field)); err != nil && failed == nil {
			failed = err
		}
	})
	if failed != nil {
		return failed
	}
	if len(c.Windows) == 0 && bare(tx, id) {
		return wipe(tx, id)
	}
	return keep(tx, id, until(t.Instant, c.Keep))
}

// place is what the names of a prefix's fields begin with. The length goes first, so
// that no other prefix's begin so.
func place(key lease.Key) []byte {
	return append(binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(key)), uint16(len(key))), key...)
}

// under is the name of a field of the prefix in a place.
func under(id []byte, field string) []byte {
	return append(append(make([]byte, 0, len(id)+len(field)), id...), field...)
}

// bare says that a record has no field but its epoch's.
func bare(tx *bbolt.Tx, id []byte) bool {
	c := tx.Bucket(fields).Cursor()
	for name, _ := c.Seek(id); bytes.HasPrefix(name, id); name, _ = c.Next() {
		if string(name[len(id):]) != "e" {
			return false
		}
	}
	return true
}

// wipe takes a prefix away.
func wipe(tx *bbolt.Tx, id []byte) error {
	var names [][]byte // first all, as the cursor loses its place where something goes
	c := tx.Bucket(fields).Cursor()
	for name, _ := c.Seek(id); bytes.HasPrefix(name, id); name, _ = c.Next() {
		names = append(names, bytes.Clone(name))
	}
	for _, name := range names {
		if err := tx.Bucket(fields).Delete(name); err != nil {
			return err
		}
	}
	return tx.Bucket(prefixes).Delete(id)
}

// keepStep is in which steps the instant moves to which a record is kept, so that most
// turns leave it as it is.
const keepStep = time.Hour

// until is to when a record is kept: at least for d after now.
func until(now algo.Instant, d time.Duration) algo.Instant {
	at := now.Add(d)
	return at.Add(keepStep - time.Duration(at)%keepStep)
}

// keep notes to when a record is kept.
func keep(tx *bbolt.Tx, id []byte, until algo.Instant) error {
	text := strconv.AppendInt(nil, int64(until), 10)
	if bytes.Equal(tx.Bucket(prefixes).Get(id), text) {
		return nil
	}
	return tx.Bucket(prefixes).Put(id, text)
}

const (
	// sweepSome is how many prefixes the broom looks at in a turn: those whom nobody
	// touches are gone in time, and no turn is long for it.
	sweepSome = 8
	// sweepFirst is how many it looks at in a campaign, where time has passed in which
	// nobody led.
	sweepFirst = 1 << 16
)

// sweep looks at some prefixes from where it stopped, and drops those that were to be
// kept only to before now.
func (m *Mirror) sweep(tx *bbolt.Tx, now algo.Instant, most int) error {
	var past [][]byte
	c := tx.Bucket(prefixes).Cursor()
	id, text := c.Seek(m.broom)
	for range most {
		if id == nil {
			break
		}
		at, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return fmt.Errorf("prefix %q is kept to %q: %w", id, text, err)
		}
		if algo.Instant(at).Before(now) {
			past = append(past, bytes.Clone(id))
		}
		id, text = c.Next()
	}
	m.broom = bytes.Clone(id)
	for _, id := range past {
		if err := wipe(tx, id); err != nil {
			return err
		}
	}
	return nil
}
