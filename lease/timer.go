package lease

import (
	"container/heap"

	"ration/algo"
)

// timer is something that happens at an instant by itself: a lease expires, a
// waiter's time is up, or an account may have enough free for its line. One of
// the three is set. A timer whose reason has gone does nothing when it fires.
type timer struct {
	at      algo.Instant
	order   uint64 // of being set: ties are broken by it, so that runs repeat
	lease   *lease
	waiter  *waiter
	account *account
}

// timers is a heap by instant.
type timers struct {
	heap timerHeap
	sets uint64
}

func (t *timers) set(x timer) {
	t.sets++
	x.order = t.sets
	heap.Push(&t.heap, x)
}

// due takes the next timer that has come to its instant.
func (t *timers) due(now algo.Instant) (timer, bool) {
	if len(t.heap) == 0 || now.Before(t.heap[0].at) {
		return timer{}, false
	}
	return heap.Pop(&t.heap).(timer), true
}

// next is when the next timer is due.
func (t *timers) next() (algo.Instant, bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].at, true
}

type timerHeap []timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)   { *h = append(*h, x.(timer)) }
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = timer{}
	*h = (*h)[:last]
	return x
}
