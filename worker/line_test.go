package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestNoMoreCallersWaitThanTheLineHasPlaces: the last of them are refused as soon as the
// bound is known, and then whoever comes when as many wait.
func TestNoMoreCallersWaitThanTheLineHasPlaces(t *testing.T) {
	d := newDesk(t)
	d.cfg.Class = "standard"
	var calls []*Call
	for range 5 {
		calls = append(calls, d.Ask(d.now, 1, false, Forever))
	}
	r := d.Requests(d.now)[0]
	require.Equal(t, "standard", r.Class)
	terms := lease.Terms{Window: time.Second, Bounded: true, Line: 2}
	d.Answered(d.now, r.Sent, lease.Answer{ID: r.ID, Outcome: lease.Waiting, Terms: terms})
	for i, want := range []State{Waiting, Waiting, Failed, Failed, Failed} {
		require.Equal(t, want, calls[i].State(), i)
	}
	refused := calls[4].Err().(*RefusedError)
	require.ErrorIs(t, refused, lease.ErrLineFull)
	require.Equal(t, "standard", refused.Class)
	require.False(t, refused.Never())

	more := d.Ask(d.now, 1, false, Forever)
	require.Equal(t, Failed, more.State())
	d.Cancel(d.now, calls[0])
	require.Equal(t, Waiting, d.Ask(d.now, 1, false, Forever).State())
}
