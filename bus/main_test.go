package bus

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ration/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a lessor that says what the test tells it to.
type fake struct {
	acquire func(context.Context, lease.Request) (lease.Answer, error)
	report  func(context.Context, lease.Report) (lease.Reply, error)
}

func (f *fake) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	return f.acquire(ctx, r)
}

func (f *fake) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	return f.report(ctx, r)
}

func (f *fake) Recalls(ctx context.Context, _ lease.Holder, _ func(lease.Recall)) error {
	<-ctx.Done()
	return nil
}

// granting grants what is wanted and acknowledges all.
func granting() *fake {
	return &fake{
		acquire: func(_ context.Context, r lease.Request) (lease.Answer, error) { return grantOf(r), nil },
		report: func(_ context.Context, r lease.Report) (lease.Reply, error) {
			reply := lease.Reply{Epoch: lease.Epoch{Number: 3, Mark: 0x9f21}}
			for _, c := range r.Counts {
				reply.Renewed = append(reply.Renewed, lease.Renewal{ID: c.ID, SlotTTL: 10 * time.Second})
			}
			for _, g := range r.GivenUp {
				reply.Acknowledged = append(reply.Acknowledged, g.ID)
			}
			return reply, nil
		},
	}
}

func grantOf(r lease.Request) lease.Answer {
	return lease.Answer{
		ID: r.ID, Outcome: lease.Granted, Granted: r.Want,
		TokenTTL: 5 * time.Second, SlotTTL: 10 * time.Second,
		Epoch: lease.Epoch{Number: 3, Mark: 0x9f21},
	}
}

var holder = lease.Holder{Name: "shell-1", Incarnation: 0x7f3a}

func request(seq uint64, keys ...lease.Key) lease.Request {
	return lease.Request{
		ID: lease.ID{Holder: holder, Seq: seq}, Keys: keys,
		Want: lease.Amount{Tokens: 10}, Need: lease.Amount{Tokens: 1},
		Sent: time.Second, Patience: 5 * time.Second,
	}
}

func embed(t testing.TB) *Embedded {
	t.Helper()
	e, err := Embed("-1")
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

func dialed(t testing.TB, url string, cfg ConnectConfig) *nats.Conn {
	t.Helper()
	if cfg.Wait == 0 {
		cfg.Wait = 10 * time.Second
	}
	nc, err := Connect(url, cfg)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// serve serves until the test ends or stop is called, which waits.
func serve(t testing.TB, nc *nats.Conn, cfg ServeConfig) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	cfg.Ready = func() { close(ready) }
	go func() { done <- Serve(ctx, nc, cfg) }()
	select {
	case <-ready:
	case err := <-done:
		require.NoError(t, err)
		t.Fatal("Serve ended before it was ready")
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-done)
		})
	}
	t.Cleanup(stop)
	return stop
}

// bounded ends a test that would otherwise hang; it judges nothing.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// configured starts a server as operators do, from a configuration.
func configured(t testing.TB, conf string) string {
	t.Helper()
	url, _ := configuredAt(t, "127.0.0.1:-1", conf)
	return url
}

func configuredAt(t testing.TB, addr, conf string) (url string, stop func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(file, []byte("listen: "+addr+"\n"+conf), 0o600))
	opts, err := server.ProcessConfigFile(file)
	require.NoError(t, err)
	opts.NoSigs, opts.NoLog = true, true
	s, err := server.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(10*time.Second))
	stop = func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	t.Cleanup(stop)
	return s.ClientURL(), stop
}

// decodeRequest reads a message with one request.
func decodeRequest(body []byte) (lease.Request, error) {
	one, all, err := (*heard)(nil).decodeRequests(body)
	if all != nil {
		return one, errors.New("it has many requests")
	}
	return one, err
}

func encodeAnswer(a lease.Answer) ([]byte, error) {
	w := &writer{b: make([]byte, 0, 320)}
	w.alone(&a)
	return w.done()
}

func encodeReply(r lease.Reply) ([]byte, error) {
	w := &writer{b: make([]byte, 0, 128)}
	w.reply(r)
	return w.done()
}
