package system

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/integration/oracle"
)

// startWorker starts a worker with something to read.
func startWorker(h *harness.Test, url, name, verb, stdin string, args ...string) *harness.Process {
	return h.Start(harness.Command{
		Name:  name,
		Path:  h.Bin("worker").Path("worker"),
		Args:  append([]string{verb, "--nats", url, "--name", name, "--connect-wait", "30s"}, args...),
		Stdin: strings.NewReader(stdin),
	})
}

// startHolder starts a holder process; see playHolder.
func startHolder(t testing.TB, h *harness.Test, url, name string, args ...string) *harness.Process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := h.Start(harness.Command{
		Name: name, Path: self, Env: []string{"PLAY=holder"},
		Args: append([]string{"--nats", url, "--name", name}, args...),
	})
	h.Line(p, "holding")
	return p
}

// lines is how many whole lines a file has; none if there is no such file.
func lines(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "\n")
}

// hasLines waits until a file has so many lines.
func hasLines(h *harness.Test, path string, n int) {
	h.Until(fmt.Sprintf("%d lines of %s", n, filepath.Base(path)), func() error {
		if got := lines(path); got < n {
			return fmt.Errorf("there are %d", got)
		}
		return nil
	})
}

// entry is a line of a worker's log.
type entry struct {
	Item *string `json:"item"`
	Exit *int    `json:"exit"`
	Sent int64   `json:"sent"`
}

func entries(t testing.TB, path string) (all []entry) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var e entry
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		all = append(all, e)
	}
	return all
}

// spendsOf reads the spends that a holder process has printed.
func spendsOf(t testing.TB, p *harness.Process) []oracle.Spend {
	t.Helper()
	var log strings.Builder
	for line := range strings.Lines(p.Stdout()) {
		if strings.HasPrefix(line, "{") {
			log.WriteString(line)
		}
	}
	spends, err := oracle.Read(strings.NewReader(log.String()))
	require.NoError(t, err)
	return spends
}

func costs(spends []oracle.Spend) (sum int64) {
	for _, s := range spends {
		sum += s.Cost
	}
	return sum
}

// gone gives nil once none of the processes whose numbers a file has lives. One
// that nobody has waited for yet is dead too.
func gone(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || !strings.Contains(string(stat), ") Z ") {
			return fmt.Errorf("%d lives", pid)
		}
	}
	return nil
}
