package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// Spends of different instants that one report tells of keep each its own: were
// all dated at the oldest, the others would come back too early, and at the
// newest, the others would be out of the window for longer than they had to be.
func TestEachPointHasTheDateOfItsOwnSpends(t *testing.T) {
	d := newDesk(t)
	d.now = 10 * ms
	d.Finish(d.now, d.has(1, 6))
	for _, n := range []int64{2, 3} {
		d.now += 10 * ms
		c := d.Ask(d.now, n, false, Forever)
		require.True(t, d.Spend(d.now, c))
		d.Finish(d.now, c)
	}
	d.now += 5 * ms
	require.Equal(t, []lease.Point{{Count: 1, Age: 25 * ms}, {Count: 3, Age: 15 * ms}, {Count: 6, Age: 5 * ms}}, d.told().Points)
}
