package readme

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
)

// patience bounds one command: make run builds on a cold cache.
const patience = 10 * time.Minute

// desk is where a page's commands are typed: a copy of the tree, and free ports
// in place of the default ones, which may be taken on this machine.
type desk struct {
	t    *testing.T
	test *harness.Test
	dir  string
	nats string // addresses
	http string
}

func newDesk(t *testing.T, dir string) *desk {
	t.Helper()
	d := &desk{t: t, test: harness.New(t), dir: dir}
	for _, addr := range []*string{&d.nats, &d.http} {
		var err error
		*addr, err = harness.FreeAddr()
		require.NoError(t, err)
	}
	return d
}

// start runs a script. What a page leaves out, its ports, comes by the
// environment, and what it spells out is replaced.
func (d *desk) start(name, script string, env ...string) *harness.Process {
	d.t.Helper()
	script = strings.NewReplacer("127.0.0.1:4222", d.nats, "127.0.0.1:8422", d.http).Replace(script)
	return d.test.Start(harness.Command{
		Name: name, Path: "/bin/sh", Args: []string{"-euc", script}, Dir: d.dir,
		// A make above this one must not tell the ones here what to do.
		Env: append([]string{"MAKEFLAGS=", "MAKELEVEL=", "MFLAGS=", "RATION_HTTP=" + d.http}, env...),
	})
}

// ended waits for a script's end and wants its exit code to be 0.
func (d *desk) ended(p *harness.Process) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	code, err := p.Wait(ctx)
	require.NoError(d.t, err)
	require.Zero(d.t, code, "%s\n%s", p.Name, p.Output())
}

func (d *desk) client() string { return "NATS_URL=nats://" + d.nats }

// serve starts what serves until the page ends, and waits until it is ready.
func (d *desk) serve(name, script string) {
	d.t.Helper()
	server := d.start(name, "exec "+strings.TrimSpace(script), "RATION_LISTEN="+d.nats)
	d.test.Until(name+" to be ready", func() error {
		select {
		case <-server.Ended():
			d.t.Fatalf("%s ended:\n%s", name, server.Output())
		default:
		}
		asked := d.start("healthcheck", "bin/coordinator healthcheck")
		if code := d.test.Wait(asked); code != 0 {
			return fmt.Errorf("exit code %d: %s", code, asked.Output())
		}
		return nil
	})
	d.t.Cleanup(func() { // before the harness kills it
		if d.t.Failed() {
			return
		}
		require.Zero(d.t, d.test.Stop(server), "%s after SIGTERM\n%s", name, server.Output())
	})
}

// typed runs a script to its end. What the demo says of a machine that has too
// much to do is not the README's fault: then it is tried again, and at last let
// be.
func (d *desk) typed(name, script string) *harness.Process {
	d.t.Helper()
	for tries := 1; ; tries++ {
		p := d.start(name, script, d.client())
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		code, err := p.Wait(ctx)
		cancel()
		require.NoError(d.t, err)
		if code == 0 {
			return p
		}
		require.True(d.t, busy(p), "%s: exit code %d\n%s", name, code, p.Output())
		if tries == 3 {
			d.t.Logf("%s: the machine is too busy to judge arrivals\n%s", name, p.Output())
			return p
		}
	}
}

// busy says that the demo blames the machine for what the upstream saw.
func busy(p *harness.Process) bool {
	return strings.Contains(p.Stdout(), "longer on its way than another, and the guard is")
}

// together runs each line in a shell of its own, all at once.
func (d *desk) together(name, lines string) {
	d.t.Helper()
	var shells []*harness.Process
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			shells = append(shells, d.start(name+" "+line, line, d.client()))
		}
	}
	require.NotEmpty(d.t, shells)
	for _, s := range shells {
		d.ended(s)
	}
}

// follow types a page from its top to its end.
func (d *desk) follow(page string) {
	d.t.Helper()
	var last *harness.Process
	for _, b := range blocks(d.t, page) {
		name := fmt.Sprintf("%s:%d", page, b.line)
		switch b.kind {
		case "sh":
			last = nil
			if strings.TrimSpace(b.body) == testCommand {
				continue // this is what runs here
			}
			last = d.typed(name, b.body)
		case "sh serve":
			d.serve(name, b.body)
		case "sh together":
			d.together(name, b.body)
		case "text":
			require.NotNil(d.t, last, "%s: the output of no command", name)
			require.Equal(d.t, b.body, printed(last.Stdout()), name)
		case "text about":
			require.NotNil(d.t, last, "%s: the output of no command", name)
			if !busy(last) {
				require.Equal(d.t, shape(b.body), shape(last.Stdout()), name)
			}
		case "yaml":
			file := strings.TrimSpace(strings.TrimPrefix(strings.SplitN(b.body, "\n", 2)[0], "#"))
			require.Regexp(d.t, `^[\w-]+\.yaml$`, file, "%s: a file's first line is its name", name)
			require.NoError(d.t, os.WriteFile(filepath.Join(d.dir, file), []byte(b.body), 0o600))
		case "", "go":
		default:
			// Tests of the bus play the protocol's, and load the configuration of NATS.
			if !strings.HasPrefix(b.kind, "json ") && b.kind != "conf" {
				d.t.Fatalf("%s: what is a block of %q?", name, b.kind)
			}
		}
	}
}

var figure = regexp.MustCompile(`\d+(\.\d+)?`)

// printed is an output without what make says of what it does.
func printed(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "go build ") && !strings.HasPrefix(line, "make") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// shape is an output without what differs from run to run: figures, and the widths
// of columns.
func shape(out string) string {
	var lines []string
	for line := range strings.Lines(printed(out)) {
		lines = append(lines, flat(figure.ReplaceAllString(line, "0")))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
