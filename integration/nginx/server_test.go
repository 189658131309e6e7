package nginx

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
)

//go:embed nginx.conf
var confText string

var conf = template.Must(template.New("nginx.conf").Parse(confText))

// server is nginx, and behind it a server of the test, which it asks for /open
// and /conn.
type server struct {
	t   *testing.T
	h   *harness.Test
	dir string
	url string
}

// program is where nginx is. Debian has it where only root looks.
func program(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const lack = "nginx is not installed, and these tests play against it: run make nginx, or install it"
	if proof || os.Getenv("CI") == "true" {
		t.Fatal(lack)
	}
	t.Skip(lack)
	return ""
}

// start starts nginx and returns once it passes requests on. Whatever answers
// behind it answers at /conn.
func start(t *testing.T, conn http.HandlerFunc) *server {
	t.Helper()
	path := program(t)
	mux := http.NewServeMux()
	mux.Handle("/open", &parties{})
	mux.Handle("/conn", conn)
	behind := httptest.NewServer(mux)
	t.Cleanup(behind.Close)
	h := harness.New(t)
	for try := 1; ; try++ {
		addr, err := harness.FreeAddr()
		require.NoError(t, err)
		s := &server{t: t, h: h, dir: t.TempDir(), url: "http://" + addr}
		p := s.run(path, addr, behind.Listener.Addr().String())
		var ended bool
		h.Until("nginx", func() error {
			select {
			case <-p.Ended():
				ended = true
				return nil
			default:
				return s.passes()
			}
		})
		if !ended {
			return s
		}
		// Somebody may have taken the port meanwhile.
		require.True(t, try < 3 && strings.Contains(s.errors(), "bind()"), "nginx ended at once:\n%s%s", p.Output(), s.errors())
	}
}

// run starts the process.
func (s *server) run(path, addr, behind string) *harness.Process {
	s.t.Helper()
	var text strings.Builder
	require.NoError(s.t, conf.Execute(&text, struct{ Dir, Addr, Behind string }{s.dir, addr, behind}))
	file := filepath.Join(s.dir, "nginx.conf")
	require.NoError(s.t, os.WriteFile(file, []byte(text.String()), 0o600))
	return s.h.Start(harness.Command{Name: "nginx", Path: path, Args: []string{"-p", s.dir, "-c", file}})
}

// passes says whether nginx passes a request on.
func (s *server) passes() error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(s.url + "/open?party=start&of=1")
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return errors.New(resp.Status)
	}
	return nil
}

// errors is what nginx has written of errors; each refusal is one.
func (s *server) errors() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "error.log"))
	if errors.Is(err, os.ErrNotExist) {
		return "" // it ended before it could
	}
	require.NoError(s.t, err)
	return string(text)
}

// entry is a line of nginx's log. Its clock goes by milliseconds.
type entry struct {
	id      string
	arrived time.Time
	status  int
}

// logged waits until nginx has written as many lines of a location, and gives all
// of them in their order.
func (s *server) logged(location string, lines int) ([]entry, error) {
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	var entries []entry
	err := harness.Until(ctx, fmt.Sprintf("%d lines of %s in nginx's log", lines, location), func() error {
		text, err := os.ReadFile(filepath.Join(s.dir, "access.log"))
		if err != nil {
			return err
		}
		if entries, err = parse(string(text), location); err != nil {
			return err
		}
		if len(entries) < lines {
			return fmt.Errorf("it has %d", len(entries))
		}
		return nil
	})
	return entries, err
}

// parse reads the lines of a location; the last one may be under way still.
func parse(text, location string) ([]entry, error) {
	var entries []entry
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if !strings.HasSuffix(line, "\n") || len(f) != 5 || f[3] != location {
			continue
		}
		ended, err1 := strconv.ParseFloat(f[0], 64)
		took, err2 := strconv.ParseFloat(f[1], 64)
		status, err3 := strconv.Atoi(f[2])
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		arrived := time.UnixMilli(int64(math.Round(ended*1000) - math.Round(took*1000)))
		entries = append(entries, entry{id: f[4], arrived: arrived, status: status})
	}
	return entries, nil
}
