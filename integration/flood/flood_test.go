package flood_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
	"ration/lease"
)

// policy lets honest callers call, and windows come to rest within seconds.
const policy = `limits:
  - {key: "flood/{k}", rules: [10/1s, 50/2s]}
  - {key: "crowd/{k}", rules: [1/1h]}
  - {key: "honest/{k}", rules: [1000000/1s]}
`

// brisk makes a coordinator forget within seconds, so that tests see it.
func brisk(c *lease.Config) {
	c.Stale, c.Memory, c.TokenTTL = 2*time.Second, 4*time.Second, 2*time.Second
}

func id(name string, seq uint64) lease.ID {
	return lease.ID{Holder: lease.Holder{Name: name, Incarnation: 1}, Seq: seq}
}

func request(id lease.ID, key lease.Key, patience time.Duration) lease.Request {
	one := lease.Amount{Tokens: 1}
	return lease.Request{ID: id, Keys: []lease.Key{key}, Want: one, Need: one, Sent: time.Since(born), Patience: patience}
}

// tally counts outcomes, and what flooders were told.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *tally) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[what]++
}

// answer counts an answer; an error that is not one of waiting too long is told by
// its code.
func (c *tally) answer(a lease.Answer, err error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		c.add("lost")
	case err != nil:
		c.add("error " + lease.Code(err))
	case a.Outcome == lease.Refused:
		c.add("refused " + lease.Code(a.Refusal.Reason))
	default:
		c.add(map[lease.Outcome]string{lease.Granted: "granted", lease.Waiting: "waiting", lease.Ended: "ended"}[a.Outcome])
	}
}

// flood calls do for each number below n, from many goroutines with a client for
// every few of them.
func (l *live) flood(n int, do func(ctx context.Context, c *bus.Client, i int)) {
	l.t.Helper()
	const clients, each = 4, 64
	var next atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		c := bus.NewClient(l.connect(), bus.ClientConfig{})
		for range each {
			wg.Go(func() {
				for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
					ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
					do(ctx, c, int(i))
					cancel()
				}
			})
		}
	}
	wg.Wait()
}

// raise keeps the most that was seen.
func raise(most *atomic.Int64, n int) {
	for seen := most.Load(); int64(n) > seen && !most.CompareAndSwap(seen, int64(n)); seen = most.Load() {
	}
}

// TestKeysFlood: many new keys, four times as many as there may be, each held by a
// lease. Those beyond are refused; when the others have been returned, all leave.
func TestKeysFlood(t *testing.T) {
	n := many(100_000, 1_000_000)
	const holders = 64
	bound := n / 4
	l := serve(t, policy, func(c *lease.Config) {
		brisk(c)
		c.TokenTTL = time.Hour
		c.Keys, c.Leases, c.IDs = bound, lease.Bound{Each: n, All: n}, lease.Bound{Each: n / 4, All: n / 2}
	})
	var told tally
	var most atomic.Int64
	held := make([]atomic.Bool, n)
	key := func(i int) lease.Key { return lease.Key(fmt.Sprintf("flood/%d", i)) }
	who := func(i int) lease.ID { return id(fmt.Sprintf("f%d", i%holders), uint64(i)) }
	l.flood(n, func(ctx context.Context, c *bus.Client, i int) {
		a, err := again(ctx, func(ctx context.Context) (lease.Answer, error) { return c.Acquire(ctx, request(who(i), key(i), 0)) })
		told.answer(a, err)
		held[i].Store(a.Outcome == lease.Granted)
		if i%5000 == 0 {
			raise(&most, l.summary().Live)
		}
	})
	l.honest.calls(50)
	t.Logf("%d keys: %v; at most %d live", n, told.counts, most.Load())
	require.LessOrEqual(t, most.Load(), int64(bound))
	require.Equal(t, bound-bound/10, told.counts["granted"], "what one tenant may have")
	require.Equal(t, n, told.counts["granted"]+told.counts["refused too_many_keys"])
	l.within("after the flood", int64(bound)*1000+int64(n/2)*200)
	l.flood(holders, func(ctx context.Context, c *bus.Client, h int) {
		r := lease.Report{Holder: who(h).Holder, Sent: time.Since(born)}
		for i := h; i < n; i += holders {
			if held[i].Load() {
				r.Counts = append(r.Counts, lease.Count{ID: who(i), Keys: []lease.Key{key(i)}, Returned: 1})
			}
		}
		reply, err := c.Report(ctx, r)
		if err != nil || len(reply.Ended) > 0 {
			told.add("return failed")
		}
	})
	require.Zero(t, told.counts["return failed"])
	l.over()
}

