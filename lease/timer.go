package lease

import (
	"container/heap"

	"ration/algo"
)

// timer is something that happens at an instant by itself: a lease expires, a
// waiter's time is up, or an account may have enough free for its line. One of
// the three is set, and each of them has at most one timer.
type timer struct {
	at      algo.Instant
	order   uint64 // of being set: ties are broken by it, so that runs repeat
	lease   *lease
	waiter  *waiter
	account *account
}

// alarm is the place of something's timer in the heap, counted from 1, or 0 for
// none.
type alarm int

func (t *timer) alarm() *alarm {
	switch {
	case t.lease != nil:
		return &t.lease.alarm
	case t.waiter != nil:
		return &t.waiter.alarm
	default:
		return &t.account.line.alarm
	}
}

// timers is a heap by instant.
type timers struct {
	heap timerHeap
	sets uint64
}

// set sets a timer, in the place of the one that what it is for has.
func (t *timers) set(x timer) {
	t.sets++
	x.order = t.sets
	if at := *x.alarm(); at > 0 {
		t.heap[at-1] = x
		heap.Fix(&t.heap, int(at-1))
		return
	}
	heap.Push(&t.heap, x)
}

// stop takes out a timer, if it is set.
func (t *timers) stop(a *alarm) {
	if *a > 0 {
		heap.Remove(&t.heap, int(*a-1))
	}
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
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].alarm(), *h[j].alarm() = alarm(i+1), alarm(j+1)
}
func (h *timerHeap) Push(x any) {
	t := x.(timer)
	*h = append(*h, t)
	*t.alarm() = alarm(len(*h))
}
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*x.alarm() = 0
	(*h)[last] = timer{}
	*h = (*h)[:last]
	return x
}
