package flood_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/coordinator"
	"ration/integration/harness"
	"ration/lease"
)

// slack is what NATS, its clients, and the tests themselves may keep besides what
// the bounds of a coordinator admit.
const slack = 24 << 20

// live is a coordinator that serves over a NATS server of its own, all in this
// process.
type live struct {
	t      *testing.T
	url    string
	leader *coordinator.Leader
	before int64 // the heap
	honest *honest
}

// serve starts one, whose every bound is changed from the defaults, and an honest
// caller of another tenant than any flood's, who calls until the test ends.
func serve(t *testing.T, policy string, change func(*lease.Config)) *live {
	t.Helper()
	before := heap()
	p, err := lease.ParsePolicy("flood.yaml", []byte(policy))
	require.NoError(t, err)
	cfg := coordinator.DefaultConfig(p)
	change(&cfg.Lease)
	c, err := coordinator.New(cfg)
	require.NoError(t, err)
	server, err := bus.Embed("-1")
	require.NoError(t, err)
	t.Cleanup(server.Close)
	nc, err := server.Connect(bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	ctx, stop := context.WithCancel(context.Background())
	leaders, ended := make(chan *coordinator.Leader, 1), make(chan error, 1)
	go func() {
		ended <- c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			return bus.Serve(ctx, nc, bus.ServeConfig{
				Lessor: l,
				Status: func(ctx context.Context, k lease.Key) (any, error) { return l.Status(ctx, k) },
				Ready:  func() { leaders <- l },
			})
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	l := &live{t: t, url: server.URL(), before: before}
	select {
	case l.leader = <-leaders:
	case err := <-ended:
		ended <- err
		require.NoError(t, err)
	}
	l.honest = newHonest(l)
	return l
}

func (l *live) connect() *nats.Conn {
	l.t.Helper()
	nc, err := bus.Connect(l.url, bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(l.t, err)
	l.t.Cleanup(nc.Close)
	return nc
}

func (l *live) summary() lease.Status {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	s, err := l.leader.Summary(ctx)
	require.NoError(l.t, err)
	return s
}

// until waits for what the summary shows.
func (l *live) until(what string, ok func(lease.Status) bool) lease.Status {
	l.t.Helper()
	for end := time.Now().Add(2 * harness.Patience); ; time.Sleep(20 * time.Millisecond) {
		s := l.summary()
		if ok(s) {
			return s
		}
		require.True(l.t, time.Now().Before(end), "%s: %d keys, %d leases, %d waiting, %+v", what, s.Live, s.Leases, s.Waiting, s.Stats)
	}
}

// within requires that no more is kept than admitted, and tells how much is.
func (l *live) within(what string, admitted int64) {
	l.t.Helper()
	kept := heap() - l.before
	l.t.Logf("%s: %.1f MB kept, of at most %.1f MB", what, float64(kept)/1e6, float64(admitted+slack)/1e6)
	require.LessOrEqual(l.t, kept, admitted+slack, what)
}

// over ends the test: the honest caller was served throughout, what the flood left
// comes to rest, the books balance, and no more is kept than before.
func (l *live) over() {
	l.t.Helper()
	l.honest.stop()
	s := l.until("at rest", func(s lease.Status) bool { return s.Live == 0 && s.Leases == 0 && s.Waiting == 0 })
	require.Equal(l.t, s.Stats.Granted, s.Stats.Spent+s.Stats.Returned+s.Stats.Expired, "the books balance")
	require.Zero(l.t, s.Held)
	l.until("nobody is known any more", func(s lease.Status) bool { return s.Holders == 0 && s.Remembered == 0 })
	l.within("at rest", 0)
}

// honest calls again and again on a key of its own, and on a new one of its own
// now and then.
type honest struct {
	l      *live
	client *bus.Client
	done   atomic.Int64
	quit   chan struct{}
	ended  chan error
	once   sync.Once
	seq    uint64
}

func newHonest(l *live) *honest {
	h := &honest{l: l, client: bus.NewClient(l.connect(), bus.ClientConfig{}), quit: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		defer close(h.ended)
		for n := 0; ; n++ {
			select {
			case <-h.quit:
				return
			default:
			}
			key := lease.Key("honest/k")
			if n%16 == 15 {
				key = lease.Key(fmt.Sprintf("honest/%d", n))
			}
			if err := h.call(key); err != nil {
				h.ended <- fmt.Errorf("call %d on %s: %w", n, key, err)
				return
			}
			h.done.Add(1)
		}
	}()
	l.t.Cleanup(func() { h.once.Do(func() { close(h.quit) }) })
	return h
}

// call takes and spends one token. A message that was lost is sent again, as every
// holder does; a refusal is a failure.
func (h *honest) call(key lease.Key) error {
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	for {
		h.seq++
		r := request(id("honest", h.seq), key, harness.Patience)
		a, err := again(ctx, func(ctx context.Context) (lease.Answer, error) {
			r.Sent = time.Since(born)
			return h.client.Acquire(ctx, r)
		})
		switch {
		case err != nil:
			return err
		case a.Outcome == lease.Ended:
			continue // the answers to earlier copies were lost, and the lease has expired
		case a.Outcome != lease.Granted:
			return fmt.Errorf("outcome %d, %+v", a.Outcome, a.Refusal)
		}
		_, err = again(ctx, func(ctx context.Context) (lease.Reply, error) {
			return h.client.Report(ctx, lease.Report{Holder: r.ID.Holder, Sent: time.Since(born),
				Counts: []lease.Count{{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: 1}}}}})
		})
		return err
	}
}

// born is the origin of every holder's own time.
var born = time.Now()

// again asks each second until there is an answer, or ctx ends. A copy that was too
// old when it was taken up is none.
func again[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	for {
		once, cancel := context.WithTimeout(ctx, time.Second)
		got, err := ask(once)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, lease.ErrSuperseded) || ctx.Err() != nil {
			return got, err
		}
	}
}

// calls waits until the honest caller has been served n times more.
func (h *honest) calls(n int64) {
	h.l.t.Helper()
	for want := h.done.Load() + n; h.done.Load() < want; {
		select {
		case err := <-h.ended:
			require.NoError(h.l.t, err, "the honest caller")
			require.Fail(h.l.t, "the honest caller has stopped")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (h *honest) stop() {
	h.l.t.Helper()
	h.once.Do(func() { close(h.quit) })
	require.NoError(h.l.t, <-h.ended, "the honest caller")
	h.l.t.Logf("the honest caller was served %d times", h.done.Load())
}
