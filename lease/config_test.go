package lease_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestEveryBoundIsChecked: a config says of each bound that makes no sense what is
// wrong, all at once.
func TestEveryBoundIsChecked(t *testing.T) {
	require.NoError(t, lease.DefaultConfig().Validate())
	err := lease.Config{}.Validate()
	for _, says := range []string{
		"lease: bound of 0 keys is not above 0", "lease: bound of 0 holders each is not above 0", "lease: bound of 0 leases each is not above 0",
		"lease: bound of 0 waiters each is not above 0", "lease: bound of 0 ids each is not above 0", "lease: line of 0 is not above 0",
	} {
		require.ErrorContains(t, err, says)
	}
	c := lease.DefaultConfig()
	c.IDs = lease.Bound{Each: 3, All: 2}
	require.EqualError(t, c.Validate(), "lease: bound of 2 ids in all is below 3 each")
}
