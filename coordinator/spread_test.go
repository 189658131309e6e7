package coordinator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// A new leader lets those ask it spread out in time that the one before knew.
func TestSpreadFollowsTheHoldersThatWereKnown(t *testing.T) {
	for holders, want := range map[int]time.Duration{0: 0, 20: time.Millisecond, 10_000: 500 * time.Millisecond, 5_000_000: time.Second} {
		l := &Leader{seat: lease.Seat{Pulse: lease.Pulse{Holders: holders}}}
		require.Equal(t, want, l.Spread(), "%d holders", holders)
	}
	c := NewCandidate(CandidateConfig{Name: "one", Partitions: 1, TTL: time.Second, Early: time.Second})
	seen := lease.Seat{Epoch: lease.Epoch{Number: 1, Mark: 2}, Name: "zero", Partitions: 1, Mirror: 3, Vacant: true, Pulse: lease.Pulse{Holders: 7}}
	next, campaign, _ := c.Watch(time.Second, 5, seen, Heard{Connected: true})
	require.True(t, campaign)
	require.Equal(t, 7, next.Pulse.Holders, "a leader that wins learns of them")
}
