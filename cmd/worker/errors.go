package main

import (
	"errors"

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
