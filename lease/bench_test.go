package lease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// BenchmarkTurn is a request, in a turn of so many on so many keys, and the end of
// its lease, while 50,000 a second come and go.
func BenchmarkTurn(b *testing.B) {
	p := policy(b, `limits: [{key: "{account}/{method}", rules: [1000000000/1s bucket, 1000000000/1m]}]`)
	c := lease.DefaultConfig()
	c.Unmirrored = true
	c.Leases.Each = c.Leases.All // they are of one holder
	for _, size := range []struct{ requests, keys int }{{1, 1}, {16, 1}, {16, 16}, {256, 1}, {256, 256}} {
		b.Run(fmt.Sprintf("requests=%d/keys=%d", size.requests, size.keys), func(b *testing.B) {
			l := lease.NewLedger(p, c)
			keys := make([][]lease.Key, size.keys)
			for i := range keys {
				keys[i] = []lease.Key{lease.Key(fmt.Sprintf("acme/%d", i))}
			}
			in := make([]lease.Message, size.requests)
			asked := make([]lease.Request, size.requests)
			seq, now := uint64(0), start
			b.ReportAllocs()
			for i := 0; i < b.N; i += size.requests {
				now = now.Add(time.Duration(size.requests) * 20 * time.Microsecond)
				for j := range in {
					seq++
					asked[j] = lease.Request{
						ID:   lease.ID{Holder: lease.Holder{Name: "w", Incarnation: 7}, Seq: seq},
						Keys: keys[j%size.keys],
						Want: lease.Amount{Tokens: 100}, Need: lease.Amount{Tokens: 1},
						Sent: now.Sub(algo.Instant(0)),
					}
					in[j] = lease.Message{Ticket: lease.Ticket(seq), Arrived: now, Request: &asked[j]}
				}
				turn := l.Turn(now, in)
				require.Len(b, turn.Answers, size.requests)
				require.Equal(b, lease.Granted, turn.Answers[0].Answer.Outcome)
			}
		})
	}
}
