package system

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
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
