package ration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ration/bus"
	"ration/lease"
	"ration/worker"
)

// Errors of a Limiter. Compare with errors.Is.
var (
	// ErrNeedsHandle says that the key has a concurrency rule: Wait cannot give
	// the slot back, Acquire can.
	ErrNeedsHandle = errors.New("ration: the key has a concurrency rule; use Acquire, which gives the slot back")
	// ErrRefused says that the contract refuses; the error is a *Refused.
	ErrRefused = errors.New("ration: refused")
	// ErrClosed says that the client has been closed.
	ErrClosed = errors.New("ration: the client is closed")
	// ErrLeaseLost is the cause with which a handle's context ends when the
	// lease of its slot is lost.
	ErrLeaseLost = worker.ErrLeaseLost
	// ErrNoCoordinator says that no coordinator answers. Beside a deadline it
	// says why the deadline passed.
	ErrNoCoordinator error = lease.ErrNoCoordinator
	// ErrPermission says that NATS forbids it: the credentials, or to publish or to
	// subscribe; the error names the subject.
	ErrPermission error = bus.ErrPermission
	// ErrPaused says that an operator has paused the key or a prefix of it; the error is a
	// *Refused, which says why.
	ErrPaused error = lease.ErrPaused
	// ErrBadKey says that a key is empty, too long or has an empty segment, or that
	// keys cannot be named together: they are of two tenants, or more than 8.
	ErrBadKey error = lease.ErrBadKey
)

// Refused is a refusal: nothing was taken. It is ErrRefused, and wraps the
// reason.
type Refused struct {
	// Key is the prefix that refuses, of whichever key, and Rule its rule, as the
	// policy writes it; empty if no one rule does.
	Key  string
	Rule string
	// Plan is the plan that has the rule; empty if the limit has it. Quota says that
	// the rule is a quota, fixed for a day or more, and not a rate.
	Plan  string
	Quota bool
	// Pause says since when, by whom and why an operator has paused Key; empty if none has.
	Pause string
	// Class is the class whose part of the line is full, or which no line has.
	Class string
	// Wait is how long to wait before it works, if nobody else takes; 0 if that
	// is not known.
	Wait time.Duration
	// Never says that waiting does not help.
	Never bool
	// Reason is what the coordinator said.
	Reason error
}

func (r *Refused) Error() string {
	text := "ration: refused: " + strings.TrimPrefix(r.Reason.Error(), "lease: ")
	switch {
	case r.Pause != "":
		text += fmt.Sprintf(": %q %s", r.Key, r.Pause)
	case errors.Is(r.Reason, lease.ErrUnknownKey):
		text += fmt.Sprintf(": %q", r.Key)
	case r.Rule != "":
		text += ": " + (&lease.Refusal{Rule: r.Rule, Plan: r.Plan, Quota: r.Quota, Key: lease.Key(r.Key)}).Binds()
	}
	if r.Class != "" {
		text += ": class " + r.Class
	}
	if r.Wait > 0 {
		text += fmt.Sprintf(": try again in %v", lease.Rounded(r.Wait))
	}
	return text
}

// Is says that every refusal is ErrRefused.
func (r *Refused) Is(target error) bool { return target == ErrRefused }

// Unwrap gives the reason.
func (r *Refused) Unwrap() error { return r.Reason }

// outward gives an error of package worker the form of this one.
func outward(err error) error {
	var refused *worker.RefusedError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, lease.ErrNeedsSlot):
		return ErrNeedsHandle
	case errors.Is(err, worker.ErrClosed):
		return ErrClosed
	case err == context.Canceled, err == context.DeadlineExceeded:
		return err
	case errors.As(err, &refused):
		r := &Refused{Key: string(refused.Key), Rule: refused.Rule, Plan: refused.Plan, Quota: refused.Quota, Class: refused.Class, Wait: refused.Wait, Never: refused.Never(), Reason: refused.Reason}
		if r.Never {
			r.Wait = 0
		}
		if refused.Pause != nil {
			r.Pause = refused.Pause.String()
		}
		return r
	}
	return named(err)
}

// within is the packages whose names errors from there begin with.
var within = []string{"ration: ", "worker: ", "coordinator: ", "bus: ", "lease: ", "algo: "}

// named puts this package's name before an error, in place of the names of those
// that it has come through.
func named(err error) error {
	text := err.Error()
	for i := 0; i < len(within); i++ {
		if rest, ok := strings.CutPrefix(text, within[i]); ok {
			text, i = rest, -1
		}
	}
	return &namedError{"ration: " + text, err}
}

type namedError struct {
	text string
	err  error
}

func (e *namedError) Error() string { return e.text }
func (e *namedError) Unwrap() error { return e.err }
