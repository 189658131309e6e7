package system

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
	"ration/lease"
)

// TestNATSMayComeUpLater: a coordinator and a worker that start before NATS say what they
// wait for, and go on when it is there; one that is to wait for less ends with 5, and says
// what to do.
func TestNATSMayComeUpLater(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	at := free(t, 2)
	nats, policy := "nats://"+at[0], h.Policy("limits:\n  - {key: k, rules: [100/1s]}\n")
	bin := h.Bin("coordinator", "worker")
	start := func(args ...string) *harness.Process {
		return h.Start(harness.Command{Path: bin.Path("coordinator"), Args: append([]string{"serve", "--policy", policy, "--nats", nats, "--http", "127.0.0.1:0"}, args...)})
	}
	ends := start("--connect-wait", "100ms", "--redis", "redis://"+at[1])
	require.Equal(t, 5, h.Wait(ends), ends.Output())
	require.Contains(t, ends.Stderr(), "no NATS server at "+nats+" within 100ms (connection refused); start one there, name another with --nats, or wait for it longer with --connect-wait\n")

	waits := start("--connect-wait", "1h", "--name", "patient")
	load := h.Start(harness.Command{Path: bin.Path("worker"), Args: []string{"load", "--key", "k", "--count", "5", "--nats", nats, "--connect-wait", "1h"}})
	h.Line(waits, "coordinator: waiting for NATS (url "+nats+"; connection refused)")
	h.Line(load, "load: waiting for NATS (url "+nats+"; connection refused)")
	server, err := bus.Embed(at[0])
	require.NoError(t, err)
	t.Cleanup(server.Close)
	h.Line(waits, "coordinator: patient leads cell default")
	require.Zero(t, h.Wait(load), load.Output())
	h.Stop(waits)
}

// TestNothingIsGrantedBeforeThePolicyIsRead is B103: a coordinator that starts anew while
// its policy comes in slowly, half of it so far, is not ready and grants nothing to anybody;
// when it has all it grants by that.
func TestNothingIsGrantedBeforeThePolicyIsRead(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	at := free(t, 1)
	server, err := bus.Embed("-1")
	require.NoError(t, err)
	t.Cleanup(server.Close)
	const text = "limits:\n  - {key: k, rules: [5/1h]}\n  - {key: free, rules: [unlimited]}\n"
	policy := filepath.Join(t.TempDir(), "ration.yaml")
	require.NoError(t, syscall.Mkfifo(policy, 0o600))
	slow := h.Start(harness.Command{Path: h.Bin("coordinator").Path("coordinator"), Args: []string{"serve", "--policy", policy, "--nats", server.URL(), "--http", at[0]}})
	file, err := os.OpenFile(policy, os.O_WRONLY, 0) // returns when it has begun to read
	require.NoError(t, err)
	defer file.Close()
	_, err = file.WriteString(text[:37])
	require.NoError(t, err)

	hand := newHand(t, server.URL())
	ask := func(r lease.Request) (lease.Answer, error) {
		ctx, cancel := soon(harness.Patience)
		defer cancel()
		r.Patience = 0
		return hand.ask(ctx, r)
	}
	var callers sync.WaitGroup
	for range 1000 {
		r := hand.request(1, 0)
		callers.Go(func() {
			if _, err := ask(r); !errors.Is(err, lease.ErrNoCoordinator) {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	_, err = http.Get("http://" + at[0] + "/readyz")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.Empty(t, slow.Output())

	_, err = file.WriteString(text[37:])
	require.NoError(t, err)
	require.NoError(t, file.Close())
	h.Line(slow, "leads cell default")
	granted := 0
	for range 100 {
		a, err := ask(hand.request(1, 0))
		require.NoError(t, err)
		if a.Outcome == lease.Granted {
			granted++
		}
	}
	require.Equal(t, 5, granted)
	h.Stop(slow)
}
