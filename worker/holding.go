package worker

import (
	"slices"
	"sync/atomic"
	"time"

	"ration/lease"
)

// holding is one lease as its holder has it. Each of its tokens is in one
// place: left, open, spent, returned or expired. What Allow takes counts as spent
// from then on, also where it turns out to be no spend: the ledger is told so, and
// the books in the end that it expired.
//
// taken is the number that Allow changes without the pool's owner, and has a cache
// line of its own: of what was granted, all that is not left, and more once Allow has
// found nothing left. The deadline and the share, which Allow reads, never change.
type holding struct {
	taken atomic.Int64
	_     [56]byte

	deadline time.Duration
	share    int64 // Allow takes no more at a time without the lock
	id       lease.ID
	granted  lease.Amount
	moved    int64        // of what was granted, what is not left but by Allow
	missed   atomic.Int64 // taken by Allow, and no spend
	looked   int64        // of swift, at the last look
	dated    int64        // of swift, that points tell of

	open     int64 // taken by calls, and neither spent nor returned yet
	spent    int64
	returned int64
	expired  int64
	units    []unitStock // by name; nil in a lease of calls alone
	points   []mark      // not acknowledged, by rising counts
	// unitPoints are what each of points says of each of units, and as nil as units.
	unitPoints [][]int64

	slotDeadline time.Duration
	idle, busy   int64
	idleSince    time.Duration
	freed, cut   int64
	slotsGone    bool

	run    bool          // under a pace rule
	backAt time.Duration // what is left of a run then goes back

	stocked   bool // in the pool's stock
	published bool // Allow has been pointed at it
	gone      bool // over: nothing more is spent of it
	unsaid    bool // something happened that no report tells of

	ackSpent, ackReturned, ackFreed, ackCut int64
}

// mark says that count of a lease's tokens had been spent at an instant.
type mark struct {
	count int64
	at    time.Duration
}

// left is how many tokens are at hand.
func (h *holding) left() int64 { return max(0, h.granted.Tokens-h.taken.Load()) }

// take takes up to n tokens and gives how many it got.
func (h *holding) take(n int64) int64 {
	for {
		taken := h.taken.Load()
		got := min(n, h.granted.Tokens-taken)
		if got <= 0 {
			return 0
		}
		if h.taken.CompareAndSwap(taken, taken+got) {
			h.moved += got
			return got
		}
	}
}

// takeLeft takes all that is left.
func (h *holding) takeLeft() int64 { return h.take(h.granted.Tokens) }

// put makes n tokens that are not left be left.
func (h *holding) put(n int64) {
	for {
		taken := h.taken.Load()
		if h.taken.CompareAndSwap(taken, min(taken, h.granted.Tokens)-n) {
			h.moved -= n
			return
		}
	}
}

// swift is what Allow has taken.
func (h *holding) swift() int64 { return min(h.taken.Load(), h.granted.Tokens) - h.moved }

// losable is the part of a lease that Allow may take at a time without the lock: a take
// that turns out to be no spend is lost, which a small lease cannot bear.
const losable = 64

// takeAll takes n tokens or none, for Allow, in one step that is never tried again: on
// many cores a look before it would cost as much. Where several are asked for and others
// leave too few between the look and the step, those few are lost.
func (h *holding) takeAll(n int64) bool {
	if n > h.share || n > 1 && h.left() < n {
		return false
	}
	return h.taken.Add(n) <= h.granted.Tokens
}

// point notes that n more had been spent at an instant.
func (h *holding) point(n int64, at time.Duration, most int) {
	h.spent += n
	h.note(at, most)
}

// note dates what has been spent since the last point. When most points wait
// already, the two neighbours nearest in time become one at the later of their
// dates, which delays the fewest tokens the least. Of a run it is the two with the
// fewest: tokens dated together keep others from the rule as if spent together.
func (h *holding) note(at time.Duration, most int) {
	h.unsaid = true
	if k := len(h.points); k > 0 && h.points[k-1].at == at {
		h.points[k-1].count = h.spent
		if h.units != nil {
			h.unitPoints[k-1] = h.unitCounts()
		}
		return
	}
	h.points = append(h.points, mark{h.spent, at})
	if h.units != nil {
		h.unitPoints = append(h.unitPoints, h.unitCounts())
	}
	if len(h.points) <= most {
		return
	}
	best, least := 0, Forever
	for i := range len(h.points) - 1 {
		delay := (h.points[i+1].at - h.points[i].at).Abs()
		if h.run {
			delay = time.Duration(h.points[i+1].count - h.before(i))
		}
		if delay < least {
			best, least = i, delay
		}
	}
	h.points[best+1].at = max(h.points[best].at, h.points[best+1].at)
	h.points = append(h.points[:best], h.points[best+1:]...)
	if h.units != nil {
		h.unitPoints = slices.Delete(h.unitPoints, best, best+1)
	}
}

// before is how many had been spent before a point, as far as points tell.
func (h *holding) before(i int) int64 {
	if i == 0 {
		return h.ackSpent
	}
	return h.points[i-1].count
}

// acknowledge forgets what a report told that has been answered.
func (h *holding) acknowledge(c lease.Count) {
	if k := len(c.Points); k > 0 {
		h.ackSpent = max(h.ackSpent, c.Points[k-1].Count)
	}
	h.ackReturned = max(h.ackReturned, c.Returned)
	h.ackFreed = max(h.ackFreed, c.Freed)
	h.ackCut = max(h.ackCut, c.Cut)
	h.acknowledgeUnits(c)
	known := 0
	for known < len(h.points) && h.points[known].count <= h.ackSpent && h.knownUnits(known) {
		known++
	}
	h.points = append(h.points[:0], h.points[known:]...)
	if h.units != nil {
		h.unitPoints = slices.Delete(h.unitPoints, 0, known)
	}
}

// count tells what has become of the lease by now.
func (h *holding) count(now time.Duration, keys []lease.Key) lease.Count {
	c := lease.Count{ID: h.id, Keys: keys, Returned: h.returned, Freed: h.freed, Cut: h.cut}
	if len(h.points) > 0 {
		c.Points = make([]lease.Point, len(h.points))
		for i, m := range h.points {
			c.Points[i] = lease.Point{Count: m.count, Age: max(0, now-m.at)}
			if h.units != nil {
				c.Points[i].Units = h.toldUnits(func(k int) int64 { return h.unitPoints[i][k] })
			}
		}
	}
	if h.units != nil {
		c.ReturnedUnits = h.toldUnits(func(k int) int64 { return h.units[k].returned })
	}
	return c
}

// over says that nothing is left to happen or to tell, or that telling does not
// matter any more: grace after its deadline the ledger has settled it.
func (h *holding) over(now time.Duration) bool {
	if h.gone {
		return true
	}
	slots := h.slotsGone || h.freed+h.cut == h.granted.Slots
	if !slots || h.open > 0 || h.unitsOpen() {
		return false
	}
	if now > h.deadline+grace && (h.slotsGone || h.granted.Slots == h.ackFreed+h.ackCut) {
		return true
	}
	return h.spent+h.returned == h.granted.Tokens && h.swift() == h.dated &&
		h.ackSpent == h.spent && h.ackReturned == h.returned && h.unitsTold() &&
		(h.slotsGone || h.ackFreed+h.ackCut == h.granted.Slots)
}

// grace is how long after its deadline a lease is still told of.
const grace = time.Second
