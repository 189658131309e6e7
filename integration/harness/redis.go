package harness

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Redis is a redis-server of a test. It may be ended and started again at the same
// address.
type Redis struct {
	h    *Test
	path string
	dir  string
	args []string
	p    *Process
	Addr string
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
	r := &Redis{h: h, path: path, dir: h.t.TempDir(), args: args, Addr: addr}
	r.Start()
	return r
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
