package coordinator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestNoRecordsAreMadeForNobody: only where a mirror keeps them are there records,
// whatever the config says.
func TestNoRecordsAreMadeForNobody(t *testing.T) {
	in, err := New(DefaultConfig(lease.Demo()))
	require.NoError(t, err)
	require.True(t, in.config.Lease.Unmirrored)
	mirrored := DefaultConfig(lease.Demo())
	mirrored.Mirror, mirrored.Lease.Unmirrored = NewMemory(), true
	with, err := New(mirrored)
	require.NoError(t, err)
	require.False(t, with.config.Lease.Unmirrored)
}
