package harness_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ration/integration/harness"
	"ration/integration/oracle"

	"github.com/stretchr/testify/require"
)

func TestUpstreamServesReportsAndStops(t *testing.T) {
	h := harness.New(t)
	u := h.Upstream("--contract", "2/1h", "--delay", "1ms")
	for range 3 {
		resp, err := http.Get(u.URL + "/x")
		require.NoError(t, err)
		resp.Body.Close()
	}
	report := h.Report(u)
	require.EqualValues(t, 3, report.Arrivals)
	require.Equal(t, 1, report.Violations())
	require.Len(t, oracle.Violations(h.Arrivals(u), oracle.MustRules("2/1h")), 1)
	require.Equal(t, 0, h.Stop(u.Process))
	require.Contains(t, u.Stdout(), `"arrivals": 3`)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := u.Report(ctx)
	require.Error(t, err)
	_, err = u.Arrivals(ctx)
	require.Error(t, err)
}

func TestUpstreamThatCannotStartSaysWhy(t *testing.T) {
	_, err := harness.New(t).Bin("strictupstream").Upstream(context.Background(), "--contract", "five")
	require.ErrorContains(t, err, `rule "five"`)
	_, err = harness.Build(context.Background(), t.TempDir(), "nothing")
	require.ErrorContains(t, err, `no binary "nothing"`)
}

func TestCoordinatorIsReadyWhenItSaysSo(t *testing.T) {
	bin := stage(t, "coordinator", "worker")
	start := func(c harness.CoordinatorConfig) *harness.Coordinator {
		started, err := bin.Coordinator(context.Background(), c)
		require.NoError(t, err)
		t.Cleanup(started.Close)
		resp, err := http.Get(started.HTTP + "/readyz")
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
		return started
	}
	c := start(harness.CoordinatorConfig{Policy: "p.yaml", Args: []string{"--name", "a"}})
	require.Equal(t, fmt.Sprintf("serve --policy p.yaml --listen %s --http %s --name a\n",
		strings.TrimPrefix(c.NATS, "nats://"), strings.TrimPrefix(c.HTTP, "http://")), c.Stdout())

	again, err := harness.FreeAddr()
	require.NoError(t, err)
	c = start(harness.CoordinatorConfig{Policy: "p.yaml", NATS: "nats://there:4222", HTTP: again})
	require.Equal(t, "serve --policy p.yaml --nats nats://there:4222 --http "+again+"\n", c.Stdout())

	w, err := bin.Worker(c.NATS, "w1", "exec", "--key", "demo", "--", "echo", "{}")
	require.NoError(t, err)
	t.Cleanup(w.Close)
	code, err := w.Wait(context.Background())
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, "exec --nats nats://there:4222 --key demo -- echo {}\n", w.Stdout())

	_, err = bin.Coordinator(context.Background(), harness.CoordinatorConfig{Policy: "p.yaml", Args: []string{"--broken"}})
	require.ErrorContains(t, err, "the policy is bad")
	require.ErrorContains(t, err, "exit status 2")
}

// Only Linux kills a process with its parent; elsewhere Close has to.
func TestProcessDiesWithTheProcessThatStartedIt(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only on Linux")
	}
	h := harness.New(t)
	bin := h.Bin("strictupstream")
	parent := h.Start(harness.Command{Path: stage(t, "parent").Path("parent"), Args: []string{string(bin)}})
	url := strings.TrimPrefix(h.Line(parent, "serving "), "serving ")
	resp, err := http.Get(url + "/report")
	require.NoError(t, err)
	resp.Body.Close()
	require.NoError(t, parent.Kill())
	h.Until("the upstream's end", func() error {
		resp, err := http.Get(url + "/report")
		if err != nil {
			return nil
		}
		resp.Body.Close()
		return errors.New("it still answers")
	})
}

// judged is a T whose failure the test looks at.
type judged struct {
	*testing.T
	said     []string
	cleanups []func()
	failed   bool
}

func (j *judged) Cleanup(f func()) { j.cleanups = append(j.cleanups, f) }
func (j *judged) Failed() bool     { return j.failed }
func (j *judged) Logf(format string, args ...any) {
	j.said = append(j.said, fmt.Sprintf(format, args...))
}
func (j *judged) Fatalf(format string, args ...any) { j.failed = true; j.Logf(format, args...) }

func TestFailedTestShowsWhatItsProcessesWrote(t *testing.T) {
	j := &judged{T: t}
	h := harness.New(j)
	p := h.Start(sh(`echo so far; exec sleep 1000`))
	h.Line(p, "so far")
	h.Logs(filepath.Join(t.TempDir(), "none"))
	require.True(t, j.failed)
	for _, f := range j.cleanups {
		f()
	}
	require.NoError(t, gone(p.PID()))
	require.Len(t, j.said, 2)
	require.Contains(t, j.said[0], "no such file")
	require.Equal(t, "script (signal: killed) had written:\nscript out| so far\n", j.said[1])
}

func TestPolicyAndLogsAreFiles(t *testing.T) {
	h := harness.New(t)
	path := h.Policy("limits: []\n")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "limits: []\n", string(text))
	log := h.Policy(`{"key":"demo","sent":1}` + "\n")
	require.Len(t, h.Logs(log, log), 2)
}

func TestRootIsWhereTheModuleIs(t *testing.T) {
	root, err := harness.Root(context.Background())
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "integration", "harness", "doc.go"))
}
