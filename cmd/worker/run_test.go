package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ration/cmd/internal/cli"
)

// locked is a writer that several may write to.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// try runs the command in this process, beside a coordinator.
func try(t *testing.T, ctx context.Context, in string, args ...string) (code int, out, told string) {
	t.Helper()
	c, err := startCoordinator()
	require.NoError(t, err)
	defer c.stop()
	var o, e locked
	code = run(ctx, args, cli.Streams{In: strings.NewReader(in), Out: &o, Err: &e, Environ: c.environ})
	return code, o.String(), e.String()
}

func TestNothingIsLeftRunning(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	code, out, told := try(t, t.Context(), "one\ntwo\n", "exec", "--key", "slots", "-j", "2", "--", "echo")
	require.Equal(t, cli.Done, code, told)
	require.ElementsMatch(t, []string{"one", "two"}, strings.Fields(out))

	code, _, told = try(t, t.Context(), "", "load", "--key", "free", "--count", "100", "-j", "8")
	require.Equal(t, cli.Done, code, told)
}

func TestEndOfTheContextEndsTheRun(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, stop := context.WithCancel(t.Context())
	log := filepath.Join(t.TempDir(), "log")
	go func() {
		defer stop()
		for text, _ := os.ReadFile(log); bytes.Count(text, []byte("\n")) < 3; text, _ = os.ReadFile(log) {
			time.Sleep(time.Millisecond)
		}
	}()
	code, _, told := try(t, ctx, "", "load", "--key", "free", "--rate", "500", "--log", log)
	require.Equal(t, cli.Done, code, told)
}

// TestTwoShellsShareALimit runs two workers at once on parts of a list: every
// line once, and no window over its limit by the instants in their logs.
func TestTwoShellsShareALimit(t *testing.T) {
	c, err := startCoordinator()
	require.NoError(t, err)
	defer c.stop()
	log := filepath.Join(t.TempDir(), "log")
	var shells sync.WaitGroup
	for _, list := range []string{"a\nb\nc\nd\n", "e\nf\ng\nh\n"} {
		shells.Go(func() {
			var o, e locked
			code := run(t.Context(), []string{"exec", "--key", "steady", "-j", "4", "--log", log, "--", "true"},
				cli.Streams{In: strings.NewReader(list), Out: &o, Err: &e, Environ: c.environ})
			if code != cli.Done {
				t.Errorf("exit code %d: %s", code, e.String())
			}
		})
	}
	shells.Wait()
	entries := readLog(t, log)
	items := ""
	for i, e := range entries {
		items += *e.Item
		within := 0
		for _, other := range entries[:i+1] { // of the second that ends with e
			if other.Sent > e.Sent-int64(time.Second) {
				within++
			}
		}
		require.LessOrEqual(t, within, 5, "%v", entries)
	}
	require.Len(t, items, 8)
	for _, item := range "abcdefgh" {
		require.Contains(t, items, string(item))
	}
}

// readLog gives the entries of a log by the instant they were sent.
func readLog(t *testing.T, file string) []entry {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var all []entry
	for line := range bytes.Lines(text) {
		var e entry
		require.NoError(t, json.Unmarshal(line, &e))
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.Sent, b.Sent) })
	return all
}

func TestExitCodeTellsWhichSignalEndedTheRun(t *testing.T) {
	for _, c := range []struct {
		signals []syscall.Signal
		args    []string
		want    int
	}{
		{[]syscall.Signal{syscall.SIGTERM}, []string{"load", "--count", "1000000"}, 143},
		{[]syscall.Signal{syscall.SIGTERM}, []string{"load", "--for", "1h"}, 143},
		{[]syscall.Signal{syscall.SIGTERM}, []string{"load"}, cli.Done},
		{[]syscall.Signal{syscall.SIGINT}, []string{"load", "--count", "1000000"}, 130},
		{[]syscall.Signal{syscall.SIGINT}, []string{"load"}, cli.Done},
		{[]syscall.Signal{syscall.SIGTERM, syscall.SIGTERM}, []string{"exec", "-j", "2", "--", "sleep", "600"}, 143},
		{[]syscall.Signal{syscall.SIGTERM, syscall.SIGINT}, []string{"exec", "-j", "2", "--", "sleep", "600"}, 130},
	} {
		log := filepath.Join(t.TempDir(), "log")
		args := append(c.args[:1:1], append([]string{"--key", "slots", "--log", log}, c.args[1:]...)...)
		co, err := startCoordinator()
		require.NoError(t, err)
		var o, e locked
		ended := make(chan int)
		go func() {
			ended <- run(t.Context(), args, cli.Streams{In: strings.NewReader("a\nb\nc\n"), Out: &o, Err: &e, Environ: co.environ})
		}()
		require.Eventually(t, func() bool { // it takes tokens, so it listens to signals
			s, err := co.leader.Status(t.Context(), "slots")
			return err == nil && s.Stats.Leases > 0
		}, time.Minute, time.Millisecond)
		for i, s := range c.signals {
			require.NoError(t, syscall.Kill(syscall.Getpid(), s))
			if i == 0 && len(c.signals) > 1 {
				require.Eventually(t, func() bool { return strings.Contains(e.String(), "once more to stop them") }, time.Minute, time.Millisecond)
			}
		}
		require.Equal(t, c.want, <-ended, "%v: %s", c, e.String())
		co.stop()
	}
}
