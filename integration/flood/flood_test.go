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

// TestWaitersFlood: ten thousand wait on one key, of which as many are refused as
// are beyond the bound, while a caller of another tenant is served.
func TestWaitersFlood(t *testing.T) {
	const holders, each, bound = 3, 3000, 2500
	l := serve(t, policy, func(c *lease.Config) {
		brisk(c)
		c.Silence, c.TokenTTL = time.Hour, time.Hour // those that wait here ask once, and nothing comes back meanwhile
		c.Waiters = lease.Bound{Each: bound, All: 100_000}
	})
	c := bus.NewClient(l.connect(), bus.ClientConfig{})
	keys := []lease.Key{"crowd/k"}
	first, err := c.Acquire(context.Background(), request(id("first", 1), keys[0], 0))
	require.NoError(t, err)
	require.Equal(t, lease.Granted, first.Outcome)
	var told tally
	var leaving atomic.Bool
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for h := range holders {
		c := bus.NewClient(l.connect(), bus.ClientConfig{})
		for seq := range uint64(each) {
			wg.Go(func() {
				for {
					a, err := c.Acquire(ctx, request(id(fmt.Sprintf("h%d", h), seq), keys[0], 2*time.Hour))
					if !errors.Is(err, lease.ErrSuperseded) || leaving.Load() { // else it was too old when it was taken up
						told.answer(a, err)
						return
					}
				}
			})
		}
	}
	l.until("all have asked", func(s lease.Status) bool {
		return s.Waiting == holders*bound && s.Stats.Refused["too_many_waiters"] == holders*(each-bound)
	})
	l.honest.calls(200)
	l.within("while they wait", holders*bound*8192) // with a goroutine each here, and one at the coordinator
	leaving.Store(true)
	for h := range holders {
		var given []lease.GivenUp
		for seq := range uint64(each) {
			given = append(given, lease.GivenUp{ID: id(fmt.Sprintf("h%d", h), seq), Keys: keys})
		}
		reply, err := c.Report(context.Background(), lease.Report{Holder: id(fmt.Sprintf("h%d", h), 0).Holder, Sent: time.Since(born), GivenUp: given})
		require.NoError(t, err)
		require.Len(t, reply.Acknowledged, each)
	}
	l.until("all are gone", func(s lease.Status) bool { return s.Waiting == 0 })
	_, err = c.Report(context.Background(), lease.Report{Holder: first.ID.Holder, Sent: time.Since(born),
		Counts: []lease.Count{{ID: first.ID, Keys: keys, Returned: 1}}})
	require.NoError(t, err)
	l.honest.calls(50)
	late := time.AfterFunc(harness.Patience, cancel) // should an answer be lost
	wg.Wait()
	late.Stop()
	cancel()
	t.Logf("%d requests: %v", holders*each, told.counts)
	require.Equal(t, holders*(each-bound), told.counts["refused too_many_waiters"])
	require.Equal(t, holders*bound, told.counts["error superseded"])
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

// TestTenThousandWaitersOnOneKey fill its line; the next is refused, other keys are
// served in the same turns, and when all have gone nothing of them is kept.
func TestTenThousandWaitersOnOneKey(t *testing.T) {
	before := heap()
	s := newSite(t, `limits: [{key: "{t}/{k}", rules: [1/1h]}]`, lease.DefaultConfig())
	ask := func(name string, seq int, key lease.Key, patience time.Duration) lease.Message {
		r := request(id(name, uint64(seq)), key, patience)
		r.Sent = s.now.Sub(noon)
		return lease.Message{Request: &r}
	}
	s.turn(ask("first", 0, "crowd/k", 0))
	const n = 10_000
	for i := range n {
		got := s.turn(ask(fmt.Sprintf("w%d", i%10), i, "crowd/k", 2*time.Hour), ask("other", i, lease.Key(fmt.Sprintf("other/%d", i)), 0))
		require.Len(t, got.Answers, 1)
		require.Equal(t, lease.Granted, got.Answers[0].Answer.Outcome, "other keys are served")
	}
	full := s.turn(ask("w0", n, "crowd/k", 2*time.Hour)).Answers[0].Answer
	require.ErrorIs(t, full.Refusal.Reason, lease.ErrLineFull)
	kept := heap() - before
	for h := range 10 {
		r := &lease.Report{Holder: id(fmt.Sprintf("w%d", h), 0).Holder, Goodbye: true, Sent: s.now.Sub(noon),
			GivenUp: []lease.GivenUp{{ID: id(fmt.Sprintf("w%d", h), 1<<40), Keys: []lease.Key{"crowd/k"}}}}
		s.turn(lease.Message{Report: r})
	}
	require.Zero(t, s.ledger.Summary(s.now).Waiting)
	s.pass(10 * time.Second) // leases expire
	s.rest(2 * time.Hour)
	require.Zero(t, s.ledger.Summary(s.now).Live)
	rest := heap() - before
	t.Logf("%d waiters and %d leases: %.1f MB; %.1f MB at rest", n, n, float64(kept)/1e6, float64(rest)/1e6)
	require.Less(t, kept, int64(n*4096))
	require.Less(t, rest, int64(2<<20))
}
