package oracle

import "math/big"

// estimate is what an upstream has that estimates its trailing window from two
// counts: of the period between two multiples of the window since the Unix epoch,
// and of the one before it.
type estimate struct {
	window     int64
	cell       int64
	prev, curr int64
}

// spend counts what is spent; spends come in order.
func (e *estimate) spend(at, cost int64) {
	e.look(at)
	e.curr += cost
}

// look lets the periods until an instant pass.
func (e *estimate) look(at int64) {
	switch n := cell(at, e.window); n - e.cell {
	case 0:
		return
	case 1:
		e.prev, e.curr, e.cell = e.curr, 0, n
	default:
		e.prev, e.curr, e.cell = 0, 0, n
	}
}

// load is the estimate at an instant at or after the last spend: all of this
// period and, of the one before, the part that the trailing window reaches back
// over, rounded up.
func (e estimate) load(at int64) int64 {
	e.look(at)
	left := big.NewInt((e.cell+1)*e.window - at)
	return e.curr + ceilDiv(left.Mul(left, big.NewInt(e.prev)), big.NewInt(e.window))
}

// eases gives the first instant from on at which the estimate is no more than
// most, if nothing more is spent.
func (e estimate) eases(from, most int64) int64 {
	if e.load(from) <= most {
		return from
	}
	return first(from, (cell(from, e.window)+2)*e.window, func(t int64) bool { return e.load(t) <= most })
}

// counterLoadAt counts both periods by looking at every spend.
func counterLoadAt(r Rule, spends []Spend, at int64) int64 {
	return estimateAt(r, spends, at).load(at)
}

func estimateAt(r Rule, spends []Spend, at int64) estimate {
	e := estimate{window: int64(r.Window), cell: cell(at, int64(r.Window))}
	for _, s := range spends {
		if s.At > at {
			continue
		}
		switch cell(s.At, e.window) {
		case e.cell:
			e.curr += weight(r, s)
		case e.cell - 1:
			e.prev += weight(r, s)
		}
	}
	return e
}

func counterStepper(r Rule) func(int, Spend) int64 {
	e := estimate{window: int64(r.Window)}
	return func(_ int, s Spend) int64 {
		e.spend(s.At, weight(r, s))
		return e.load(s.At)
	}
}

func counterEarliest(r Rule) func(made []int64, at int64) int64 {
	e, seen := estimate{window: int64(r.Window)}, 0
	return func(made []int64, at int64) int64 {
		for ; seen < len(made); seen++ {
			e.spend(made[seen], 1)
		}
		return e.eases(at, r.Limit-1)
	}
}
