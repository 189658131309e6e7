package oracle

import "math/big"

// bucket plays a bucket forward: what is missing in it flows in again. It
// starts full. Amounts are in tokens times window, so that all are whole.
type bucket struct {
	rule    Rule
	window  *big.Int
	missing *big.Int // just after the last spend
	last    int64
	any     bool
}

func newBucket(r Rule) *bucket {
	return &bucket{rule: r, window: big.NewInt(int64(r.Window)), missing: new(big.Int)}
}

func (b *bucket) spend(at, cost int64) {
	if b.any {
		b.missing.Sub(b.missing, flow(b.rule, at-b.last))
	}
	if b.missing.Sign() < 0 {
		b.missing.SetInt64(0)
	}
	b.last, b.any = at, true
	b.missing.Add(b.missing, new(big.Int).Mul(big.NewInt(cost), b.window))
}

// bucketLoadAt uses that what is missing in a bucket is, over every instant x
// at which something was spent, the largest of: what was spent since x, less
// what has flowed in since x.
func bucketLoadAt(r Rule, spends []Spend, at int64) int64 {
	window, most := big.NewInt(int64(r.Window)), new(big.Int)
	var since int64
	for i, spends := len(spends)-1, ordered(spends); i >= 0; i-- {
		if spends[i].At > at {
			continue
		}
		since += weight(r, spends[i])
		missing := new(big.Int).Mul(big.NewInt(since), window)
		missing.Sub(missing, flow(r, at-spends[i].At))
		if missing.Cmp(most) > 0 {
			most = missing
		}
	}
	return ceilDiv(most, window)
}

// flow is what comes into a bucket in a time, in tokens times Window.
func flow(r Rule, elapsed int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(r.Limit), big.NewInt(elapsed))
}

// ceilDiv rounds up, against who spends; a is not negative and b is positive.
func ceilDiv(a, b *big.Int) int64 {
	q, rest := new(big.Int).QuoRem(a, b, new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}