// TestGivenUpIDsFlood: one holder after the other names ids at random, which are
// acknowledged and bounded; none of them is ever granted.
func TestGivenUpIDsFlood(t *testing.T) {
	n := many(200_000, 2_000_000)
	const each, all, message = 2_000, 10_000, 1_000
	l := serve(t, policy, func(c *lease.Config) {
		brisk(c)
		c.IDs = lease.Bound{Each: each, All: all}
	})
	keys := []lease.Key{"flood/k"}
	var told tally
	var most atomic.Int64
	l.flood(n/message, func(ctx context.Context, c *bus.Client, i int) {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		r := lease.Report{Holder: id(fmt.Sprintf("f%d", i%20), 0).Holder, Sent: time.Since(born)}
		for range message {
			r.GivenUp = append(r.GivenUp, lease.GivenUp{ID: lease.ID{Holder: r.Holder, Seq: random.Uint64()}, Keys: keys})
		}
		reply, err := c.Report(ctx, r)
		if err != nil {
			told.answer(lease.Answer{}, err)
			return
		}
		told.add("reports acknowledged")
		a, err := c.Acquire(ctx, request(reply.Acknowledged[random.IntN(message)], keys[0], 0))
		told.answer(a, err)
		raise(&most, l.summary().Remembered)
	})
	t.Logf("%d ids: %v; at most %d remembered", n, told.counts, most.Load())
	l.honest.calls(50)
	require.LessOrEqual(t, most.Load(), int64(all))
	require.Positive(t, told.counts["ended"])
	require.Zero(t, told.counts["granted"], "all of them were given up")
	l.within("after the flood", all*200)
	l.over()
}

// TestHoldersFlood: invented holders, more than may be known of a tenant.
func TestHoldersFlood(t *testing.T) {
	n := many(50_000, 1_000_000)
	const each, all = 5_000, 20_000
	l := serve(t, policy, func(c *lease.Config) {
		brisk(c)
		c.Holders = lease.Bound{Each: each, All: all}
	})
	var told tally
	var most atomic.Int64
	l.flood(n, func(ctx context.Context, c *bus.Client, i int) {
		holder := lease.Holder{Name: "invented", Incarnation: uint64(i)}
		if i%2 == 0 {
			a, err := c.Acquire(ctx, request(lease.ID{Holder: holder, Seq: 1}, lease.Key(fmt.Sprintf("flood/%d", i%1000)), 0))
			told.answer(a, err)
		} else {
			one := lease.ID{Holder: holder, Seq: 2}
			reply, err := c.Report(ctx, lease.Report{Holder: holder, Sent: time.Since(born), GivenUp: []lease.GivenUp{{ID: one, Keys: []lease.Key{"flood/k"}}}})
			switch {
			case err != nil:
				told.answer(lease.Answer{}, err)
			case len(reply.Acknowledged) == 0:
				told.add("not acknowledged")
			default:
				told.add("acknowledged")
			}
		}
		if i%1000 == 0 {
			raise(&most, l.summary().Holders)
		}
	})
	t.Logf("%d holders: %v; at most %d known", n, told.counts, most.Load())
	l.honest.calls(50)
	require.LessOrEqual(t, most.Load(), int64(each+1), "and the honest one")
	require.Positive(t, told.counts["refused too_many_holders"])
	require.Positive(t, told.counts["not acknowledged"])
	require.Positive(t, told.counts["acknowledged"])
	l.within("after the flood", each*1000)
	l.over()
}
