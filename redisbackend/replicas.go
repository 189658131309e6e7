package redisbackend

import (
	"context"
	"strconv"
	"sync"
	"time"
)

// countEvery is how often a write that waits for no replica asks whether there is one.
const countEvery = 100 * time.Millisecond

// due says whether it is time to ask how many replicas there are, which was last done at
// that time.
func (m *Mirror) due(last *time.Time, every time.Duration) bool {
	if m.server.config.Replicas >= 0 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(*last) < every {
		return false
	}
	*last = time.Now()
	return true
}

// countReplicas asks how many replicas there are to wait for.
func (m *Mirror) countReplicas(ctx context.Context) {
	node, err := m.node(ctx)
	if err != nil {
		return
	}
	if info, err := node.Info(ctx).Result(); err == nil {
		m.replicas.count(info, time.Now())
	}
}

// needed is how many replicas have to have what is written.
func (m *Mirror) needed() int {
	if n := m.server.config.Replicas; n >= 0 {
		return n
	}
	return m.replicas.needed(time.Now())
}

// connected is how many replicas are connected to a node, as its INFO says.
func connected(info string) (int, bool) {
	n, err := strconv.Atoi(field(info, "connected_slaves"))
	return n, err == nil
}

// remembered is for how long a replica that is gone may still be promoted.
const remembered = time.Minute

// replicas is how many replicas may be promoted in place of the node that has the
// partition: those that have been connected within the last minute. It is safe for
// concurrent use.
type replicas struct {
	mu   sync.Mutex
	last map[int]time.Time // when so many were last connected
	run  string            // the life of the node that was asked last
	at   time.Time         // when that was
}

// count notes how many replicas a node has at now, as its INFO says.
//
// Where another node answers than before, one of the replicas has been promoted: one
// less can be. The node before it cannot until it is a replica itself, and is counted then. A
// node that was started again is told from that by having begun after it was last
// seen: its replicas may be promoted as ever. Where the two cannot be told apart it is the
// same node, which only lets answers wait longer.
func (r *replicas) count(info string, now time.Time) {
	n, ok := connected(info)
	if !ok {
		return
	}
	run := field(info, "run_id")
	up, err := strconv.ParseInt(field(info, "uptime_in_seconds"), 10, 32)
	r.mu.Lock()
	defer r.mu.Unlock()
	const rounded = 2 * time.Second
	if other := run != r.run && r.run != "" && err == nil; other && now.Add(-time.Duration(up)*time.Second).Before(r.at.Add(-rounded)) {
		less := map[int]time.Time{}
		for n, at := range r.last {
			less[n-1] = at
		}
		r.last = less
	}
	if r.last == nil {
		r.last = map[int]time.Time{}
	}
	r.run, r.at = run, now
	r.last[n] = now
}

// needed is how many replicas have to have a turn at now.
func (r *replicas) needed(now time.Time) (most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, at := range r.last {
		if now.Sub(at) > remembered {
			delete(r.last, n)
			continue
		}
		most = max(most, n)
	}
	return most
}
