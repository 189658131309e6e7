package coordinator

import (
	"context"
	"sync"

	"ration/lease"
)

// recalls hands recalls to whoever listens for their holder, or for all.
type recalls struct {
	mu   sync.Mutex
	next int
	to   map[int]func(lease.Recall)
}

// Recalls calls got, which must not block, for each recall addressed to h until
// ctx ends.
func (l *Leader) Recalls(ctx context.Context, h lease.Holder, got func(lease.Recall)) error {
	return l.AllRecalls(ctx, func(r lease.Recall) {
		if r.Holder == h {
			got(r)
		}
	})
}

// AllRecalls calls got, which must not block, for every recall until ctx ends.
func (l *Leader) AllRecalls(ctx context.Context, got func(lease.Recall)) error {
	id := l.recalls.add(got)
	defer l.recalls.remove(id)
	select {
	case <-ctx.Done():
		return nil
	case <-l.stopped:
		return lease.ErrStopped
	}
}

func (r *recalls) add(got func(lease.Recall)) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == nil {
		r.to = map[int]func(lease.Recall){}
	}
	r.next++
	r.to[r.next] = got
	return r.next
}

func (r *recalls) remove(id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.to, id)
}

func (r *recalls) deliver(x lease.Recall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, got := range r.to {
		got(x)
	}
}
