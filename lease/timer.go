package lease

import "ration/algo"

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

// timers is a heap by instant, of four children each: it is half as deep as one of
// two, and those stand side by side. It is written out, since container/heap takes
// room for each timer that comes and each that goes.
type timers struct {
	heap []timer
	sets uint64
}

// set sets a timer, in the place of the one that what it is for has.
func (t *timers) set(x timer) {
	t.sets++
	x.order = t.sets
	at := int(*x.alarm()) - 1
	if at < 0 {
		at = len(t.heap)
		t.heap = append(t.heap, x)
	}
	t.settle(at, x)
}

// stop takes out a timer, if it is set.
func (t *timers) stop(a *alarm) {
	if *a > 0 {
		t.take(int(*a - 1))
	}
}

// due takes the next timer that has come to its instant.
func (t *timers) due(now algo.Instant) (timer, bool) {
	if len(t.heap) == 0 || now.Before(t.heap[0].at) {
		return timer{}, false
	}
	return t.take(0), true
}

// next is when the next timer is due.
func (t *timers) next() (algo.Instant, bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].at, true
}

// take takes out the timer at a place; the last one moves from its own.
func (t *timers) take(at int) timer {
	x := t.heap[at]
	*x.alarm() = 0
	last := len(t.heap) - 1
	moved := t.heap[last]
	t.heap[last] = timer{}
	if t.heap = t.heap[:last]; at < last {
		t.settle(at, moved)
	}
	return x
}

// settle puts x where it belongs, from a place that is free.
func (t *timers) settle(at int, x timer) {
	for at > 0 {
		parent := (at - 1) / 4
		if !x.before(&t.heap[parent]) {
			break
		}
		t.put(at, t.heap[parent])
		at = parent
	}
	for {
		child := 4*at + 1
		if child >= len(t.heap) {
			break
		}
		for other := child + 1; other < min(4*at+5, len(t.heap)); other++ {
			if t.heap[other].before(&t.heap[child]) {
				child = other
			}
		}
		if !t.heap[child].before(&x) {
			break
		}
		t.put(at, t.heap[child])
		at = child
	}
	t.put(at, x)
}

func (t *timers) put(at int, x timer) {
	t.heap[at] = x
	*x.alarm() = alarm(at + 1)
}

func (t *timer) before(other *timer) bool {
	return t.at < other.at || t.at == other.at && t.order < other.order
}
