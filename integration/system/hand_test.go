package system

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
	"ration/lease"
)

const wirePolicy = "limits:\n  - key: k\n    rules: [10/1s, 4 concurrent]\n"

// hand is a holder who speaks by hand, over NATS.
type hand struct {
	t      *testing.T
	client *bus.Client
	holder lease.Holder
	base   time.Time
	seq    uint64
}

func newHand(t *testing.T, url string) *hand {
	t.Helper()
	nc, err := bus.Connect(url, bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return &hand{t: t, client: bus.NewClient(nc, bus.ClientConfig{}), holder: lease.Holder{Name: "hand", Incarnation: 1}, base: time.Now()}
}

// request makes a new request for so much, which waits.
func (h *hand) request(tokens, slots int64) lease.Request {
	h.seq++
	return lease.Request{
		ID: lease.ID{Holder: h.holder, Seq: h.seq}, Keys: []lease.Key{"k"},
		Want: lease.Amount{Tokens: tokens, Slots: slots}, Need: lease.Amount{Tokens: tokens, Slots: slots},
		Patience: harness.Patience,
	}
}

// ask sends one copy of a request.
func (h *hand) ask(ctx context.Context, r lease.Request) (lease.Answer, error) {
	r.Sent = time.Since(h.base)
	return h.client.Acquire(ctx, r)
}

func (h *hand) report(r lease.Report) lease.Reply {
	h.t.Helper()
	r.Holder, r.Sent = h.holder, time.Since(h.base)
	ctx, cancel := soon(harness.Patience)
	defer cancel()
	reply, err := h.client.Report(ctx, r)
	require.NoError(h.t, err)
	return reply
}

// deaf hands requests on and keeps the answers back, as long as it is told to.
type deaf struct {
	lease.Lessor
	deaf   atomic.Bool
	before chan struct{} // hears of each answer that it keeps back
}

func (d *deaf) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	a, err := d.Lessor.Acquire(ctx, r)
	if err == nil && d.deaf.Load() {
		d.before <- struct{}{}
		<-ctx.Done()
		return lease.Answer{}, ctx.Err()
	}
	return a, err
}

// deafSite is a site whose answers are kept back at first.
func deafSite(t *testing.T) (*site, *deaf) {
	t.Helper()
	d := &deaf{before: make(chan struct{}, 16)}
	d.deaf.Store(true)
	s := newSite(t, siteConfig{policy: wirePolicy, wrap: func(l lease.Lessor) lease.Lessor {
		d.Lessor = l
		return d
	}})
	return s, d
}

// grantAndDrop asks until a grant has been made and its answer dropped.
func grantAndDrop(t *testing.T, h *hand, d *deaf, r lease.Request) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	dropped := make(chan error, 1)
	go func() {
		_, err := h.ask(ctx, r)
		dropped <- err
	}()
	<-d.before
	cancel()
	require.ErrorIs(t, <-dropped, context.Canceled)
}

// TestDroppedGrantIsAnsweredToTheNextCopy: a grant whose answer was dropped is
// answered again to the next asking of the same id, with what is left of its TTL,
// and taken once.
func TestDroppedGrantIsAnsweredToTheNextCopy(t *testing.T) {
	t.Parallel()
	s, d := deafSite(t)
	h := newHand(t, s.url)
	r := h.request(10, 2)
	grantAndDrop(t, h, d, r)
	require.Equal(t, lease.Amount{Tokens: 10, Slots: 2}, s.status().Held)
	d.deaf.Store(false)

	a, err := h.ask(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, lease.Granted, a.Outcome)
	require.Equal(t, lease.Amount{Tokens: 10, Slots: 2}, a.Granted)
	require.Less(t, a.TokenTTL, lease.DefaultConfig().TokenTTL, "what is left, not all of it anew")
	again, err := h.ask(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, a.Granted, again.Granted)
	status := s.status()
	require.EqualValues(t, 10, status.Stats.Granted, "granted once")
	require.EqualValues(t, 2, status.Stats.Replayed)
	require.Equal(t, lease.Amount{Tokens: 10, Slots: 2}, status.Held)

	h.report(lease.Report{Goodbye: true, Counts: []lease.Count{{ID: r.ID, Keys: r.Keys, Returned: 10, Freed: 2}}})
	require.Equal(t, lease.Amount{}, s.status().Held)
}

// TestDroppedGrantIsFreedByGivingItsIDUp is B151: the heartbeat that gives the id up
// frees it, and a copy that comes after finds it ended.
func TestDroppedGrantIsFreedByGivingItsIDUp(t *testing.T) {
	t.Parallel()
	s, d := deafSite(t)
	h := newHand(t, s.url)
	r := h.request(10, 2)
	grantAndDrop(t, h, d, r)
	d.deaf.Store(false)
	reply := h.report(lease.Report{Heartbeat: true, GivenUp: []lease.GivenUp{{ID: r.ID, Keys: r.Keys}}})
	require.Equal(t, []lease.ID{r.ID}, reply.Acknowledged)
	status := s.status()
	require.Equal(t, lease.Amount{}, status.Held)
	require.EqualValues(t, 1, status.Stats.GivenUpGranted)
	require.Zero(t, status.Stats.Expired)

	a, err := h.ask(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, lease.Ended, a.Outcome)
	reply = h.report(lease.Report{Heartbeat: true, GivenUp: []lease.GivenUp{{ID: r.ID, Keys: r.Keys}}})
	require.Equal(t, []lease.ID{r.ID}, reply.Acknowledged, "it is acknowledged each time")
	a, err = h.ask(t.Context(), h.request(10, 4))
	require.NoError(t, err)
	require.Equal(t, lease.Granted, a.Outcome, "all of it is free")
}

// TestHeartbeatThatCrossesAGrantFreesNothing: a heartbeat is recorded after a
// grant of which its holder did not know when it sent it.
func TestHeartbeatThatCrossesAGrantFreesNothing(t *testing.T) {
	t.Parallel()
	s, d := deafSite(t)
	h := newHand(t, s.url)
	d.deaf.Store(false)
	old := h.request(2, 1)
	a, err := h.ask(t.Context(), old)
	require.NoError(t, err)
	require.Equal(t, lease.Granted, a.Outcome)
	d.deaf.Store(true)
	r := h.request(6, 2)
	grantAndDrop(t, h, d, r)
	d.deaf.Store(false)
	h.report(lease.Report{Heartbeat: true, Counts: []lease.Count{{ID: old.ID, Keys: old.Keys}}})
	require.Equal(t, lease.Amount{Tokens: 8, Slots: 3}, s.status().Held, "what it does not name it does not touch")
	a, err = h.ask(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, lease.Granted, a.Outcome)
	require.Equal(t, lease.Amount{Tokens: 6, Slots: 2}, a.Granted)
	reply := h.report(lease.Report{Counts: []lease.Count{{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: 6}}, Freed: 2}}})
	require.Empty(t, reply.Ended)
	require.EqualValues(t, 6, s.status().Stats.Spent)
}
