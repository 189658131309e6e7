package algo

import (
	"fmt"
	"time"
)

// Window is the state of one key under one rule: what is held and spent of its
// limit. It comes from [Spec.Window] or [Spec.Restore]. It may be moved, but not
// copied and used twice: [Window.State] copies.
//
// Time never goes back in a window: an instant earlier than one it has seen is
// taken as the latest it has seen. Every method that is given one brings the
// window up to it first.
type Window struct {
	spec  *Spec
	seen  Instant
	held  int64
	spent int64
	// own belongs to the kind: where a fixed period began, what a bucket has
	// refilled of the next token, what the period before counted, the date of the
	// only mark of a trailing window, or when a pace is free again.
	own   int64
	trail *trail // nil while there is no mark, or only that one
}

// see brings the window up to now.
func (w *Window) see(now Instant) {
	if now > w.seen {
		w.spec.kind.advance(w, now)
		w.seen = now
	}
}

// Seen is the latest instant the window has seen.
func (w *Window) Seen() Instant { return w.seen }

// Limit is the sum of free, held and spent: the limit, what is left of a bucket's
// burst, or 1<<62 for an unlimited rule ([Spec.Max]). Under a guard the sum of a
// fixed window is that of the oldest clock period that a take now could be counted
// in, which is the fullest; the sum of a counter is that of its estimate. Held and
// spent exceed the limit only in a window that was restored under a lower one, or
// has debt by [Window.Charge].
func (w *Window) Limit() int64 { return w.spec.max }

// Free is what can be taken now: that much can, and one more cannot. It is never
// below 0.
func (w *Window) Free(now Instant) int64 {
	w.see(now)
	return max(0, w.spec.max-w.held-w.spent)
}

// Held is what was taken and neither returned nor settled yet.
func (w *Window) Held() int64 { return w.held }

// Spent is what was settled as spent and has not come back yet.
func (w *Window) Spent(now Instant) int64 {
	w.see(now)
	return w.spent
}

// Idle says that nothing is held or spent: from now on the window answers as a
// fresh one would.
func (w *Window) Idle(now Instant) bool {
	w.see(now)
	return w.held == 0 && w.spent == 0
}

// Take moves n from free to held. It panics if n is negative or above Free.
func (w *Window) Take(now Instant, n int64) {
	if free := w.Free(now); n < 0 || n > free {
		panic(fmt.Sprintf("algo: take of %d with %d free under %q", n, free, w.spec.rule))
	}
	w.held += n
	w.spent = w.spec.kind.beside(w, w.held)
}

// Return moves n from held back to free: they were not spent, or for a
// concurrency rule the upstream has answered. It panics if n is negative or
// above Held.
func (w *Window) Return(now Instant, n int64) {
	w.see(now)
	if n < 0 || n > w.held {
		panic(fmt.Sprintf("algo: return of %d with %d held under %q", n, w.held, w.spec.rule))
	}
	w.held -= n
	w.spent = w.spec.kind.beside(w, w.held)
}

// Settle moves n from held to spent, as spent at the instant at, from which the
// rule counts when they come back; what would have come back by now is free at
// once. Buckets and counters count from now instead, and a pace begins n gaps, from
// at on, in which nothing is free. Where now is taken as later, so is at. It panics
// if n is negative or above Held, or if at is later than now.
func (w *Window) Settle(now Instant, n int64, at Instant) {
	if at > now {
		panic(fmt.Sprintf("algo: settle at %d of a spend at %d, %v later", now, at, at.Sub(now)))
	}
	w.see(now)
	if n < 0 || n > w.held {
		panic(fmt.Sprintf("algo: settle of %d with %d held under %q", n, w.held, w.spec.rule))
	}
	if n == 0 {
		return
	}
	w.held -= n
	w.spec.kind.settle(w, n, at.Add(w.seen.Sub(now)))
}

// Charge counts n as spent that were never taken, at the instant at, beside what is
// held: what is beyond the limit is debt, repaid as the rule gives back what is spent.
// The debt is at most one limit, of a pace as many gaps; Charge gives how many of n it
// counted. Where now is
// taken as later, so is at. It panics if n is negative or at is later than now.
func (w *Window) Charge(now Instant, n int64, at Instant) int64 {
	if n < 0 || at > now {
		panic(fmt.Sprintf("algo: charge of %d at %d, %v before now, under %q", n, at, now.Sub(at), w.spec.rule))
	}
	w.see(now)
	if w.spec.max < unlimited {
		n = min(n, max(0, 2*w.spec.max-w.held-w.spent))
	}
	at = at.Add(w.seen.Sub(now))
	if k, paced := w.spec.kind.(pace); paced {
		return k.charge(w, n, at)
	}
	if n > 0 {
		w.spec.kind.settle(w, n, at)
	}
	return n
}

// Wait tells how long until n are free if nobody else takes. It is exact: at now
// plus wait n are free, and 1 ns earlier they are not. It is 0 if they are now,
// and not ok if they never will be, or not within the 292 years that an Instant
// reaches.
//
// Held tokens are reckoned as due says, which is sorted by instant; those that it
// does not mention are reckoned as returned now. So with no due it is the
// soonest, and then 0 may mean that something has to be returned first. It
// panics if due is not sorted, has a negative count, or tells of more than is
// held.
func (w *Window) Wait(now Instant, n int64, due []Due) (wait time.Duration, ok bool) {
	w.see(now)
	left := w.held
	for i, d := range due {
		if d.N < 0 || d.N > left {
			panic(fmt.Sprintf("algo: wait with %d due where %d of %d held are left", d.N, left, w.held))
		}
		if i > 0 && d.At < due[i-1].At {
			panic(fmt.Sprintf("algo: wait with due at %d after due at %d", d.At, due[i-1].At))
		}
		left -= d.N
	}
	if n > w.spec.max {
		return 0, false
	}
	held := w.held - left
	free := w.spec.max - w.spec.kind.beside(w, held) - held
	if n <= free {
		return 0, true
	}
	at, ok := w.spec.kind.wait(w, n, free, due)
	if !ok {
		return 0, false
	}
	return until(now, w.seen, at), true
}

// Forget counts all that is spent as come back: what is free, or held, is as it was else.
func (w *Window) Forget(now Instant) {
	fresh := w.spec.Window(max(now, w.seen))
	st := fresh.State(now)
	st.Held = w.held
	*w = w.spec.Restore(st)
}
