package algo

import (
	"math"
	"math/bits"
	"time"
)

// bucket is the behaviour of a token bucket: what is spent comes back evenly,
// limit tokens in each period, up to burst less what is held. When a spend was
// settled, not when it happened, is what counts: a held token keeps the bucket
// from filling to the brim until then, and refilling from the spend's age would
// refill twice.
//
// Window.own is what is refilled of the next token, in nanoseconds times limit:
// from 0 to period-1, and 0 while nothing is spent. Carrying it keeps the refill
// exact for ever.
type bucket struct {
	limit  int64
	period time.Duration
}

func (k bucket) begin(*Window) {}

func (k bucket) advance(w *Window, to Instant) {
	w.spent, w.own = k.refill(w.spent, w.own, to.Sub(w.seen))
}

func (k bucket) settle(w *Window, n int64, _ Instant) { w.spent += n }

func (k bucket) beside(w *Window, _ int64) int64 { return w.spent }

// refill gives what is still spent after d, and what is refilled of the next
// token. The product is below 2^63 * 2^50, and a quotient that needs more than
// 64 bits is more than could be spent.
func (k bucket) refill(spent, part int64, d time.Duration) (int64, int64) {
	if spent == 0 || k.limit == 0 {
		return spent, part
	}
	hi, lo := bits.Mul64(uint64(d), uint64(k.limit))
	lo, carry := bits.Add64(lo, uint64(part), 0)
	hi += carry
	if hi >= uint64(k.period) {
		return 0, 0
	}
	quo, rem := bits.Div64(hi, lo, uint64(k.period))
	if quo >= uint64(spent) {
		return 0, 0
	}
	return spent - int64(quo), int64(rem)
}

// after is how long until n more tokens are refilled, rounded up: the least d
// for which d*limit + part >= n*period.
func (k bucket) after(n, part int64) (time.Duration, bool) {
	if k.limit == 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(n), uint64(k.period))
	lo, borrow := bits.Sub64(lo, uint64(part), 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(k.limit-1), 0)
	hi += carry
	if hi >= uint64(k.limit) {
		return 0, false
	}
	quo, _ := bits.Div64(hi, lo, uint64(k.limit))
	return time.Duration(quo), quo < math.MaxInt64
}

// wait goes from one due settlement to the next. In between, what is held stays,
// and n are free once no more than room is spent.
func (k bucket) wait(w *Window, n, free int64, due []Due) (Instant, bool) {
	now, spent, part := w.seen, w.spent, w.own
	held := w.spec.max - spent - free
	for {
		if room := w.spec.max - held - n; room >= 0 {
			d, ok := k.after(spent-room, part)
			at := now.Add(d)
			if ok && at < lastInstant && (len(due) == 0 || at <= due[0].At) {
				return at, true
			}
		}
		if len(due) == 0 {
			return 0, false
		}
		next := max(now, due[0].At)
		spent, part = k.refill(spent, part, next.Sub(now))
		now = next
		spent += due[0].N
		held -= due[0].N
		due = due[1:]
	}
}

func (k bucket) restore(w *Window, st State) {
	w.spent = bounded(st.Spent)
	if w.spent > 0 {
		w.own = min(max(0, st.Own), int64(k.period)-1)
	}
}
