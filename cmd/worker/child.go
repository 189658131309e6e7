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

// nursery starts commands and sees to it that none outlives this process.
//
// The kernel kills a command when the thread that started it ends (dieWithUs), so
// one thread starts them all and lives as long as the nursery. What a command has
// started itself is killed by a warden. Close the nursery when no command runs
// any more.
type nursery struct {
	births chan birth
	deaths chan int
	ended  chan struct{}
}

type birth struct {
	cmd *exec.Cmd
	err chan<- error
}

func openNursery() (*nursery, error) {
	w, err := hireWarden()
	if err != nil {
		return nil, err
	}
	n := &nursery{make(chan birth), make(chan int), make(chan struct{})}
	go func() {
		defer close(n.ended)
		defer w.dismiss()
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for {
			select {
			case b, ok := <-n.births:
				if !ok {
					return
				}
				b.cmd.Env = w.environ()
				err := b.cmd.Start()
				if err == nil {
					w.begun(b.cmd.Process.Pid)
				}
				b.err <- err
			case group := <-n.deaths:
				w.ended(group)
			}
		}
	}()
	return n, nil
}

func (n *nursery) close() {
	close(n.births)
	<-n.ended
}

// child is a command that runs.
type child struct {
	nursery  *nursery
	cmd      *exec.Cmd
	out, err *cli.Lines
}

// start runs a command with an empty stdin, in a process group of its own.
func (n *nursery) start(args []string, out, err io.Writer) (*child, error) {
	c := &child{n, exec.Command(args[0], args[1:]...), cli.NewLines(out), cli.NewLines(err)}
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.err
	c.cmd.WaitDelay = outputWait
	c.cmd.SysProcAttr = dieWithUs()
	started := make(chan error, 1)
	n.births <- birth{c.cmd, started}
	return c, <-started
}

// wait waits until the command has exited and gives its exit code, which is 128
// and the signal if one ended it; cut says so. When polite ends it is asked to
// end, and killed a little later; when hard ends it is killed. unsaid says why its
// output could not be passed on.
func (c *child) wait(polite, hard context.Context) (code int, cut bool, unsaid error) {
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
	unsaid = c.cmd.Wait()
	c.nursery.deaths <- c.cmd.Process.Pid
	close(over)
	<-watched
	code, cut = exitCode(c.cmd.ProcessState)
	var exit *exec.ExitError
	if errors.Is(unsaid, exec.ErrWaitDelay) || errors.As(unsaid, &exit) {
		unsaid = nil // the code says it, or somebody else still has the output
	}
	if unsaid = errors.Join(unsaid, c.out.Close(), c.err.Close()); unsaid != nil && code == 0 {
		code = cli.Failed
	}
	return code, cut, unsaid
}
