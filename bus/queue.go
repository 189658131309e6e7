package bus

import (
	"runtime"
	"sync"
)

// queue hands over what gathers in it, all at once. Whoever puts never waits.
type queue[T any] struct {
	mu     sync.Mutex
	items  []T
	closed bool
	some   chan struct{} // has something while items has, or once closed
}

func newQueue[T any]() *queue[T] { return &queue[T]{some: make(chan struct{}, 1)} }

func (q *queue[T]) put(item T) {
	q.mu.Lock()
	q.items = append(q.items, item)
	first := len(q.items) == 1
	q.mu.Unlock()
	if first {
		q.tell()
	}
}

// close lets take end once everything is taken.
func (q *queue[T]) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.tell()
}

func (q *queue[T]) tell() {
	select {
	case q.some <- struct{}{}:
	default:
	}
}

// take waits for items and gives them all. The room of those taken before is used
// again. False says that the queue is closed and empty.
func (q *queue[T]) take(before []T) (items []T, ok bool) {
	clear(before)
	for {
		q.mu.Lock()
		closed := q.closed
		if len(q.items) > 0 {
			items, q.items = q.items, before[:0]
			q.mu.Unlock()
			return items, true
		}
		q.mu.Unlock()
		if closed {
			return nil, false
		}
		<-q.some
		runtime.Gosched() // what is about to come is taken too
	}
}
