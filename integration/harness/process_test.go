package harness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"ration/integration/harness"

	"github.com/stretchr/testify/require"
)

func sh(script string) harness.Command {
	return harness.Command{Name: "script", Path: "/bin/sh", Args: []string{"-c", script}}
}

// gone gives nil once no process has that number, or only a dead one that
// nobody has waited for yet.
func gone(pid int) error {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return nil
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil && strings.Contains(string(stat), ") Z ") {
		return nil
	}
	return fmt.Errorf("%d lives", pid)
}

func TestProcessTellsItsExitCodeAndOutput(t *testing.T) {
	h := harness.New(t)
	c := sh(`read line; echo "out $line $A"; echo bad >&2; exit 3`)
	c.Stdin, c.Env = strings.NewReader("word\n"), []string{"A=b"}
	p := h.Start(c)
	require.Equal(t, 3, h.Wait(p))
	require.Equal(t, "out word b\n", p.Stdout())
	require.Equal(t, "bad\n", p.Stderr())
	require.Equal(t, "script out| out word b\nscript err| bad\n", p.Output())
	require.ErrorIs(t, p.Signal(syscall.SIGTERM), os.ErrProcessDone)
	p.Close()
	p.Close()
	require.Equal(t, "bad\n", p.Stderr(), "output outlives the process")
	_, err := harness.Start(harness.Command{Path: "/nowhere/none"})
	require.ErrorContains(t, err, "starting none")
}

func TestProcessIsNotSetUpByTheCallersFlags(t *testing.T) {
	t.Setenv("RATION_POLICY", "mine")
	t.Setenv("NATS_URL", "mine")
	t.Setenv("OTHER", "kept")
	h := harness.New(t)
	p := h.Start(sh(`echo "$RATION_POLICY$NATS_URL$OTHER"`))
	h.Wait(p)
	require.Equal(t, "kept\n", p.Stdout())
}

func TestStopAsksAndKillDoesNot(t *testing.T) {
	h := harness.New(t)
	trap := `trap 'echo ended; exit 7' TERM; echo up; while :; do sleep 0.01; done`
	p := h.Start(sh(trap))
	require.Equal(t, "up", h.Line(p, "up"))
	require.Equal(t, 7, h.Stop(p))
	require.Equal(t, "up\nended\n", p.Stdout())

	p = h.Start(sh(trap))
	h.Line(p, "up")
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	require.Equal(t, 7, h.Stop(p), "a stopped process is woken")

	p = h.Start(sh(trap))
	h.Line(p, "up")
	require.NoError(t, p.Kill())
	require.Equal(t, -1, h.Wait(p))
	require.Equal(t, "up\n", p.Stdout())
	require.NoError(t, gone(p.PID()))
}

// The wait for a killed process does not wait for its children, and Close ends
// them.
func TestCloseEndsChildrenThatKillLeaves(t *testing.T) {
	h := harness.New(t)
	p := h.Start(sh(`sleep 1000 & echo "child $!"; wait`))
	var child int
	_, err := fmt.Sscanf(h.Line(p, "child"), "child %d", &child)
	require.NoError(t, err)
	require.NoError(t, p.Kill())
	require.Equal(t, -1, h.Wait(p))
	require.Error(t, gone(child))
	p.Close()
	h.Until("the child's end", func() error { return gone(child) })
}

func TestWhatIsStartedEndsWithTheTest(t *testing.T) {
	var pid int
	t.Run("starts", func(t *testing.T) {
		pid = harness.New(t).Start(sh(`exec sleep 1000`)).PID()
		require.Error(t, gone(pid))
	})
	require.NoError(t, gone(pid))
}

func TestWaitsEndWithTheirContext(t *testing.T) {
	h := harness.New(t)
	p := h.Start(sh(`echo half; printf whole; exec sleep 1000`))
	h.Line(p, "half")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))
	_, err := p.Wait(ctx)
	require.ErrorContains(t, err, "enough")
	require.ErrorContains(t, err, "script out| half")
	_, err = p.Line(ctx, "whole")
	require.ErrorContains(t, err, "enough", "a line is there only when it is whole")
	p.Kill()
	_, err = p.Line(context.Background(), "whole")
	require.ErrorContains(t, err, "script ended: signal: killed")
}

func TestUntilLooksOnceMoreAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	looks := 0
	err := harness.Until(ctx, "rain", func() error {
		looks++
		cancel()
		return fmt.Errorf("dry %d", looks)
	})
	require.ErrorContains(t, err, "waiting for rain: context canceled: dry 2")
	require.ErrorIs(t, err, context.Canceled)
	ctx, cancel = context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	require.NoError(t, harness.Until(ctx, "rain", func() error {
		if looks++; looks < 6 {
			return errors.New("dry")
		}
		return nil
	}))
}
