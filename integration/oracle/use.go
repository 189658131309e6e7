package oracle

import (
	"fmt"
	"time"
)

// Use is how much of a contract was used: what the spends cost, divided by what
// the greedy schedule gets, over the whole windows of length period between from
// and to, without the first of them, in which everybody still finds all tokens
// free. The schedule is begun at from. 1 is all of it; a little more is
// possible, since a fleet may leave more of the first window than the greedy
// one. It is an error if no whole window is left.
func Use(spends []Spend, s Schedule, from, to int64, period time.Duration) (float64, error) {
	if period <= 0 || (to-from)/int64(period) < 2 {
		return 0, fmt.Errorf("oracle: use needs two whole windows of %v between %d and %d", period, from, to)
	}
	s.From = from
	begin := from + int64(period)
	end := from + (to-from)/int64(period)*int64(period)
	var spent, greedy int64
	for _, x := range spends {
		if x.At >= begin && x.At < end {
			spent += x.Cost
		}
	}
	for _, at := range s.Until(end) {
		if at >= begin {
			greedy++
		}
	}
	if greedy == 0 {
		return 0, fmt.Errorf("oracle: nothing can be got from the contract between %d and %d", begin, end)
	}
	return float64(spent) / float64(greedy), nil
}
