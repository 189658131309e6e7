package algo

import (
	"math/bits"
	"time"
)

// Allowance is what a window gives up so that the rule holds where it counts: at
// the upstream, by the upstream's clock. The zero Allowance is exact.
type Allowance struct {
	// Guard is how much later one call may reach the upstream than another:
	// sliding windows grow by it, the burst of a bucket shrinks by what flows in
	// meanwhile, rounded up, each gap of a pace grows by it, a spend near a boundary
	// of a fixed window or of a counter counts on both sides of it, and a slot that
	// was settled is free that much later. From 0 to MaxPeriod.
	Guard time.Duration
	// PPM is how much, in millionths, the rates of the clocks involved may
	// differ: the periods of sliding windows, buckets and paces grow by it, and the
	// age of a spend in a fixed window is taken as that much less. From 0 to
	// 1,000,000.
	PPM int64
}

// million is what PPM counts parts of.
const million = 1_000_000

// grow adds the clock allowance to d, rounded up. The quotient is below 2^63
// since d is below 2^62 and PPM at most a million.
func (a Allowance) grow(d time.Duration) time.Duration { return d + a.share(d) }

// share is ceil(d * PPM / 1,000,000), for d at or above 0.
func (a Allowance) share(d time.Duration) time.Duration {
	hi, lo := bits.Mul64(uint64(d), uint64(a.PPM))
	quo, rem := bits.Div64(hi, lo, million)
	if rem > 0 {
		quo++
	}
	return time.Duration(quo)
}
