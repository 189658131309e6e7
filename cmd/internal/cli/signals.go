package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// Signal is the cause of a context that a signal ended.
type Signal struct{ Number syscall.Signal }

func (s *Signal) Error() string {
	switch s.Number {
	case syscall.SIGINT:
		return "interrupted"
	case syscall.SIGTERM:
		return "asked to end"
	case syscall.SIGHUP:
		return "hung up"
	}
	return fmt.Sprintf("signal %d", int(s.Number))
}

// Code is the exit code of a process that the signal ends: 130 for SIGINT, 143
// for SIGTERM, 129 for SIGHUP.
func (s *Signal) Code() int { return 128 + int(s.Number) }

// Catch gives two contexts: soft ends with the first SIGINT, SIGTERM or SIGHUP,
// hard with the second, both with a *Signal as their cause. SIGPIPE is ignored
// meanwhile: who reads what is said here may go, and the write fails. Calling
// restore lets signals act again as they do by default, and ends both. The others are for
// somebody else.
func Catch(ctx context.Context, others ...os.Signal) (soft, hard context.Context, restore func()) {
	hard, endHard := context.WithCancelCause(ctx)
	soft, endSoft := context.WithCancelCause(hard)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) && !slices.Contains(others, os.Signal(syscall.SIGHUP)) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, end := range []context.CancelCauseFunc{endSoft, endHard} {
			select {
			case got := <-signals:
				end(&Signal{got.(syscall.Signal)})
			case <-done:
				return
			}
		}
	}()
	return soft, hard, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(done)
		<-ended
		endHard(nil)
		endSoft(nil)
	}
}

// Stopped gives the error of what a signal, the end of soft, cut off before that
// much had happened; err where it was no signal.
func Stopped(soft context.Context, err error, before string) error {
	var s *Signal
	if err == nil || !errors.As(context.Cause(soft), &s) {
		return err
	}
	return &Exit{s.Code(), fmt.Errorf("%w before %s", s, before)}
}

// DieOn ends the process, with the signal's exit code, if hard ends by a
// signal. It is for commands that have nothing to save by then.
func DieOn(hard context.Context) {
	context.AfterFunc(hard, func() {
		var s *Signal
		if errors.As(context.Cause(hard), &s) {
			os.Exit(s.Code())
		}
	})
}
