package lease_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestTurnThatIsDoneLeavesNothing to the next but room.
func TestTurnThatIsDoneLeavesNothing(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "t", rules: [3/1h]}]`), lease.DefaultConfig())
	first := turn(t, l, start, ask("a", 1, start, 0, "t"), ask("a", 2, start, 0, "t"))
	require.Len(t, first.Answers, 2)
	l.Done(first)
	require.Empty(t, first.Answers)
	next := turn(t, l, start, ask("b", 1, start, 0, "t"))
	require.Len(t, next.Answers, 1)
	require.Equal(t, ask("b", 1, start, 0, "t").ID, next.Answers[0].Answer.ID)
	require.Empty(t, turn(t, l, start).Answers)
}
