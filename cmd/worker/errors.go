package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ration"
	"ration/algo"
	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/lease"
)

// errLate says that a call had no turn within --wait, or that this is known before.
var errLate = errors.New("no turn within --wait")

// tightness is an errLate of which the rule is known, and when it has a turn: at an
// instant, which is a wait later.
type tightness struct {
	rule, key string
	at        time.Time
	wait      time.Duration
}

func (t *tightness) Error() string {
	return fmt.Sprintf("%v: rule %q of %q has none for %v", errLate, t.rule, t.key, lease.Rounded(t.wait))
}

func (t *tightness) Unwrap() error { return errLate }

// lateness gives an errLate in place of an error that means so, be it told by a
// clock here or by the coordinator. It names the trouble behind it, if any.
func lateness(err error) error {
	var refused *ration.Refused
	switch {
	case errors.Is(err, lease.ErrTooLate) && errors.As(err, &refused) && refused.Wait > 0:
		return &tightness{refused.Rule, refused.Key, time.Now().Add(refused.Wait), refused.Wait}
	case errors.Is(err, ration.ErrPaused):
		return fmt.Errorf("%w: %w", errLate, err)
	case errors.Is(err, ration.ErrNoCoordinator):
		return fmt.Errorf("%w: %w", errLate, ration.ErrNoCoordinator)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, lease.ErrTooLate), errors.Is(err, lease.ErrTimedOut):
		return errLate
	}
	return err
}

// lasting says that no later call can fare better.
func lasting(err error) bool {
	return cli.Never(err) || errors.Is(err, bus.ErrPermission) ||
		errors.Is(err, lease.ErrBadRequest) || errors.Is(err, lease.ErrFormat)
}

// refused says what to do about a refusal that no waiting changes.
func refused(err error) error {
	var r *ration.Refused
	switch {
	case errors.Is(err, lease.ErrUnknownKey):
		return fmt.Errorf("%w; name another --key, or add a limit for it to the policy", err)
	case errors.Is(err, lease.ErrUnknownClass):
		return fmt.Errorf("%w; name another --class, or give one to a line of the policy", err)
	case errors.Is(err, lease.ErrNever) && errors.As(err, &r) && empty(r.Rule):
		return &cli.Exit{Code: cli.Refused, Err: fmt.Errorf("refused: the rule %q of %q refuses always; change it in the policy", r.Rule, r.Key)}
	case errors.Is(err, lease.ErrNever):
		flag := "--cost"
		if errors.As(err, &r) {
			flag = costFlag(r.Rule)
		}
		return fmt.Errorf("%w; lower %s, or raise the limit in the policy", err, flag)
	}
	return cli.Foreign(err)
}

// empty says that a rule, as its text, refuses whatever the cost.
func empty(rule string) bool {
	r, err := algo.ParseRule(rule)
	if err != nil {
		return false // a rule that this version cannot read
	}
	switch r.Kind {
	case algo.Unlimited:
		return false
	case algo.Bucket:
		return r.Burst == 0
	}
	return r.Limit == 0
}
