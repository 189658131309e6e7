package harness

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Redis is a redis-server of a test. It may be ended and started again at the same
// address.
type Redis struct {
	h    *Test
	path string
	dir  string
	file string // of its configuration, if it needs one
	args []string
	p    *Process
	Addr string
	Bus  string // the port on which nodes of a Cluster talk
}

// RedisServer gives the path of redis-server, or "" and what to do where there is none.
func RedisServer() (path, lack string) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", "redis-server is not installed, and these tests play against it: run make redis, or install it"
	}
	return path, ""
}

// Redis starts a redis-server with these arguments, and waits until it answers. It
// keeps nothing on disk unless the arguments say so. Where none is installed the test is
// skipped, and fails if CI=true.
func (h *Test) Redis(args ...string) *Redis {
	h.t.Helper()
	r := h.redis(args)
	r.Start()
	return r
}

// Sentinel starts a Sentinel, alone its quorum, that watches a primary under the name
// "mirror" and promotes a replica once that has been gone for half a second. It is the
// same program.
func (h *Test) Sentinel(primary *Redis) *Redis {
	h.t.Helper()
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	r := h.redis([]string{"--sentinel"})
	r.file = filepath.Join(r.dir, "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor mirror %s %s 1\nsentinel down-after-milliseconds mirror 500\nsentinel failover-timeout mirror 5000\n", host, port)
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		h.t.Fatalf("%v", err)
	}
	r.Start()
	return r
}

// Cluster starts so many nodes of a Cluster, which do not know each other yet: their
// buses are at what Bus gives.
func (h *Test) Cluster(nodes int) []*Redis {
	h.t.Helper()
	var all []*Redis
	for range nodes {
		bus, err := FreeAddr()
		if err != nil {
			h.t.Fatalf("%v", err)
		}
		_, port, _ := net.SplitHostPort(bus)
		r := h.redis([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--cluster-port", port})
		r.Bus = port
		r.Start()
		all = append(all, r)
	}
	return all
}

// redis readies a server. Where none is installed the test is skipped, and fails if
// CI=true.
func (h *Test) redis(args []string) *Redis {
	h.t.Helper()
	path, lack := RedisServer()
	if path == "" {
		if skipper, ok := h.t.(interface{ Skip(...any) }); ok && os.Getenv("CI") != "true" {
			skipper.Skip(lack)
		}
		h.t.Fatalf("%s", lack)
	}
	addr, err := FreeAddr()
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	return &Redis{h: h, path: path, dir: h.t.TempDir(), args: args, Addr: addr}
}

// URL is that of the server.
func (r *Redis) URL() string { return "redis://" + r.Addr }

// Process is the running one, or the last.
func (r *Redis) Process() *Process { return r.p }

// Start starts the server, again after an end, and waits until it answers.
func (r *Redis) Start() {
	r.h.t.Helper()
	host, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		r.h.t.Fatalf("%v", err)
	}
	args := append([]string{"--bind", host, "--port", port, "--dir", r.dir, "--save", "", "--appendonly", "no", "--daemonize", "no"}, r.args...)
	if r.file != "" {
		args = append([]string{r.file}, args...)
	}
	r.p = r.h.Start(Command{Name: "redis-server", Path: r.path, Args: args, Dir: r.dir})
	r.h.Until("redis-server", r.answers)
}

// answers says why the server does not answer, or nil. A server that reads its data
// answers too, but with an error.
func (r *Redis) answers() error {
	select {
	case <-r.p.Ended():
		return fmt.Errorf("it has ended: %s", r.p.Output())
	default:
	}
	c, err := net.DialTimeout("tcp", r.Addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer := make([]byte, 64)
	n, err := c.Read(answer)
	if err == nil && string(answer[:n]) != "+PONG\r\n" && string(answer[:min(n, 7)]) != "-NOAUTH" {
		err = fmt.Errorf("it answers %q", answer[:n])
	}
	return err
}

// Kill is kill -9.
func (r *Redis) Kill() {
	r.h.t.Helper()
	if err := r.p.Kill(); err != nil {
		r.h.t.Fatalf("%v", err)
	}
}

// Signal sends a signal to the server.
func (r *Redis) Signal(s syscall.Signal) {
	r.h.t.Helper()
	if err := r.p.Signal(s); err != nil {
		r.h.t.Fatalf("%v", err)
	}
}
