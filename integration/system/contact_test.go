package system

import (
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
)

// A signal ends first contact, wherever that is: with a server that says nothing,
// or with a coordinator that does not answer. The wait is an hour, so what does not
// hear the signal hangs here.
func TestASignalEndsFirstContact(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	p.files()
	came, asked := make(chan struct{}, 10_000), make(chan struct{}, 10_000)
	silent, mute := "nats://"+sayingNothing(t, came), answeringNobody(t, asked)
	worker := []string{"load", "--key", "k"}
	exe := []string{"exec", "--key", "k", "--", "true"}
	for _, c := range []struct { // the mute one last, since a question may be asked again
		binary string
		args   []string
		at     string
		signal syscall.Signal
		code   int
		told   string
	}{
		{"worker", worker, silent, syscall.SIGINT, 130, "worker: interrupted before a coordinator answered\n"},
		{"worker", worker, silent, syscall.SIGTERM, 143, "worker: asked to end before a coordinator answered\n"},
		{"worker", exe, silent, syscall.SIGHUP, 129, "worker: hung up before a coordinator answered\n"},
		{"coordinator", []string{"serve", "--policy", "good.yaml"}, silent, syscall.SIGINT, 130, "coordinator: interrupted before NATS answered\n"},
		{"coordinator", []string{"serve", "--policy", "good.yaml"}, silent, syscall.SIGTERM, 143, "coordinator: asked to end before NATS answered\n"},
		{"coordinator", []string{"status"}, silent, syscall.SIGINT, -1, ""}, // it has nothing to say, and dies of it
		{"worker", exe, mute, syscall.SIGINT, 130, "worker: interrupted before a coordinator answered\n"},
	} {
		args := append([]string{c.args[0], "--nats", c.at, "--connect-wait", "1h"}, c.args[1:]...)
		started := p.h.Start(harness.Command{Path: p.h.Bin(c.binary).Path(c.binary), Args: args, Dir: p.dir})
		select {
		case <-came:
		case <-asked:
		case <-started.Ended():
		}
		require.NoError(t, started.Signal(c.signal))
		require.Equal(t, c.code, p.h.Wait(started), "%v", c)
		require.Equal(t, c.told, started.Stderr(), "%v", c)
		require.Empty(t, started.Stdout())
	}
}

// sayingNothing takes connections, and gives the address.
func sayingNothing(t *testing.T, came chan<- struct{}) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var listening sync.WaitGroup
	listening.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			came <- struct{}{}
		}
	})
	t.Cleanup(func() {
		l.Close()
		listening.Wait()
	})
	return l.Addr().String()
}

// answeringNobody is a NATS server on which somebody hears all and answers nothing,
// and gives its URL.
func answeringNobody(t *testing.T, asked chan<- struct{}) string {
	t.Helper()
	e, err := bus.Embed("-1")
	require.NoError(t, err)
	t.Cleanup(e.Close)
	nc, err := e.Connect(bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	_, err = nc.Subscribe("ration.v1.>", func(*nats.Msg) { asked <- struct{}{} })
	require.NoError(t, err)
	require.NoError(t, nc.FlushTimeout(harness.Patience))
	return e.URL()
}
