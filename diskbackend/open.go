package diskbackend

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"ration/lease"
)

const (
	// fileName is the state, and startedName is there while that is made: what is then
	// unfinished never held anything.
	fileName    = "ration.db"
	startedName = "ration.db.started"
	// format is the number of the layout. A newer one reads older ones.
	format = 1
	// lockWait is for how long another process may still be on its way out.
	lockWait = 500 * time.Millisecond
)

// The buckets: about has the format, the seat and the policy, prefixes to when the record of each
// is kept, and fields what the records are.
var (
	about      = []byte("about")
	prefixes   = []byte("prefixes")
	fields     = []byte("fields")
	formatName = []byte("format")
	seatName   = []byte("seat")
	policyName = []byte("policy")
)

// Open opens the state in a directory, and makes both where there is none. It reads the
// whole of it, so that what is damaged is found before anybody leads. Nothing is written
// to a file that is not whole. The error is ErrInUse where another process has the
// directory, ErrDamaged where the file is damaged or a stranger's, and lease.ErrFormat
// where it is of a newer version; others tell of the file system.
func Open(dir string) (*Mirror, error) {
	m := &Mirror{path: filepath.Join(dir, fileName), writing: make(chan struct{}, 1)}
	if err := m.open(dir); err != nil {
		return nil, err
	}
	return m, nil
}

// open opens the store of a directory.
func (m *Mirror) open(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return failed("making", dir, err)
	}
	fresh, err := start(dir, m.path)
	if err != nil {
		return err
	}
	db, err := open(m.path, false)
	if err != nil {
		return err
	}
	file, err := os.Stat(m.path)
	if err != nil {
		return errors.Join(failed("opening", m.path, err), db.Close())
	}
	m.mu.Lock()
	m.db, m.file, m.seen, m.broom = db, file, time.Now(), nil
	m.mu.Unlock()
	if err := m.begin(dir, fresh); err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}

// start says whether the state is yet to be made, and leaves a sign while it is: without
// that an empty file is one that has lost what it had. A state that is there is checked.
func start(dir, path string) (fresh bool, err error) {
	sign := filepath.Join(dir, startedName)
	started, err := exists(sign)
	if err != nil {
		return false, err
	}
	there, err := exists(path)
	switch {
	case err != nil:
		return false, err
	case there:
		err := check(path)
		if started && errors.Is(err, errNothing) {
			return true, nil
		}
		return false, err
	case started:
		return true, nil
	}
	f, err := os.OpenFile(sign, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, failed("making", sign, err)
	}
	return true, f.Close()
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, failed("opening", path, err)
	}
	return true, nil
}

// open opens the store. It keeps no list of free pages on disk, which would grow with
// what was ever there and be written by each turn, and finds them when it opens.
func open(path string, only bool) (db *bbolt.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, damaged(path, "%v", p)
		}
	}()
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:        lockWait,
		ReadOnly:       only,
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		NoStatistics:   true,
	})
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%w: %s is locked: stop that one, or give this one a directory of its own", ErrInUse, path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, damaged(path, "its first pages are not those of a store (%v)", err)
	}
	return nil, failed("opening", path, err)
}

// begin reads the seat, or makes what a new state has.
func (m *Mirror) begin(dir string, fresh bool) error {
	if fresh {
		err := m.update(func(tx *bbolt.Tx) error {
			for _, name := range [][]byte{about, prefixes, fields} {
				if _, err := tx.CreateBucketIfNotExists(name); err != nil {
					return err
				}
			}
			if tx.Bucket(about).Get(formatName) != nil { // another process was quicker
				return nil
			}
			return tx.Bucket(about).Put(formatName, strconv.AppendInt(nil, format, 10))
		})
		if err != nil {
			return failed("making", m.path, err)
		}
	}
	if err := settle(dir); err != nil {
		return err
	}
	return m.view(func(tx *bbolt.Tx) error {
		seat, err := getSeat(tx)
		// Whoever led had the file locked, and so leads no more.
		seat.Vacant = seat.Epoch != lease.Epoch{}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.seat = seat
		return err
	})
}

// settle takes away the sign that the state is being made, and sees to it that the names
// in the directory are on disk too.
func settle(dir string) error {
	err := os.Remove(filepath.Join(dir, startedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && runtime.GOOS != "windows" { // which has no such thing
		err = syncDir(dir)
	}
	if err != nil {
		return failed("making the state in", dir, err)
	}
	// So are the names of the folders that were made for it, as far as may be: others
	// belong to somebody else.
	for up := filepath.Dir(dir); syncDir(up) == nil && up != filepath.Dir(up); {
		up = filepath.Dir(up)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
