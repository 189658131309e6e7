package system

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"ration"
	"ration/integration/harness"
)

// TestWhoMayReportButNotAcquireIsToldSo is B154 for callers: they wait for as long as it
// takes, and NATS forbids to ask. They are told at once, and told that; with the same
// user in another tenant they are served.
func TestWhoMayReportButNotAcquireIsToldSo(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	addr := natsServer(t, `authorization { users = [
		{ user: coordinator, password: secret },
		{ user: acme, password: secret, permissions: { publish: ["ration.v1.*.p.*.acquire.acme", "ration.v1.*.p.*.report.*"] } },
	] }`)
	h.Coordinator(harness.CoordinatorConfig{
		Policy: h.Policy("limits:\n  - key: \"{tenant}\"\n    rules: [1000/1s]\n"), NATS: "nats://" + addr,
		Args: []string{"--user", "coordinator", "--password", "secret", "--connect-wait", "1m"},
	})
	client, err := ration.Connect(addr, ration.WithConnectWait(harness.Patience), ration.WithCredentials(ration.Credentials{User: "acme", Password: "secret"}))
	require.NoError(t, err)
	ctx, cancel := soon(harness.Patience)
	defer cancel()
	for _, key := range []string{"other", "other/search"} {
		require.NoError(t, client.Contact(ctx, key))
		limiter, err := client.Limiter(key)
		require.NoError(t, err)
		for range 3 {
			err = limiter.Wait(context.Background())
			require.ErrorIs(t, err, ration.ErrPermission)
			require.NotErrorIs(t, err, ration.ErrRefused, "the contract has not been asked")
			require.ErrorContains(t, err, `ration: NATS forbids it: this user may not publish to "ration.v1.default.p.0.acquire.other"`)
		}
		require.False(t, limiter.Allow())
	}
	ours, err := client.Limiter("acme/search")
	require.NoError(t, err)
	require.NoError(t, ours.Wait(ctx))
	require.NoError(t, client.Close(ctx))

	exe := startWorker(h, "nats://"+addr, "exe", "exec", "a\nb\n", "--key", "other", "--user", "acme", "--password", "secret", "--connect-wait", "1m", "--", "echo", "{}")
	require.Equal(t, 1, h.Wait(exe), exe.Output())
	require.Empty(t, exe.Stdout())
	require.Contains(t, exe.Stderr(), "NATS forbids it: this user may not publish to")
}
