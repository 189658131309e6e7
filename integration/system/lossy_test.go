package system

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
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

// TestDroppedGrantIsFreedByGivingItsIDUp: the heartbeat that gives the id up
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

// wild loses, delays and repeats messages between NATS and the leader.
type wild struct {
	lease.Lessor
	mu     sync.Mutex
	rnd    *rand.Rand
	faults atomic.Int64
	calm   atomic.Bool
}

func (w *wild) fault(kinds int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm.Load() || w.rnd.IntN(4) != 0 {
		return -1
	}
	w.faults.Add(1)
	return w.rnd.IntN(kinds)
}

// lost waits until nobody waits any more.
func lost(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (w *wild) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	switch w.fault(4) {
	case 0: // the request is lost
		return lease.Answer{}, lost(ctx)
	case 1: // the answer is
		if _, err := w.Lessor.Acquire(ctx, r); err != nil {
			return lease.Answer{}, err
		}
		return lease.Answer{}, lost(ctx)
	case 2: // the answer is late
		a, err := w.Lessor.Acquire(ctx, r)
		<-time.After(300 * time.Millisecond)
		return a, err
	case 3: // a second copy of the same message overtakes the answer
		go w.Lessor.Acquire(ctx, r)
	}
	return w.Lessor.Acquire(ctx, r)
}

func (w *wild) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	switch w.fault(3) {
	case 0:
		return lease.Reply{}, lost(ctx)
	case 1:
		if _, err := w.Lessor.Report(ctx, r); err != nil {
			return lease.Reply{}, err
		}
		return lease.Reply{}, lost(ctx)
	case 2:
		if _, err := w.Lessor.Report(ctx, r); err != nil {
			return lease.Reply{}, err
		}
	}
	return w.Lessor.Report(ctx, r)
}

// TestLossyNetworkBreaksNothing: workers over NATS to a coordinator that hears
// and answers badly keep the contract, and when it is calm again all comes back.
func TestLossyNetworkBreaksNothing(t *testing.T) {
	t.Parallel()
	const contract = "30/500ms, 80/2s, 4 concurrent"
	n := &wild{rnd: rand.New(rand.NewPCG(1, 2))}
	s := newSite(t, siteConfig{
		policy: "limits:\n  - key: k\n    rules: [" + contract + "]\n",
		lease:  quick,
		wrap: func(l lease.Lessor) lease.Lessor {
			n.Lessor = l
			return n
		},
	})
	var mu sync.Mutex
	var spends []oracle.Spend
	var callers sync.WaitGroup
	var workers []*worker.Worker
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for i := range 3 {
		config := worker.DefaultConfig()
		config.Name = fmt.Sprint("w", i)
		w, err := worker.New(newHand(t, s.url).client, config)
		require.NoError(t, err)
		workers = append(workers, w)
		for range 4 {
			callers.Go(func() {
				for ctx.Err() == nil {
					h, err := w.Limiter("k").Acquire(ctx, 1)
					if err != nil {
						continue
					}
					<-time.After(time.Millisecond)
					spend := spendOf(h, 1)
					spend.Done = time.Now().UnixNano()
					if h.Context().Err() != nil {
						spend.Done = spend.At // its slot was lost while it ran, and it stopped then
					}
					h.Finish()
					mu.Lock()
					spends = append(spends, spend)
					mu.Unlock()
				}
			})
		}
	}
	s.h.Until("enough spends under enough faults", func() error {
		mu.Lock()
		defer mu.Unlock()
		if want := scaled(150, 600); len(spends) < want || n.faults.Load() < int64(want)/4 {
			return fmt.Errorf("%d spends under %d faults", len(spends), n.faults.Load())
		}
		return nil
	})
	n.calm.Store(true)
	stop()
	callers.Wait()
	var b worker.Books
	for _, w := range workers {
		require.NoError(t, w.Close(context.Background()))
		b.Add(w.Stats())
	}
	require.Empty(t, oracle.Violations(spends, oracle.MustRules(contract)))
	require.Equal(t, b.Granted, b.Spent+b.Returned+b.Expired, "%+v", b)
	require.EqualValues(t, len(spends), b.Spent)
	s.until("all to be back", func(st lease.Status) bool { return st.Held == lease.Amount{} && st.Leases == 0 && st.Waiting == 0 })
	st := s.status().Stats
	require.Equal(t, st.Granted, st.Spent+st.Returned+st.Expired)
	t.Logf("%d spends under %d faults, 0 violations; %d grants answered again, %d given up, %d answers dropped by the workers",
		len(spends), n.faults.Load(), st.Replayed, st.GivenUpGranted, b.Dropped)
}
