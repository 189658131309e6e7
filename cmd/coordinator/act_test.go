package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/lease"
)

// operated gives the URL of a leader that does acts so.
func operated(t *testing.T, act func(context.Context, lease.Act) (any, error)) string {
	t.Helper()
	server, err := bus.Embed("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(server.Close)
	nc, err := server.Connect(bus.ConnectConfig{Wait: time.Minute})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- bus.Serve(ctx, nc, bus.ServeConfig{
			Lessor: bus.NewClient(nc, bus.ClientConfig{}),
			Status: func(context.Context, lease.Key) (any, error) {
				return &document{V: bus.Format, Cell: bus.DefaultCell, Divided: 1}, nil
			},
			Act:   act,
			Ready: func() { close(ready) },
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	<-ready
	return server.URL()
}

// operate runs the command, and gives its exit code and what it says.
func operate(t *testing.T, url string, args ...string) (code int, out, told string) {
	t.Helper()
	var o, e locked
	code = run(t.Context(), append(args, "--nats", url), cli.Streams{Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// TestChargeThatMayHaveCountedNamesItsID: whatever became of it, whoever tells it again under
// that id is counted once. One that was refused was not counted, and says no id.
func TestChargeThatMayHaveCountedNamesItsID(t *testing.T) {
	var failure atomic.Pointer[error]
	var id atomic.Pointer[string]
	url := operated(t, func(ctx context.Context, a lease.Act) (any, error) {
		id.Store(&a.ID)
		err := *failure.Load()
		if err == context.DeadlineExceeded { // the mirror does not answer
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, err
	})
	for name, c := range map[string]struct {
		err   error
		code  int
		named bool
	}{
		"the mirror hangs":         {context.DeadlineExceeded, cli.Failed, true},
		"the mirror is away":       {lease.ErrMirrorAway, cli.Failed, true},
		"it fails":                 {fmt.Errorf("disk full"), cli.Failed, true},
		"it was stopped":           {lease.ErrStopped, cli.Failed, true},
		"nobody leads":             {lease.ErrNoCoordinator, cli.NoCoordinator, true},
		"it makes no sense":        {lease.ErrBadRequest, cli.Failed, false},
		"nothing is counted":       {lease.ErrUnknownKey, cli.Refused, false},
		"as many keys as may":      {lease.ErrTooManyKeys, cli.Failed, false},
		"it speaks another format": {lease.ErrFormat, cli.Failed, false},
	} {
		t.Run(name, func(t *testing.T) {
			failure.Store(&c.err)
			code, out, told := operate(t, url, "charge", "acme", "5")
			require.Equal(t, c.code, code, told)
			require.Empty(t, out)
			remedy := "; whether it was done is unknown, so do it again with --id " + *id.Load() + ", so that it counts once"
			if c.named {
				require.Contains(t, told, remedy)
			} else {
				require.NotContains(t, told, *id.Load())
			}
		})
	}
}

// TestChargeThatNobodyAnswersAfterAllNamesItsID: its leader went with the answer, and nobody
// leads since.
func TestChargeThatNobodyAnswersAfterAllNamesItsID(t *testing.T) {
	c := &asking{where: "nats://n"}
	c.Cell = "default"
	err := c.failed(lease.ErrNoCoordinator, "it was done", "do it again with --id a")
	require.ErrorContains(t, err, "NATS at nats://n has no coordinator in cell default")
	require.ErrorContains(t, err, "so do it again with --id a")
	require.Equal(t, cli.NoCoordinator, cli.Code(err))
	require.NotContains(t, c.failed(lease.ErrNoCoordinator, "", "").Error(), "unknown")
}

// TestResetOfManyTakesItsTime: each round has as long as the first, however many there are.
func TestResetOfManyTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		ask := func(ctx context.Context) (*acted, error) {
			asked++
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(900 * time.Millisecond):
				return &acted{Reset: 1024, More: asked < 10}, nil
			}
		}
		all, err := rounds(t.Context(), time.Second, ask)
		require.NoError(t, err)
		require.Equal(t, 10*1024, all.Reset)
		_, err = rounds(t.Context(), 800*time.Millisecond, ask)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
