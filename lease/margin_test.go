package lease_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestHolderStopsFirst: a holder whose clock is 100 ppm slow, counting from the
// sending of a message that arrived at once, stops before a lessor whose clock
// is 100 ppm fast has the lease expired. The margin costs no more than a
// five-hundredth of what there is.
func TestHolderStopsFirst(t *testing.T) {
	for _, ttl := range []time.Duration{
		1000, time.Microsecond + 1, time.Millisecond, 5 * time.Second, 10 * time.Second, time.Hour, 30 * 24 * time.Hour,
	} {
		margin := lease.Margin(ttl)
		holder := new(big.Rat).Mul(big.NewRat(int64(ttl-margin), 1), big.NewRat(1_000_000, 999_900))
		lessor := new(big.Rat).Mul(big.NewRat(int64(ttl), 1), big.NewRat(1_000_000, 1_000_100))
		require.Negative(t, holder.Cmp(lessor), "TTL %v: the holder stops at %v, the lessor at %v of true time",
			ttl, holder.FloatString(0), lessor.FloatString(0))
		require.LessOrEqual(t, margin, max(2, ttl/500), "TTL %v", ttl)
	}
}
