package diskbackend

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// look finds out, once in a while, whether the file is still in its place. Whoever takes it
// away, or puts another there, does not disturb who has it open; but nobody would find
// again what is written to it.
func (m *Mirror) look() {
	m.mu.Lock()
	due := !m.closed && !m.gone && time.Since(m.seen) >= saveEvery
	if due {
		m.seen = time.Now()
	}
	file := m.file
	m.mu.Unlock()
	if !due {
		return
	}
	there, err := os.Stat(m.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(there, file) {
		m.mu.Lock()
		m.gone = true
		m.mu.Unlock()
	}
}

func (m *Mirror) isGone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone
}

// again opens what is now in the place of a file that is gone, or makes it. The seat is
// what that has; who has the ledger writes it back.
func (m *Mirror) again(ctx context.Context) error {
	if err := m.write(ctx); err != nil {
		return err
	}
	defer m.written()
	m.mu.Lock()
	closed, gone, db := m.closed, m.gone, m.db
	m.mu.Unlock()
	if closed || !gone {
		return nil
	}
	if err := errors.Join(db.Close(), m.open(filepath.Dir(m.path))); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone, m.saved = false, time.Time{}
	return nil
}
