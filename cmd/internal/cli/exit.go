package cli

import (
	"context"
	"errors"
	"fmt"

	"ration/lease"
)

// Exit codes. Scripts rely on them.
const (
	Done          = 0
	Failed        = 1
	Misused       = 2
	Refused       = 3
	TimedOut      = 4
	NoCoordinator = 5
)

// Codes is the paragraph of the help that explains the exit codes.
const Codes = `Exit codes:

  0  done
  1  failed: a command, a call, a bad file, a port in use, not ready
  2  misused: a flag or argument makes no sense
  3  refused: the policy never grants this
  4  the wait for a turn was over
  5  no coordinator, or no NATS server, answered within --connect-wait
  129, 130, 143  ended by SIGHUP or SIGINT, or by SIGTERM before all was done
`

// Exit is an error with the exit code that it calls for. An Exit without an
// error has been explained already.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Exit) Unwrap() error { return e.Err }

// Misuse makes an error of misuse.
func Misuse(format string, args ...any) error {
	return &Exit{Misused, fmt.Errorf(format, args...)}
}

// Code gives the exit code that err calls for, Done if it is nil.
func Code(err error) int {
	var exit *Exit
	switch {
	case err == nil:
		return Done
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, lease.ErrNoCoordinator):
		return NoCoordinator
	case errors.Is(err, lease.ErrBadKey):
		return Misused
	case Never(err):
		return Refused
	case errors.Is(err, lease.ErrTimedOut), errors.Is(err, lease.ErrTooLate), errors.Is(err, lease.ErrPaused), errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	}
	return Failed
}

// Never says that err is a refusal which no waiting changes.
func Never(err error) bool {
	return errors.Is(err, lease.ErrNever) || errors.Is(err, lease.ErrUnknownKey) || errors.Is(err, lease.ErrUnknownClass)
}

// Nobody is the error of a cell that nobody leads on the NATS system at where.
func Nobody(where, cell string) error {
	return &Exit{NoCoordinator, fmt.Errorf("NATS at %s has no coordinator in cell %s; start one, or name another place with --nats or --cell", where, cell)}
}

// Foreign says what to do where the other side speaks another format.
func Foreign(err error) error {
	if !errors.Is(err, lease.ErrFormat) {
		return err
	}
	return fmt.Errorf("%w; run the newer release on both sides, coordinators first", err)
}

// explained says that err has nothing left to say.
func explained(err error) bool {
	var exit *Exit
	return errors.As(err, &exit) && exit.Err == nil
}
