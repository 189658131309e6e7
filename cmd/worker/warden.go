package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"ration/cmd/internal/cli"
)

// warden is a second process that outlives this one by a moment, to kill what
// commands have started themselves: the kernel kills with us only the commands
// (see dieWithUs). It holds the other end of a pipe that breaks when this process
// ends, however it does. It belongs to one goroutine.
type warden struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// hireWarden starts the warden of this process.
func hireWarden() (*warden, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("looking for this program: %w", err)
	}
	cmd := &exec.Cmd{
		Path: self,
		Args: []string{name, "warden"},
		// A session of its own, so that what a terminal or a group is sent does
		// not end it before us.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting the warden of commands: %w", err)
	}
	return &warden{cmd, pipe}, nil
}

// begun and ended name the process group of a command. A warden that is gone
// cannot be told, and does no harm.
func (w *warden) begun(group int) { fmt.Fprintf(w.pipe, "+%d\n", group) }
func (w *warden) ended(group int) { fmt.Fprintf(w.pipe, "-%d\n", group) }

// dismiss ends the warden; it kills the groups that have not ended.
func (w *warden) dismiss() {
	w.pipe.Close()
	_ = w.cmd.Wait() // its exit code says nothing
}

// wardenCommand is the other process.
type wardenCommand struct{}

func (*wardenCommand) run(_ context.Context, s cli.Streams) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	for group := range remaining(s.In) {
		_ = syscall.Kill(-group, syscall.SIGKILL) // it may be gone already
	}
	return nil
}

// remaining reads of groups until the pipe breaks, and gives those that have
// begun and not ended.
func remaining(pipe io.Reader) map[int]struct{} {
	groups := map[int]struct{}{}
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		group, err := strconv.Atoi(lines.Text()[min(1, len(lines.Text())):])
		switch {
		case err != nil || group <= 1:
		case lines.Text()[0] == '+':
			groups[group] = struct{}{}
		default:
			delete(groups, group)
		}
	}
	return groups
}
