package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"ration/integration/oracle"
	"ration/integration/upstream"
)

// CoordinatorConfig says how to start a coordinator.
type CoordinatorConfig struct {
	Policy string // the policy file
	// NATS is the URL of a NATS server; if it is empty the coordinator embeds
	// its own, on Listen, or on a free port if that is empty too.
	NATS   string
	Listen string
	HTTP   string   // an address; a free port if empty
	Args   []string // further flags
	// Standby says that another one may lead: it is waited for until it lives.
	Standby bool
}

// Coordinator is a coordinator process.
type Coordinator struct {
	*Process
	NATS string // the URL that workers take
	HTTP string // the URL of its pages, without a slash at the end
}

// Coordinator starts a coordinator and waits until it is ready: /readyz says so.
func (b Bin) Coordinator(ctx context.Context, c CoordinatorConfig) (*Coordinator, error) {
	var err error
	started := &Coordinator{NATS: c.NATS}
	args := []string{"serve", "--policy", c.Policy}
	if c.NATS != "" {
		args = append(args, "--nats", c.NATS)
	} else {
		if c.Listen == "" {
			if c.Listen, err = FreeAddr(); err != nil {
				return nil, err
			}
		}
		started.NATS = "nats://" + c.Listen
		args = append(args, "--listen", c.Listen)
	}
	if c.HTTP == "" {
		if c.HTTP, err = FreeAddr(); err != nil {
			return nil, err
		}
	}
	started.HTTP = "http://" + c.HTTP
	args = append(append(args, "--http", c.HTTP), c.Args...)
	if started.Process, err = Start(Command{Path: b.Path("coordinator"), Args: args}); err != nil {
		return nil, err
	}
	err = started.until(ctx, "readiness", func() error {
		page := "/readyz"
		if c.Standby {
			page = "/healthz"
		}
		_, err := get(ctx, started.HTTP+page)
		return err
	})
	if err != nil {
		started.Close()
		return nil, err
	}
	return started, nil
}

// Worker starts a worker: the verb (exec, load) and its arguments, with the URL
// of the NATS server put between them, so that nothing of it comes after "--".
func (b Bin) Worker(nats, name, verb string, args ...string) (*Process, error) {
	args = append([]string{verb, "--nats", nats}, args...)
	return Start(Command{Name: name, Path: b.Path("worker"), Args: args})
}

// Upstream is a strict upstream process.
type Upstream struct {
	*Process
	URL string // without a slash at the end
}

// Upstream starts a strict upstream with these flags, such as "--contract",
// "5/1s, 12/3s", "--delay", "20ms", and waits until it serves.
func (b Bin) Upstream(ctx context.Context, args ...string) (*Upstream, error) {
	p, err := Start(Command{Path: b.Path("strictupstream"), Args: args})
	if err != nil {
		return nil, err
	}
	line, err := p.Line(ctx, "serving http://")
	if err != nil {
		p.Close()
		return nil, err
	}
	_, url, _ := strings.Cut(line, "serving ")
	return &Upstream{p, url}, nil
}

// Report is what the upstream has seen so far.
func (u *Upstream) Report(ctx context.Context) (upstream.Report, error) {
	var report upstream.Report
	body, err := get(ctx, u.URL+"/report")
	if err == nil {
		err = json.Unmarshal(body, &report)
	}
	if err != nil {
		return report, fmt.Errorf("harness: the upstream's report: %w", err)
	}
	return report, nil
}

// Arrivals is every call that the upstream has seen, in order; its key is the
// path.
func (u *Upstream) Arrivals(ctx context.Context) ([]oracle.Spend, error) {
	body, err := get(ctx, u.URL+"/arrivals")
	if err != nil {
		return nil, fmt.Errorf("harness: the upstream's arrivals: %w", err)
	}
	return oracle.Read(bytes.NewReader(body))
}
