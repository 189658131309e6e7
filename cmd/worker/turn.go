package main

import (
	"context"
	"errors"
	"time"

	"ration"
)

// turn waits for the right to make one call: until soft ends, or for at most
// wait if that is above 0. The handle it gives outlives both; its context ends
// with hard, or when its lease is lost. An error is errLate if there was no turn
// within it, or is known to be none.
func turn(soft, hard context.Context, limiter *ration.Limiter, cost int64, units ration.Units, wait time.Duration) (*ration.Handle, error) {
	asking, stop := context.WithCancelCause(hard)
	stopSoft := context.AfterFunc(soft, func() { stop(context.Cause(soft)) })
	var asked context.Context = asking
	stopLate := func() bool { return true }
	if wait > 0 {
		asked = until{asking, time.Now().Add(wait)}
		stopLate = time.AfterFunc(wait, func() { stop(errLate) }).Stop
	}
	h, err := limiter.Acquire(asked, cost, units)
	// Whoever stopped the wait before it was over, here or there, decides.
	soon := stopSoft() && stopLate()
	switch {
	case err == nil && soon:
		context.AfterFunc(h.Context(), func() { stop(nil) }) // nothing is left behind
		return h, nil
	case err == nil: // what ends asking has begun, and need not have ended it yet
		h.Cancel()
		if err = context.Cause(soft); err == nil {
			err = errLate
		}
	}
	defer stop(nil)
	if cause := context.Cause(asking); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	if wait > 0 {
		err = lateness(err)
	}
	return nil, err
}

// await is turn for the run, and counts the wait. Of a call that a clock here ended
// it names the rule that had no turn for another, if that has none yet.
func (v *shift) await(taking context.Context) (*ration.Handle, error) {
	v.tally.note(func(t *tallied) { t.waiting++ })
	began := time.Now()
	h, err := turn(taking, v.hard, v.limiter, v.cost, v.units, v.wait)
	v.tally.note(func(t *tallied) {
		t.waiting--
		if err != nil {
			t.waited += time.Since(began)
		}
	})
	var known *tightness
	switch {
	case errors.As(err, &known):
		v.tight.Store(known)
	case err == errLate:
		if known = v.tight.Load(); known != nil && time.Until(known.at) > 0 {
			err = &tightness{known.rule, known.key, known.at, time.Until(known.at)}
		}
	}
	return h, err
}

// until is a context that tells when it will end, so that a wait that is known
// to be too long need not begin. The call that follows is not bound by it.
type until struct {
	context.Context
	at time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.at, true }
