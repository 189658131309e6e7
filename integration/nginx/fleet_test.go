package nginx

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration"
	"ration/bus"
	"ration/coordinator"
	"ration/integration/harness"
	"ration/lease"
)

const (
	workers = 4
	callers = 8 // of each worker, unless a test says otherwise; together more than nginx takes at once
)

// policy is what docs/rules.md recommends for nginx: the first YAML below its
// name.
func policy(t *testing.T) *lease.Policy {
	t.Helper()
	p, err := lease.ParsePolicy("docs/rules.md", []byte(policyText(t)))
	require.NoError(t, err)
	return p
}

func policyText(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/rules.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n**nginx**")
	require.True(t, found, "docs/rules.md has no section on nginx")
	_, block, found := strings.Cut(section, "\n```yaml\n")
	text, _, ended := strings.Cut(block, "\n```\n")
	require.True(t, found && ended, "docs/rules.md has no policy for nginx")
	return text
}

// worker is one of a fleet: its place in it, and its connections to nginx.
type worker struct {
	name    string
	limiter *ration.Limiter
	http    *http.Client
}

// call is one call that was let go.
type call struct {
	id     string
	worker string
	sent   time.Time
	status int
	warm   bool // it went over a connection that was there
}

// sharing gives four workers that share the contract, each with a connection of
// its own to one coordinator.
func sharing(t *testing.T, s *server, key string) []*worker {
	t.Helper()
	url := coordinate(t, policy(t))
	return fleet(t, s, key, func(name string) (*ration.Client, error) {
		return ration.Connect(url, ration.WithName(name), ration.WithConnectWait(harness.Patience))
	})
}

// alone gives four workers that each keep the contract, as if no other were
// there.
func alone(t *testing.T, s *server, key string) []*worker {
	t.Helper()
	text := policyText(t)
	return fleet(t, s, key, func(string) (*ration.Client, error) { return ration.Local(text) })
}

func fleet(t *testing.T, s *server, key string, join func(name string) (*ration.Client, error)) []*worker {
	t.Helper()
	var all []*worker
	for i := range workers {
		w := &worker{name: fmt.Sprintf("worker-%d", i)}
		client, err := join(w.name)
		require.NoError(t, err)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
			defer cancel()
			if err := client.Close(ctx); err != nil {
				t.Errorf("closing %s: %v", w.name, err)
			}
		})
		w.limiter, err = client.Limiter(key)
		require.NoError(t, err)
		w.http = warmed(t, s, w.name)
		all = append(all, w)
	}
	return all
}

// coordinate runs a coordinator behind a NATS server of its own, and gives the
// server's URL.
func coordinate(t *testing.T, p *lease.Policy) string {
	t.Helper()
	e, err := bus.Embed("-1")
	require.NoError(t, err)
	t.Cleanup(e.Close)
	coord, err := coordinator.New(coordinator.DefaultConfig(p))
	require.NoError(t, err)
	nc, err := e.Connect(bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- coord.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			return bus.Serve(ctx, nc, bus.ServeConfig{Lessor: l, Recalls: l.AllRecalls, Ready: func() { close(ready) }})
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the coordinator ended: %v", err)
		}
		nc.Close()
	})
	select {
	case <-ready:
	case <-time.After(harness.Patience):
		t.Fatal("the coordinator does not serve")
	}
	return e.URL()
}

// warmed gives a client with a connection for each caller, all of them made and
// used once, and no more than that: who would need another waits.
func warmed(t *testing.T, s *server, name string) *http.Client {
	t.Helper()
	transport := &http.Transport{MaxConnsPerHost: callers, MaxIdleConnsPerHost: callers, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, Timeout: harness.Patience}
	var all sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		all.Go(func() {
			resp, err := client.Get(fmt.Sprintf("%s/open?party=%s&of=%d", s.url, name, callers))
			if err == nil {
				err = drain(resp)
			}
			errs[i] = err
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	return client
}

// drain reads an answer to its end, so that its connection serves again.
func drain(resp *http.Response) error {
	_, err := io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return err
}

// play has each worker's callers make so many calls altogether.
func play(t *testing.T, all []*worker, callers int, url string, calls int) []call {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*harness.Patience)
	defer cancel()
	var (
		begun atomic.Int64
		ended sync.WaitGroup
		mu    sync.Mutex
		made  []call
	)
	for _, w := range all {
		for range callers {
			ended.Go(func() {
				for n := begun.Add(1); n <= int64(calls); n = begun.Add(1) {
					c, err := w.call(ctx, url, fmt.Sprintf("%s-%d", w.name, n))
					if err != nil {
						t.Errorf("call %d, of %s: %v", n, w.name, err)
						return
					}
					mu.Lock()
					made = append(made, c)
					mu.Unlock()
				}
			})
		}
	}
	ended.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return made
}

// call waits for its turn and makes a call.
func (w *worker) call(ctx context.Context, url, id string) (call, error) {
	handle, err := w.limiter.Acquire(ctx, 1)
	if err != nil {
		return call{}, err
	}
	c := call{id: id, worker: w.name, sent: handle.Sent()}
	if err := c.make(handle.Context(), w.http, url); err != nil {
		handle.Abandon() // it may have left
		return call{}, err
	}
	handle.Finish()
	return c, nil
}

// make makes the call.
func (c *call) make(ctx context.Context, client *http.Client, url string) error {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { c.warm = got.Reused },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"?id="+c.id, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	c.status = resp.StatusCode
	return drain(resp)
}
