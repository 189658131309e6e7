package lease_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

func TestDurationsForPeopleHaveFewDigitsAndAreNeverTooShort(t *testing.T) {
	for text, want := range map[string]string{
		"0s": "0s", "1ns": "1ns", "999ns": "999ns", "1234ns": "1.24µs", "9314313ns": "9.32ms", "9.314313817s": "9.32s", "10s": "10s",
		"59.91s": "1m0s", "1m0.000000001s": "1m1s", "2h3m4.5s": "2h3m5s", "-9.314313817s": "-9.32s", "100.02ms": "101ms", "333.333334ms": "334ms",
	} {
		d, err := time.ParseDuration(text)
		require.NoError(t, err)
		require.Equal(t, want, lease.Rounded(d).String(), text)
	}
	require.Positive(t, lease.Rounded(math.MaxInt64))
}
