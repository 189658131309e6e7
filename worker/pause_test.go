package worker

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestPauseAfterARefusalEndsForWhoComesLater: a refusal makes the pool pause, so
// that those who wait do not ask all at once. A caller who comes when they have
// gone asks as soon as the pause is over, with nothing else to wake the pool.
func TestPauseAfterARefusalEndsForWhoComesLater(t *testing.T) {
	for seed := range uint64(50) {
		seq := uint64(0)
		p := NewPool([]lease.Key{"k"}, DefaultPoolConfig(), func() lease.ID {
			seq++
			return lease.ID{Holder: lease.Holder{Name: "w", Incarnation: 1}, Seq: seq}
		}, rand.New(rand.NewPCG(seed, 1)))
		const end = 50 * time.Millisecond
		p.Ask(0, 5, false, end)
		asked := p.Requests(0)
		require.Len(t, asked, 1)
		p.Answered(end-1, 0, lease.Answer{
			ID: asked[0].ID, Outcome: lease.Refused,
			Terms:   lease.Terms{Window: time.Hour},
			Refusal: lease.Refusal{Reason: lease.ErrTimedOut},
		})
		p.Tick(end)
		require.Len(t, p.Served(), 1, "its own time is over")
		c := p.Ask(end, 1, false, Forever)
		require.Equal(t, Waiting, c.State())
		sent := p.Requests(end)
		for now := end; len(sent) == 0; {
			now = max(now, p.Next())
			require.LessOrEqual(t, now, end+DefaultPoolConfig().BackoffMin, "seed %d: nobody wakes the pool", seed)
			p.Tick(now)
			sent = p.Requests(now)
		}
		require.Equal(t, int64(1), sent[0].Need.Tokens)
	}
}
