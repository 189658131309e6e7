package system

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
)

// node is a NATS server that can be started again where it was.
type node struct {
	t      *testing.T
	conf   string
	server *server.Server
}

func newNode(t *testing.T, conf string) *node {
	t.Helper()
	n := &node{t: t, conf: conf}
	n.start()
	t.Cleanup(n.stop)
	return n
}

func (n *node) start() {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), "nats.conf")
	require.NoError(n.t, os.WriteFile(file, []byte(n.conf), 0o600))
	opts, err := server.ProcessConfigFile(file)
	require.NoError(n.t, err)
	opts.NoSigs, opts.NoLog = true, true
	n.server, err = server.NewServer(opts)
	require.NoError(n.t, err)
	n.server.Start()
	require.True(n.t, n.server.ReadyForConnections(harness.Patience))
}

func (n *node) stop() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
}

func (n *node) restart() {
	n.t.Helper()
	n.stop()
	n.start()
}

func (n *node) url() string { return n.server.ClientURL() }

// free gives addresses that nobody listens on.
func free(t *testing.T, n int) (addrs []string) {
	t.Helper()
	for range n {
		addr, err := harness.FreeAddr()
		require.NoError(t, err)
		addrs = append(addrs, addr)
	}
	return addrs
}

// TestWorkerBehindALeafNode is B158: hub and leaf start again in turn, and each time the
// worker is served again, by itself; no call is lost but those whose callers gave up, and
// nothing is left held.
func TestWorkerBehindALeafNode(t *testing.T) {
	t.Parallel()
	const contract = "200/1s"
	at := free(t, 3)
	hub := newNode(t, fmt.Sprintf("listen: %s\nleafnodes { listen: %s }\n", at[0], at[1]))
	leaf := newNode(t, fmt.Sprintf("listen: %s\nleafnodes { reconnect: 1, remotes: [ { url: \"nats://%s\" } ] }\n", at[2], at[1]))
	s := newSite(t, siteConfig{policy: "limits:\n  - {key: k, rules: [" + contract + "]}\n", url: hub.url(), lease: quick})
	w, err := worker.New(newHand(t, leaf.url()).client, worker.DefaultConfig())
	require.NoError(t, err)

	var mu sync.Mutex
	var spends []oracle.Spend
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				h, err := w.Limiter("k").Acquire(ctx, 1)
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				h.Finish()
				mu.Lock()
				spends = append(spends, spendOf(h, 1))
				mu.Unlock()
			}
		})
	}
	more := func(what string) {
		t.Helper()
		granted := s.status().Stats.Granted
		s.until(what, func(st lease.Status) bool { return st.Stats.Granted >= granted+300 })
	}
	more("grants through the leaf")
	for range scaled(1, 3) {
		hub.restart()
		more("grants after a restart of the hub")
		leaf.restart()
		more("grants after a restart of the leaf")
	}
	stop()
	callers.Wait()
	require.NoError(t, w.Close(context.Background()))
	b := w.Stats()
	require.Equal(t, b.Granted, b.Spent+b.Returned+b.Expired, "%+v", b)
	require.EqualValues(t, len(spends), b.Spent)
	require.Empty(t, oracle.Violations(spends, oracle.MustRules(contract)))
	s.until("all to be back", func(st lease.Status) bool { return st.Held.Zero() && st.Leases == 0 && st.Waiting == 0 })
}
