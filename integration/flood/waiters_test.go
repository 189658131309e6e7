package flood_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
	"ration/lease"
)

// TestWaitersFlood: nine thousand ask to wait on one key; those beyond the bound of
// their holder are refused, while a caller of another tenant is served.
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
	l.within("while they wait", holders*bound*8192) // with a goroutine each here
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
