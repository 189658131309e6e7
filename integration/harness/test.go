package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"ration/integration/oracle"
	"ration/integration/upstream"
)

// T is what is needed of a *testing.T or *testing.B.
type T interface {
	Helper()
	Name() string
	TempDir() string
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Test starts processes for one test. Each has ended when the test has, and
// whatever cannot be done fails the test.
type Test struct {
	t       T
	ctx     context.Context
	workers atomic.Int64
}

// New begins a test. Everything it waits for is bounded by Patience, each by
// itself.
func New(t T) *Test { return &Test{t: t, ctx: context.Background()} }

func (h *Test) bound() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(h.ctx, Patience, fmt.Errorf("it has taken %v", Patience))
}

// Bin gives the folder of binaries with the named ones in it, which are built if
// no test of this process has had them built. Building is not bounded: a cold
// cache takes its time.
func (h *Test) Bin(names ...string) Bin {
	h.t.Helper()
	bin, err := binaries(h.ctx, names...)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	return bin
}

// keep sees to it that p ends with the test, and shows what it wrote if the
// test failed.
func (h *Test) keep(p *Process) {
	h.t.Cleanup(func() {
		p.Close()
		if h.t.Failed() {
			h.t.Logf("%s (%v) had written:\n%s", p.Name, p.cmd.ProcessState, p.Output())
		}
	})
}

// Start starts any process.
func (h *Test) Start(c Command) *Process {
	h.t.Helper()
	p, err := Start(c)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	h.keep(p)
	return p
}

// Policy writes a policy file and gives its path.
func (h *Test) Policy(text string) string {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), "ration.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatalf("%v", err)
	}
	return path
}

// Coordinator starts a coordinator and waits until it is ready.
func (h *Test) Coordinator(c CoordinatorConfig) *Coordinator {
	h.t.Helper()
	bin := h.Bin("coordinator")
	ctx, cancel := h.bound()
	defer cancel()
	started, err := bin.Coordinator(ctx, c)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	h.keep(started.Process)
	return started
}

// Worker starts a worker against the coordinator's NATS server; see Bin.Worker.
// Workers are named by number in what is shown.
func (h *Test) Worker(c *Coordinator, verb string, args ...string) *Process {
	h.t.Helper()
	name := fmt.Sprintf("worker %d", h.workers.Add(1))
	p, err := h.Bin("worker").Worker(c.NATS, name, verb, args...)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	h.keep(p)
	return p
}

// Upstream starts a strict upstream with these flags and waits until it serves.
func (h *Test) Upstream(args ...string) *Upstream {
	h.t.Helper()
	bin := h.Bin("strictupstream")
	ctx, cancel := h.bound()
	defer cancel()
	u, err := bin.Upstream(ctx, args...)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	h.keep(u.Process)
	return u
}

// Report is what the upstream has seen so far.
func (h *Test) Report(u *Upstream) upstream.Report {
	h.t.Helper()
	ctx, cancel := h.bound()
	defer cancel()
	report, err := u.Report(ctx)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	return report
}

// Arrivals is every call that the upstream has seen, in order.
func (h *Test) Arrivals(u *Upstream) []oracle.Spend {
	h.t.Helper()
	ctx, cancel := h.bound()
	defer cancel()
	arrivals, err := u.Arrivals(ctx)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	return arrivals
}

// Logs reads logs of workers and merges them; see oracle.ReadFiles.
func (h *Test) Logs(paths ...string) []oracle.Spend {
	h.t.Helper()
	spends, err := oracle.ReadFiles(paths...)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	return spends
}

// Until waits until holds gives nil.
func (h *Test) Until(what string, holds func() error) {
	h.t.Helper()
	ctx, cancel := h.bound()
	defer cancel()
	if err := Until(ctx, what, holds); err != nil {
		h.t.Fatalf("%v", err)
	}
}

// Line waits for a line of p that contains text and gives it.
func (h *Test) Line(p *Process, text string) string {
	h.t.Helper()
	ctx, cancel := h.bound()
	defer cancel()
	line, err := p.Line(ctx, text)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	return line
}

// Wait waits for the end of p and gives its exit code, -1 if a signal ended it.
// A run that is meant to last longer than Patience is waited for with
// Process.Wait.
func (h *Test) Wait(p *Process) int {
	h.t.Helper()
	ctx, cancel := h.bound()
	defer cancel()
	code, err := p.Wait(ctx)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	return code
}

// Stop asks p to end (SIGTERM), waits, and gives its exit code.
func (h *Test) Stop(p *Process) int {
	h.t.Helper()
	ctx, cancel := h.bound()
	defer cancel()
	code, err := p.Stop(ctx)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	return code
}
