package coordinator

import (
	"context"
	"math/rand/v2"
	"sync"

	"ration/internal/table"
	"ration/lease"
)

// Memory is a mirror and a seat that live in this process. It is safe for
// concurrent use; several coordinators may share one, and one of them leads.
type Memory struct {
	mu    sync.Mutex
	freed chan struct{} // closed when the seat becomes free
	taken bool
	epoch lease.Epoch
	seq   uint64
	// A record of a key is in one of these. Most keys are hardly used, and theirs
	// are packed; those of the others change at every turn, and packing them would
	// take longer than the turn.
	packed *table.Table[string, string]
	whole  *table.Table[lease.Key, *lease.Record]
	packer packer
}

// packedMarks is how many marks a packed record has at most.
const packedMarks = 32

func packs(r *lease.Record) bool {
	marks := 0
	for i := range r.Windows {
		marks += len(r.Windows[i].State.Marks)
	}
	return len(r.Leases) == 0 && marks <= packedMarks
}

func recordKey(r *lease.Record) lease.Key { return r.Key }

var (
	_ lease.Mirror  = (*Memory)(nil)
	_ lease.Elector = (*Memory)(nil)
)

// NewMemory gives an empty mirror with a free seat.
func NewMemory() *Memory {
	return &Memory{
		freed:  make(chan struct{}),
		packed: table.New(packedKey),
		whole:  table.New(recordKey),
		packer: packer{place: map[string]uint64{}},
	}
}

// Campaign waits for the seat to be free, or for ctx to end, and takes it with
// an epoch that nobody had before.
func (m *Memory) Campaign(ctx context.Context) (lease.Epoch, error) {
	for {
		if err := ctx.Err(); err != nil {
			return lease.Epoch{}, err
		}
		m.mu.Lock()
		if !m.taken {
			m.taken = true
			m.freed = make(chan struct{})
			m.epoch = lease.Epoch{Number: m.epoch.Number + 1, Mark: rand.Uint64()}
			m.seq = 0
			e := m.epoch
			m.mu.Unlock()
			return e, nil
		}
		freed := m.freed
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return lease.Epoch{}, ctx.Err()
		case <-freed:
		}
	}
}

// Renew says whether e still has the seat, or lease.ErrFenced.
func (m *Memory) Renew(_ context.Context, e lease.Epoch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fence(e)
}

// Resign frees the seat if e has it.
func (m *Memory) Resign(_ context.Context, e lease.Epoch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fence(e); err != nil {
		return err
	}
	m.taken = false
	close(m.freed)
	return nil
}

func (m *Memory) fence(e lease.Epoch) error {
	if !m.taken || e != m.epoch {
		return lease.ErrFenced
	}
	return nil
}

// Load gives the record of a key, or an empty one.
func (m *Memory) Load(_ context.Context, key lease.Key) (lease.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.whole.Get(key); ok {
		return *r, nil
	}
	if packed, ok := m.packed.Get(string(key)); ok {
		return m.packer.unpack(packed), nil
	}
	return lease.Record{Key: key}, nil
}

// Apply records the turn after the last one of its epoch. The last one again is
// no error and changes nothing; any other number is lease.ErrGap, another epoch
// lease.ErrFenced.
func (m *Memory) Apply(_ context.Context, t *lease.Turn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fence(t.Epoch); err != nil {
		return err
	}
	switch t.Seq {
	case m.seq:
		return nil
	case m.seq + 1:
	default:
		return lease.ErrGap
	}
	m.seq = t.Seq
	for _, r := range t.Records {
		m.keep(r)
	}
	return nil
}

func (m *Memory) keep(r lease.Record) {
	switch {
	case r.Empty():
		m.whole.Delete(r.Key)
		m.packed.Delete(string(r.Key))
	case packs(&r):
		m.whole.Delete(r.Key)
		m.packed.Put(m.packer.pack(r))
	default:
		m.packed.Delete(string(r.Key))
		m.whole.Put(&r)
	}
}
