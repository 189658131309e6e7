package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"ration/cmd/internal/cli"
)

// warden is a second process that outlives this one by a moment, to kill what
// commands have started themselves: the kernel kills with us only the commands
// (see dieWithUs). It holds the other end of a pipe that breaks when this process
// ends, however it does. It belongs to one goroutine.
//
// It is told the group of each command once that has started, and knows a mark
// in their environment before: this process may die in between.
type warden struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
	mark string
}

// markName is the variable that marks commands and what they start.
const markName = "RATION_EXEC_RUN"

// hireWarden starts the warden of this process.
func hireWarden() (*warden, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("looking for this program: %w", err)
	}
	mark := fmt.Sprintf("%s=%d-%x", markName, os.Getpid(), rand.Uint64())
	cmd := &exec.Cmd{
		Path: self,
		Env:  unmarked(os.Environ()),
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
	fmt.Fprintln(pipe, mark)
	return &warden{cmd, pipe, mark}, nil
}

// environ is what commands find in their environment.
func (w *warden) environ() []string { return append(unmarked(os.Environ()), w.mark) }

// unmarked leaves out the mark of a worker that started this one.
func unmarked(environ []string) []string {
	return slices.DeleteFunc(environ, func(v string) bool { return strings.HasPrefix(v, markName+"=") })
}

// begun and ended name the process group of a command. A warden that is gone
// cannot be told, and does no harm.
func (w *warden) begun(group int) { fmt.Fprintf(w.pipe, "+%d\n", group) }
func (w *warden) ended(group int) { fmt.Fprintf(w.pipe, "-%d\n", group) }

// dismiss ends the warden; it kills the groups that have not ended, and leaves
// alone what commands that have ended left running on purpose.
func (w *warden) dismiss() {
	fmt.Fprintln(w.pipe, dismissed)
	w.pipe.Close()
	_ = w.cmd.Wait() // its exit code says nothing
}

// dismissed is the last line of a process that ends by itself.
const dismissed = "dismissed"

// wardenCommand is the other process.
type wardenCommand struct{}

func (*wardenCommand) run(_ context.Context, s cli.Streams) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	mark, groups := remaining(s.In)
	for group := range groups {
		_ = syscall.Kill(-group, syscall.SIGKILL) // it may be gone already
	}
	if strings.HasPrefix(mark, markName+"=") {
		killStrays(mark)
	}
	return nil
}

// remaining reads the mark, and of groups until the pipe breaks: it gives those
// that have begun and not ended.
func remaining(pipe io.Reader) (mark string, groups map[int]struct{}) {
	groups = map[int]struct{}{}
	lines := bufio.NewScanner(pipe)
	if lines.Scan() {
		mark = lines.Text()
	}
	for lines.Scan() {
		group, err := strconv.Atoi(lines.Text()[min(1, len(lines.Text())):])
		switch {
		case lines.Text() == dismissed:
			mark = ""
		case err != nil || group <= 1:
		case lines.Text()[0] == '+':
			groups[group] = struct{}{}
		default:
			delete(groups, group)
		}
	}
	return mark, groups
}
