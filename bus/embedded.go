package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Embedded is a NATS server in this process. It handles no signals, keeps
// nothing on disk and writes no log. Its methods are safe for concurrent use.
type Embedded struct {
	server *server.Server
}

// Embed starts a NATS server that listens on addr, such as "127.0.0.1:4222";
// without a host it listens on all interfaces. Port 0 or -1 takes a free one,
// and "-1" alone a free one of the loopback interface. It returns once the
// server takes connections. The caller closes it.
func Embed(addr string) (*Embedded, error) {
	host, port, err := hostPort(addr)
	if err != nil {
		return nil, err
	}
	if err := free(host, port); err != nil {
		return nil, err
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "ration",
		Host:       host,
		Port:       port,
		NoSigs:     true,
		NoLog:      true,
	})
	if err != nil {
		return nil, fmt.Errorf("bus: embedding a NATS server: %w", err)
	}
	faults := &faults{}
	s.SetLogger(faults, false, false)
	s.Start()
	if !s.ReadyForConnections(5 * time.Second) {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, fmt.Errorf("bus: the embedded NATS server on %s is not ready: %s", addr, faults)
	}
	return &Embedded{s}, nil
}

func hostPort(addr string) (host string, port int, err error) {
	if addr == "-1" {
		return "127.0.0.1", server.RANDOM_PORT, nil
	}
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < -1 || port > 65535 {
		return "", 0, fmt.Errorf("bus: %q is no address to listen on; give one like 127.0.0.1:4222", addr)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	if host == "" {
		host = "0.0.0.0"
	}
	return host, port, nil
}

// free tries the address, since the server itself would only log that it is
// taken.
func free(host string, port int) error {
	addr := net.JoinHostPort(host, strconv.Itoa(max(port, 0)))
	l, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("bus: %s is in use; stop what listens there, which may be a coordinator already, or choose another address with --listen", addr)
	case err != nil:
		return fmt.Errorf("bus: listening on %s: %w; give --listen an address of this machine, such as 127.0.0.1:4222", addr, err)
	}
	return l.Close()
}

// URL is where clients of this machine connect.
func (e *Embedded) URL() string { return e.server.ClientURL() }

// Connect connects within the process, without the network.
func (e *Embedded) Connect(cfg ConnectConfig) (*nats.Conn, error) {
	return connect(context.Background(), e.URL(), cfg, nats.InProcessServer(e.server))
}

// Close stops the server and waits until it has stopped. Closing again does
// nothing.
func (e *Embedded) Close() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// faults keeps the last fault that the server reports, for the error of Embed.
type faults struct {
	mu   sync.Mutex
	last string
}

func (f *faults) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == "" {
		return "it gives no reason"
	}
	return f.last
}

func (f *faults) keep(format string, args []any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = fmt.Sprintf(format, args...)
}

func (f *faults) Noticef(string, ...any)       {}
func (f *faults) Warnf(string, ...any)         {}
func (f *faults) Debugf(string, ...any)        {}
func (f *faults) Tracef(string, ...any)        {}
func (f *faults) Errorf(s string, args ...any) { f.keep(s, args) }
func (f *faults) Fatalf(s string, args ...any) { f.keep(s, args) }
