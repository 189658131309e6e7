package system

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
)

// servers starts what commands find at addresses: a coordinator, its ports, and
// what is none.
func (p *places) servers() {
	free := func() string {
		addr, err := harness.FreeAddr()
		require.NoError(p.t, err)
		return addr
	}
	c := p.h.Coordinator(harness.CoordinatorConfig{Policy: filepath.Join(p.dir, "good.yaml"), Args: []string{"--name", "first"}})
	p.place("nats", strings.TrimPrefix(c.NATS, "nats://"))
	p.place("http", strings.TrimPrefix(c.HTTP, "http://"))
	p.place("nowhere", free())
	p.place("free", free())

	web := httptest.NewServer(http.NotFoundHandler())
	p.t.Cleanup(web.Close)
	p.place("web", web.Listener.Addr().String())
	p.place("ssh", talker(p.t, "SSH-2.0-server\r\n"))
	p.place("closing", talker(p.t, ""))

	ca := certify(p.t, p.dir)
	tls := fmt.Sprintf("tls { cert_file: %q, key_file: %q", filepath.Join(p.dir, "server.pem"), filepath.Join(p.dir, "server.key"))
	p.place("tls", natsServer(p.t, tls+" }"))
	p.place("mutual", natsServer(p.t, tls+fmt.Sprintf(", ca_file: %q, verify: true }", ca)))

	guarded := natsServer(p.t, `authorization { users = [
		{ user: ann, password: secret },
		{ user: silent, password: secret, permissions: { publish: { deny: "ration.>" } } },
		{ user: reporter, password: secret, permissions: { publish: { deny: "ration.v1.*.p.*.acquire.>" } } },
		{ user: deaf, password: secret, permissions: { subscribe: { deny: "_INBOX.>" } } },
	] }`)
	p.place("guarded", guarded)
	p.h.Coordinator(harness.CoordinatorConfig{
		Policy: filepath.Join(p.dir, "good.yaml"), NATS: "nats://" + guarded, Args: []string{"--user", "ann", "--password", "secret", "--name", "guarded"},
	})
	p.place("newer", newer(p.t))
}

// natsServer starts a NATS server as operators do, and gives its address.
func natsServer(t *testing.T, conf string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(file, []byte("listen: 127.0.0.1:-1\n"+conf), 0o600))
	opts, err := server.ProcessConfigFile(file)
	require.NoError(t, err)
	opts.NoSigs, opts.NoLog = true, true
	s, err := server.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(harness.Patience))
	return s.Addr().String()
}

// talker says one thing to everybody who comes, and closes.
func talker(t *testing.T, says string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var talking sync.WaitGroup
	talking.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(says)) // who has gone again does not hear it
			c.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		talking.Wait()
	})
	return l.Addr().String()
}

// newer is a coordinator of the next format, which reads what is older and answers
// as it speaks.
func newer(t *testing.T) (addr string) {
	t.Helper()
	e, err := bus.Embed("-1")
	require.NoError(t, err)
	t.Cleanup(e.Close)
	nc, err := e.Connect(bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	_, err = nc.Subscribe("ration.v1.default.>", func(m *nats.Msg) { _ = m.Respond([]byte(`{"v":2,"leader":"next","news":[]}`)) })
	require.NoError(t, err)
	require.NoError(t, nc.FlushTimeout(harness.Patience))
	return strings.TrimPrefix(e.URL(), "nats://")
}

// TestNobodyThereIsToldSoon: exit code 5 within --connect-wait and a second. The
// figure is printed; only ten times that is a failure, on a machine as busy as can
// be.
func TestNobodyThereIsToldSoon(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	p.files()
	nowhere, err := harness.FreeAddr()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0") // and says nothing
	require.NoError(t, err)
	defer l.Close()
	const wait, bound = 500 * time.Millisecond, 1500 * time.Millisecond
	p.h.Bin("coordinator", "worker")
	for what, addr := range map[string]string{"nobody": nowhere, "who says nothing": l.Addr().String()} {
		for _, line := range []string{"worker load --key k", "worker exec --key k -- true", "coordinator status", "coordinator --policy good.yaml"} {
			began := time.Now()
			words := split(t, line)
			args := append([]string{words[1], "--nats", "nats://" + addr, "--connect-wait", wait.String()}, words[2:]...)
			if words[1][0] == '-' {
				args = append([]string{"serve"}, append(words[1:], "--nats", "nats://"+addr, "--connect-wait", wait.String())...)
			}
			c := p.h.Start(harness.Command{Path: p.h.Bin(words[0]).Path(words[0]), Args: args, Dir: p.dir})
			code := p.h.Wait(c)
			took := time.Since(began)
			require.Equal(t, 5, code, "%s: %s", line, c.Stderr())
			require.Less(t, took, 10*bound, line)
			t.Logf("%s, where there is %s: exit code 5 after %v of %v", line, what, took.Round(time.Millisecond), bound)
		}
	}
}

// A coordinator that may not listen ends, and names the subject.
func TestACoordinatorThatMayNotListenNamesTheSubject(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	p.files()
	addr := natsServer(t, `authorization { users = [ { user: closed, password: secret, permissions: { subscribe: { deny: "ration.v1.*.p.>" } } } ] }`)
	told := p.run(t, "coordinator --policy good.yaml --http 127.0.0.1:0 --user closed --password secret --connect-wait 1m --nats nats://"+addr)
	require.Regexp(t, "^1\n", told)
	require.Regexp(t, `coordinator: NATS forbids it: this user may not subscribe to "ration.v1.default.p.0.\*.\*"; allow it in the NATS server's permissions\n$`, told)
}
