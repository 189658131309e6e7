package system

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/coordinator"
	"ration/integration/harness"
	"ration/lease"
)

// site is a coordinator in the test, served over a NATS server of its own: the
// test sees its ledger and chooses its bounds. Workers are processes as ever.
type site struct {
	t      *testing.T
	h      *harness.Test
	url    string
	nats   *bus.Embedded
	leader *coordinator.Leader
	notes  *notes
	stop   func()
}

// siteConfig says how a site differs from the defaults.
type siteConfig struct {
	policy string
	lease  func(*lease.Config)
	url    string                          // of a NATS server that is there already
	mirror *stalled                        // where turns are recorded, if anywhere
	bare   bool                            // nothing stands between them: messages of many requests are answered as users have it
	wrap   func(lease.Lessor) lease.Lessor // stands between NATS and the leader
}

// quick has leases end soon, so that a test need not wait long for it; at full
// length it leaves the defaults.
func quick(c *lease.Config) {
	if !full() {
		c.TokenTTL, c.SlotTTL = 2*time.Second, 3*time.Second
	}
}

func newSite(t *testing.T, c siteConfig) *site {
	t.Helper()
	s := &site{t: t, h: harness.New(t), url: c.url}
	if s.url == "" {
		e, err := bus.Embed("-1")
		require.NoError(t, err)
		t.Cleanup(e.Close)
		s.url, s.nats = e.URL(), e
	}
	s.lead(c)
	return s
}

// lead begins to serve; stop ends it and waits.
func (s *site) lead(c siteConfig) {
	s.t.Helper()
	p, err := lease.ParsePolicy("policy", []byte(c.policy))
	require.NoError(s.t, err)
	config := coordinator.DefaultConfig(p)
	if c.lease != nil {
		c.lease(&config.Lease)
	}
	if c.mirror != nil {
		config.Mirror, config.Elector = c.mirror, c.mirror
		config.Seat.TTL = time.Hour // who cannot write for so long stops serving
	}
	coord, err := coordinator.New(config)
	require.NoError(s.t, err)
	nc, err := bus.Connect(s.url, bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(s.t, err)

	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- coord.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			s.leader, s.notes = l, &notes{Lessor: l}
			var served lease.Lessor = s.notes
			if c.wrap != nil {
				served = c.wrap(served)
			}
			if c.bare {
				served = l
			}
			return bus.Serve(ctx, nc, bus.ServeConfig{
				Lessor: served, Recalls: l.AllRecalls, Ready: func() { close(ready) },
				Status: func(ctx context.Context, key lease.Key) (any, error) { return l.Status(ctx, key) },
			})
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		s.t.Fatalf("the coordinator ended: %v", err)
	}
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("the coordinator ended: %v", err)
		}
		nc.Close()
	})
	s.t.Cleanup(s.stop)
}

// status is what the ledger holds.
func (s *site) status() lease.Status {
	s.t.Helper()
	return look(s.t, s.leader)
}

func look(t *testing.T, l *coordinator.Leader) lease.Status {
	t.Helper()
	status, err := l.Status(context.Background(), "")
	require.NoError(t, err)
	return status
}

// until waits until the ledger is as the test wants it.
func (s *site) until(what string, holds func(lease.Status) bool) {
	s.t.Helper()
	s.h.Until(what, func() error {
		status, err := s.leader.Status(context.Background(), "")
		if err != nil || holds(status) {
			return err
		}
		return fmt.Errorf("the ledger has %d leases, %+v held, %d waiting, %+v", status.Leases, status.Held, status.Waiting, status.Stats)
	})
}

// worker starts a worker process with something to read.
func (s *site) worker(name, verb, stdin string, args ...string) *harness.Process {
	s.t.Helper()
	return startWorker(s.h, s.url, name, verb, stdin, args...)
}

// window is the state of one rule of a key. What is free altogether the ledger
// may have forgotten; then it fails.
func window(t *testing.T, status lease.Status, key lease.Key, rule string) lease.WindowStatus {
	t.Helper()
	for _, k := range status.Keys {
		at := slices.IndexFunc(k.Windows, func(w lease.WindowStatus) bool { return w.Rule == rule })
		if k.Key == key && at >= 0 {
			w := k.Windows[at]
			require.Equal(t, w.Limit, w.Free+w.Held+w.Spent, "free + held + spent of %s is not its limit", rule)
			return w
		}
	}
	t.Fatalf("the ledger knows no rule %q of %q: %+v", rule, key, status.Keys)
	return lease.WindowStatus{}
}

// notes writes down what the leader promises: until when at the least each slot
// of a holder is its own.
type notes struct {
	lease.Lessor
	mu    sync.Mutex
	slots map[lease.ID]time.Time
}

func (n *notes) note(id lease.ID, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.slots == nil {
		n.slots = map[lease.ID]time.Time{}
	}
	if n.slots[id].Before(until) {
		n.slots[id] = until
	}
}

// Acquire notes what is granted. A TTL counts from the arrival, which is not
// before the instant read here.
func (n *notes) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	at := time.Now()
	a, err := n.Lessor.Acquire(ctx, r)
	if err == nil && a.Outcome == lease.Granted && a.Granted.Slots > 0 {
		n.note(a.ID, at.Add(a.SlotTTL))
	}
	return a, err
}

// Report notes what is renewed.
func (n *notes) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	at := time.Now()
	reply, err := n.Lessor.Report(ctx, r)
	for _, renewed := range reply.Renewed {
		n.note(renewed.ID, at.Add(renewed.SlotTTL))
	}
	return reply, err
}

// promised is until when the slots of a holder are its own: the first of them to
// end. It fails if there are none.
func (n *notes) promised(t *testing.T, name string) time.Time {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	var first time.Time
	for id, until := range n.slots {
		if id.Holder.Name == name && (first.IsZero() || until.Before(first)) {
			first = until
		}
	}
	require.False(t, first.IsZero(), "%s was never promised a slot", name)
	return first
}
