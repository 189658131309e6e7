package main

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"time"

	"ration/cmd/internal/cli"
)

const (
	// killAfter is how long a command has to end after it was asked to.
	killAfter = 2 * time.Second
	// outputWait is how long output is waited for that something else than the
	// command, once it has exited, may still write.
	outputWait = time.Second
)

// nursery starts commands. The kernel kills them when the thread that started
// them ends (see dieWithUs), so one thread starts them all and lives as long as
// the nursery. Close it when no command runs any more.
type nursery struct {
	births chan birth
	ended  chan struct{}
}

type birth struct {
	cmd *exec.Cmd
	err chan<- error
}

func openNursery() *nursery {
	n := &nursery{make(chan birth), make(chan struct{})}
	go func() {
		defer close(n.ended)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for b := range n.births {
			b.err <- b.cmd.Start()
		}
	}()
	return n
}

func (n *nursery) close() {
	close(n.births)
	<-n.ended
}

// child is a command that runs.
type child struct {
	cmd      *exec.Cmd
	out, err *cli.Lines
}

// start runs a command with an empty stdin, in a process group of its own.
func (n *nursery) start(args []string, out, err io.Writer) (*child, error) {
	c := &child{exec.Command(args[0], args[1:]...), cli.NewLines(out), cli.NewLines(err)}
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.err
	c.cmd.WaitDelay = outputWait
	c.cmd.SysProcAttr = dieWithUs()
	started := make(chan error, 1)
	n.births <- birth{c.cmd, started}
	return c, <-started
}

// wait waits until the command has exited and gives its exit code, which is 128
// and the signal if one ended it; cut says so. When polite ends it is asked to
// end, and killed a little later; when hard ends it is killed.
func (c *child) wait(polite, hard context.Context) (code int, cut bool) {
	over := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-over:
			return
		case <-hard.Done():
		case <-polite.Done():
			terminate(c.cmd.Process)
			select {
			case <-over:
				return
			case <-hard.Done():
			case <-time.After(killAfter):
			}
		}
		kill(c.cmd.Process)
	}()
	err := c.cmd.Wait()
	close(over)
	<-watched
	c.out.Close()
	c.err.Close()
	code, cut = exitCode(c.cmd.ProcessState)
	var exit *exec.ExitError
	if err != nil && code == 0 && !errors.Is(err, exec.ErrWaitDelay) && !errors.As(err, &exit) {
		code = cli.Failed // its output could not be passed on
	}
	return code, cut
}
