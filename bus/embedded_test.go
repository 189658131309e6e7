package bus

import (
	"net"
	"net/url"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEmbeddedServerServesBothWays(t *testing.T) {
	e, err := Embed("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() {
		e.Close()
		e.Close() // does nothing
	})
	inside, err := e.Connect(ConnectConfig{Name: "inside"})
	require.NoError(t, err)
	t.Cleanup(inside.Close)
	serve(t, inside, ServeConfig{Lessor: granting()})
	outside := dialed(t, e.URL(), ConnectConfig{})
	_, err = NewClient(outside, ClientConfig{}).Acquire(bounded(t), request(1, "acme"))
	require.NoError(t, err)
	_, err = NewClient(inside, ClientConfig{}).Acquire(bounded(t), request(2, "acme"))
	require.NoError(t, err)
}

func TestPortInUseIsToldWithItsRemedy(t *testing.T) {
	e := embed(t)
	u, err := url.Parse(e.URL())
	require.NoError(t, err)
	_, err = Embed(u.Host)
	require.ErrorContains(t, err, u.Host+" is in use")
	require.ErrorContains(t, err, "--listen")
	require.NotContains(t, err.Error(), "--nats", "what leads there would be joined by a second leader")
}

func TestAddressIsCheckedBeforeItIsUsed(t *testing.T) {
	for _, addr := range []string{"", "127.0.0.1", "4222", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-2", "a:b:c"} {
		_, err := Embed(addr)
		require.ErrorContains(t, err, "give one like 127.0.0.1:4222", addr)
	}
	_, err := Embed("192.0.2.1:0")
	require.ErrorContains(t, err, "listening on 192.0.2.1:0")
}

func TestAddressWithoutHostListensOnAllInterfaces(t *testing.T) {
	e, err := Embed(":0")
	require.NoError(t, err)
	t.Cleanup(e.Close)
	u, err := url.Parse(e.URL())
	require.NoError(t, err)
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", u.Port()))
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestEmbeddedServerWritesNothing(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = w, w
	e, err := Embed("-1")
	os.Stdout, os.Stderr = stdout, stderr
	require.NoError(t, err)
	e.Close()
	require.NoError(t, w.Close())
	var b [1]byte
	n, _ := r.Read(b[:])
	require.Zero(t, n)
	require.NoError(t, r.Close())
}
