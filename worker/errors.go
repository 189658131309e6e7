package worker

import (
	"errors"
	"fmt"
	"strings"

	"ration/algo"
	"ration/lease"
)

// ErrLeaseLost is the cause with which a handle's context ends when the lease
// of its slot is lost: the slot may serve somebody else soon.
var ErrLeaseLost = errors.New("worker: the lease was lost")

// ErrClosed says that the worker has been closed.
var ErrClosed = fmt.Errorf("worker: closed: %w", lease.ErrStopped)

// RefusedError is a refusal as a caller sees it. It wraps the reason, one of
// the sentinels of package lease.
type RefusedError struct {
	lease.Refusal
}

// Never says that waiting does not help: the cost is above what the rule could
// ever grant, or the key is not in the policy.
func (e *RefusedError) Never() bool { return !passing(e.Reason) }

func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "worker: refused: %s", strings.TrimPrefix(e.Reason.Error(), "lease: "))
	if binds := e.Binds(); binds != "" {
		fmt.Fprintf(&b, " (%s)", binds)
	}
	if e.Class != "" {
		fmt.Fprintf(&b, ": class %s", e.Class)
	}
	if e.Wait > 0 && !e.Never() {
		fmt.Fprintf(&b, "; try again in %s", lease.Rounded(e.Wait))
	}
	return b.String()
}

// Unwrap gives the reason.
func (e *RefusedError) Unwrap() error { return e.Reason }

// passing says whether a refusal or failure may be otherwise a moment later.
func passing(err error) bool {
	for _, lasting := range []error{
		lease.ErrNever, lease.ErrUnknownKey, lease.ErrUnknownClass, lease.ErrBadKey, lease.ErrBadRequest,
		lease.ErrFormat, lease.ErrNeedsSlot, lease.ErrForbidden,
	} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return true
}

// badUnits is the error of a cost in units that is none.
type badUnits struct{ error }

func (e badUnits) Error() string {
	return "worker: " + strings.TrimPrefix(e.error.Error(), lease.ErrBadRequest.Error()+": ")
}

// Unwrap gives what lease says.
func (e badUnits) Unwrap() error { return e.error }

// senseless is the error of settling what no call can have used.
type senseless struct {
	used, cost int64
	unit       string // with a blank before it; empty for tokens
}

func (e senseless) Error() string {
	return fmt.Sprintf("worker: settled %d%s of a call that asked for %d; settle from 0 to %d: all that it asked for counts as spent", e.used, e.unit, e.cost, algo.MaxLimit)
}
