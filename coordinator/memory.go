package coordinator

import (
	"context"
	"maps"
	"slices"
	"sync"

	"ration/algo"
	"ration/lease"
)

// Memory is a mirror and a seat that live in this process, for coordinators that
// share it: it does what those outside do, and shows how they forget. It is safe for
// concurrent use.
type Memory struct {
	// Life names the server's life, and Clock is its wall clock. They are set before it is
	// used; a mirror needs neither.
	Life  string
	Clock func() algo.Instant

	mu      sync.Mutex
	seat    lease.Seat
	policy  lease.PolicyRecord
	records map[lease.Key]lease.Record
}

var (
	_ lease.Mirror  = (*Memory)(nil)
	_ lease.Elector = (*Memory)(nil)
)

// NewMemory gives an empty mirror without a seat.
func NewMemory() *Memory { return &Memory{records: map[lease.Key]lease.Record{}} }

// Look reads the seat.
func (m *Memory) Look(context.Context) (lease.Seat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.seat
	s.Now, s.Running = m.clock(), m.Life
	return s, nil
}

// Campaign puts next into the place of the seat if that has not moved since it was
// seen.
func (m *Memory) Campaign(_ context.Context, seen, next lease.Seat) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.seat.Epoch != (lease.Epoch{}) && m.seat.Partitions != next.Partitions:
		return lease.ErrPartitions
	case m.seat.Moved(&seen):
		return lease.ErrMoved
	}
	next.Revision, next.Available = m.seat.Revision, m.seat.Available
	m.seat = next
	m.seat.Seq, m.seat.Vacant, m.seat.Fresh = 0, false, false
	m.seat.Clock, m.seat.Now, m.seat.Running = m.clock(), 0, ""
	return nil
}

// Renew shows that the leader lives.
func (m *Memory) Renew(_ context.Context, e lease.Epoch, p lease.Pulse) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.seat.Fence(e); err != nil {
		return err
	}
	if err := m.seat.Renewed(p); err != nil {
		return err
	}
	if p.Run != "" {
		m.seat.Run, p.Run = p.Run, ""
	}
	p.Revision = 0
	m.seat.Pulse, m.seat.Clock = p, m.clock()
	return nil
}

// Resign gives the seat up.
func (m *Memory) Resign(_ context.Context, e lease.Epoch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.seat.Fence(e); err != nil {
		return err
	}
	m.seat.Vacant = true
	return nil
}

// Load gives the records of keys.
func (m *Memory) Load(_ context.Context, e lease.Epoch, keys []lease.Key) ([]lease.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.seat.Fence(e); err != nil {
		return nil, err
	}
	records := make([]lease.Record, len(keys))
	for i, key := range keys {
		records[i] = m.records[key].Clone()
		records[i].Key = key
	}
	return records, nil
}

// Keys gives all keys that have records.
func (m *Memory) Keys(_ context.Context, e lease.Epoch, _ string) ([]lease.Key, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.seat.Fence(e); err != nil {
		return nil, "", err
	}
	return slices.Sorted(maps.Keys(m.records)), "", nil
}

// Policy gives the policy in force.
func (m *Memory) Policy(context.Context) (lease.PolicyRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.policy, nil
}

// Apply records the turn after the last one of its epoch.
func (m *Memory) Apply(_ context.Context, t *lease.Turn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.seat.Fence(t.Epoch); err != nil {
		return err
	}
	if apply, err := m.seat.Follow(t.Seq); !apply {
		return err
	}
	m.seat.Seq, m.seat.Clock = t.Seq, m.clock()
	m.seat.Pulse.Instant, m.seat.Pulse.Wall, m.seat.Dial = t.Instant, t.Wall, t.Dial
	if t.Policy != nil {
		m.policy = *t.Policy
	}
	m.seat.Reform(t.Policy)
	if t.Sound {
		m.seat.Lost, m.seat.Lagged = lease.Doubt{}, lease.Doubt{}
	}
	for _, c := range t.Changes {
		r := m.records[c.Key]
		r.Key = c.Key
		if r.Change(c, t.Epoch.Number); r.Empty() {
			delete(m.records, c.Key)
			continue
		}
		m.records[c.Key] = r
	}
	return nil
}

// clock reads the server's wall clock, if it has one.
func (m *Memory) clock() algo.Instant {
	if m.Clock == nil {
		return 0
	}
	return m.Clock()
}

// Forget loses everything, the seat too, as a server does that starts anew.
func (m *Memory) Forget() { m.Restore(NewMemory()) }

// Copy gives a mirror that has what this one has now.
func (m *Memory) Copy() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMemory()
	c.seat, c.policy = m.seat, m.policy
	for key, r := range m.records {
		c.records[key] = r.Clone()
	}
	return c
}

// Restore makes the mirror what a copy of it was, as a server does that starts from
// an old one.
func (m *Memory) Restore(from *Memory) {
	c := from.Copy()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seat, m.policy, m.records = c.seat, c.policy, c.records
}
