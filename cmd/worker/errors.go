package main

import (
	"errors"
	"fmt"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/lease"
)

// late says that err means that the wait was over, or known to be too long.
func late(err error) bool {
	return errors.Is(err, errLate) || cli.Code(err) == cli.TimedOut
}

// lasting says that no later call can fare better.
func lasting(err error) bool {
	return cli.Never(err) || errors.Is(err, bus.ErrPermission) ||
		errors.Is(err, lease.ErrBadRequest) || errors.Is(err, lease.ErrFormat)
}

// refused says what to do about a refusal that no waiting changes.
func refused(err error) error {
	switch {
	case errors.Is(err, lease.ErrUnknownKey):
		return fmt.Errorf("%w; name another --key, or add a limit for it to the policy", err)
	case errors.Is(err, lease.ErrNever):
		return fmt.Errorf("%w; lower --cost, or raise the limit in the policy", err)
	}
	return err
}
