package oracle

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"time"
)

// Holds is how long a spend of that cost keeps a pace from the next: cost times
// Window divided by Limit, rounded up to a nanosecond, since spends are at whole
// ones. It is for good where Limit is 0.
func (r Rule) Holds(cost int64) time.Duration {
	if r.Limit == 0 {
		return math.MaxInt64
	}
	over := new(big.Int).Mul(big.NewInt(cost), big.NewInt(int64(r.Window)))
	q, rest := over.QuoRem(over, big.NewInt(r.Limit), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return math.MaxInt64
	}
	return time.Duration(q.Int64())
}

// heldUntil is the first instant at which the spend does not hold the pace.
func heldUntil(r Rule, s Spend) int64 {
	if holds := int64(r.Holds(s.Cost)); s.At <= 0 || holds <= math.MaxInt64-s.At {
		return s.At + holds
	}
	return math.MaxInt64
}

// paceStepper merges the spends with the ends of their gaps, as if each were a call
// under way for its gap.
func paceStepper(r Rule, spends []Spend) func(int, Spend) int64 {
	ends := make([]int64, len(spends))
	for i, s := range spends {
		ends[i] = heldUntil(r, s)
	}
	slices.SortFunc(ends, cmp.Compare)
	var made, over int64
	return func(_ int, s Spend) int64 {
		made++
		for over < int64(len(ends)) && ends[over] <= s.At {
			over++
		}
		return made - over
	}
}
