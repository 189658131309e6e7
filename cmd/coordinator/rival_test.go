package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/lease"
)

// TestWhoeverCannotBeMadeOutCountsAsALeader: a start is refused beside a leader,
// and beside one that does not tell whether it still is; it goes on once that one
// has gone.
func TestWhoeverCannotBeMadeOutCountsAsALeader(t *testing.T) {
	server, err := bus.Embed("127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	nc, err := server.Connect(bus.ConnectConfig{})
	require.NoError(t, err)
	defer nc.Close()
	asked := bus.NewClient(nc, bus.ClientConfig{Cell: "a"})
	require.NoError(t, alone(t.Context(), asked, nc.IsConnected, "a", "there", time.Minute), "nobody is there")

	for _, c := range []struct {
		status any
		err    error
		want   string
	}{
		{status: &document{V: bus.Format, Leader: "one"}, want: "one leads cell a on NATS at there already; stop it"},
		{status: []byte("noise"), want: "whether somebody leads cell a on NATS at there already cannot be told"},
		{err: lease.ErrStopped, want: "whether somebody leads cell a on NATS at there already cannot be told"},
	} {
		ctx, stop := context.WithCancel(t.Context())
		ready, ended := make(chan struct{}), make(chan error, 1)
		other, err := server.Connect(bus.ConnectConfig{})
		require.NoError(t, err)
		go func() {
			ended <- bus.Serve(ctx, other, bus.ServeConfig{
				Lessor: nobody{}, Cell: "a", Name: "one",
				Status: func(context.Context, lease.Key) (any, error) { return c.status, c.err },
				Ready:  func() { close(ready) },
			})
		}()
		select {
		case <-ready:
		case err := <-ended:
			t.Fatal(err)
		}
		require.ErrorContains(t, alone(t.Context(), asked, nc.IsConnected, "a", "there", 200*time.Millisecond), c.want)
		require.NoError(t, alone(t.Context(), bus.NewClient(nc, bus.ClientConfig{Cell: "b"}), nc.IsConnected, "b", "there", time.Minute), "another cell")
		stop()
		require.NoError(t, <-ended)
		other.Close()
		require.NoError(t, alone(t.Context(), asked, nc.IsConnected, "a", "there", time.Minute), "it has gone")
	}
}

// TestAnAbsentNATSIsNoProofOfBeingAlone: what cannot be asked is not known.
func TestAnAbsentNATSIsNoProofOfBeingAlone(t *testing.T) {
	server, err := bus.Embed("127.0.0.1:0")
	require.NoError(t, err)
	nc, err := server.Connect(bus.ConnectConfig{})
	require.NoError(t, err)
	defer nc.Close()
	asked := bus.NewClient(nc, bus.ClientConfig{})
	server.Close()
	err = alone(t.Context(), asked, nc.IsConnected, bus.DefaultCell, "there", 100*time.Millisecond)
	require.ErrorContains(t, err, "cannot be told")
	require.Equal(t, cli.Failed, cli.Code(err))
}

// nobody is a lessor that is never asked.
type nobody struct{ lease.Lessor }
