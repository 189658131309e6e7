package harness

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Command is what to start.
type Command struct {
	Name  string // in messages; the base of Path if empty
	Path  string
	Args  []string
	Env   []string  // besides the caller's own, without its RATION_* and NATS_*
	Dir   string    // the caller's own if empty
	Stdin io.Reader // an *os.File is handed over as it is; nothing to read if nil
}

// Process is a process that was started. What it writes is captured.
type Process struct {
	Name   string
	cmd    *exec.Cmd
	stdout *capture
	stderr *capture
	ended  chan struct{}
}

// Start starts a process. Close has to be called on it in the end.
func Start(c Command) (*Process, error) {
	p := &Process{Name: c.Name, cmd: exec.Command(c.Path, c.Args...), ended: make(chan struct{})}
	if p.Name == "" {
		p.Name = c.Path[strings.LastIndexByte(c.Path, '/')+1:]
	}
	var err error
	if p.stdout, err = newCapture(); err != nil {
		return nil, fmt.Errorf("harness: starting %s: %w", p.Name, err)
	}
	if p.stderr, err = newCapture(); err != nil {
		p.stdout.file.Close()
		return nil, fmt.Errorf("harness: starting %s: %w", p.Name, err)
	}
	p.cmd.Dir, p.cmd.Stdin = c.Dir, c.Stdin
	p.cmd.Env = append(environ(), c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout.file, p.stderr.file
	p.cmd.SysProcAttr = ownGroup()
	p.cmd.WaitDelay = time.Second // for Stdin that is no file
	if err := p.start(); err != nil {
		p.stdout.close()
		p.stderr.close()
		return nil, fmt.Errorf("harness: starting %s: %w", p.Name, err)
	}
	return p, nil
}

// start starts the process and waits for its end on one thread, which it keeps:
// Linux kills the process when the thread that started it ends, not when the
// whole program does.
func (p *Process) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.cmd.Wait()
			close(p.ended)
		}
	}()
	return <-started
}

// environ is the caller's environment without what would set flags.
func environ() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "RATION_") && !strings.HasPrefix(e, "NATS_") {
			env = append(env, e)
		}
	}
	return env
}

// PID is the process's number, also after its end.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal to the process alone, not to its children. After its
// end it gives os.ErrProcessDone.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Kill is kill -9 of the process alone, and waits until it is gone. What its
// children do then is for the caller to see; Close ends those of its group.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	if err == nil {
		<-p.ended
	}
	return err
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait waits for the process to end and gives its exit code, -1 if a signal
// ended it. Its error is that of ctx, with what the process has written.
func (p *Process) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("harness: waiting for the end of %s: %w\n%s", p.Name, context.Cause(ctx), p.Output())
	}
}

// Stop asks the process to end (SIGTERM), waits, and gives its exit code as
// Wait does. A stopped process is woken first.
func (p *Process) Stop(ctx context.Context) (int, error) {
	p.Signal(syscall.SIGCONT) // of a process that has ended, Wait tells
	p.Signal(syscall.SIGTERM)
	return p.Wait(ctx)
}

// Close kills the process and those of its children that stayed in its group,
// and waits until it is gone. What it wrote can still be read. Calling it again
// does nothing.
func (p *Process) Close() {
	// The number of a group is not used again while one of it lives, so this
	// hits nobody else even if the process itself ended long ago.
	syscall.Kill(-p.PID(), syscall.SIGKILL)
	<-p.ended
	p.stdout.close()
	p.stderr.close()
}

// Stdout is what the process has written to its standard output so far.
func (p *Process) Stdout() string { return p.stdout.String() }

// Stderr is what the process has written to its standard error so far.
func (p *Process) Stderr() string { return p.stderr.String() }

// Output is both, each line with the process's name before it, to be shown when
// something has gone wrong.
func (p *Process) Output() string {
	var out strings.Builder
	for _, stream := range []struct{ name, text string }{{"out", p.Stdout()}, {"err", p.Stderr()}} {
		for line := range strings.Lines(stream.text) {
			fmt.Fprintf(&out, "%s %s| %s\n", p.Name, stream.name, strings.TrimRight(line, "\n"))
		}
	}
	return out.String()
}

// Line waits for a whole line, on either stream, that contains text, and gives
// it without its newline. It is an error if the process ends without one.
func (p *Process) Line(ctx context.Context, text string) (string, error) {
	var found string
	err := p.until(ctx, fmt.Sprintf("a line with %q", text), func() error {
		for line := range strings.Lines(p.Stderr() + p.Stdout()) {
			if strings.HasSuffix(line, "\n") && strings.Contains(line, text) {
				found = strings.TrimSuffix(line, "\n")
				return nil
			}
		}
		return fmt.Errorf("there is none yet")
	})
	return found, err
}

// until is Until for a condition that only a living process can bring about.
func (p *Process) until(ctx context.Context, what string, holds func() error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-p.ended:
			cancel(fmt.Errorf("%s ended: %v", p.Name, p.cmd.ProcessState))
		case <-ctx.Done():
		}
	}()
	err := Until(ctx, what+" of "+p.Name, holds)
	cancel(nil)
	<-watched
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.Output())
	}
	return nil
}
