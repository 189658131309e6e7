package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// ErrPermission says that NATS forbids what was tried: the credentials, or the
// right to publish or subscribe. The error that wraps it names the subject. It is a
// lease.ErrForbidden.
var ErrPermission error = permissionError{}

type permissionError struct{}

func (permissionError) Error() string { return "bus: NATS forbids it" }
func (permissionError) Unwrap() error { return lease.ErrForbidden }

// SettingError is an error that another setting mends. Its text names what a
// program sets; Flags is the remedy in the words of a command.
type SettingError struct {
	Err    error
	Remedy string
	Flags  string
}

func (e *SettingError) Error() string { return e.Err.Error() + "; " + e.Remedy }
func (e *SettingError) Unwrap() error { return e.Err }

// toldError is an error that the coordinator answered: the sentinel of its code
// and its own words.
type toldError struct {
	sentinel *lease.Error
	text     string
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.sentinel }

// partitionError says that a message came to another partition than its tenant's, and
// how many there are, so that its sender learns it.
type partitionError struct {
	partitions int
	text       string
}

func (e *partitionError) Error() string { return lease.ErrPartition.Error() + ": " + e.text }
func (e *partitionError) Unwrap() error { return lease.ErrPartition }

// said gives the error of a code and a message from the wire. A code that this
// side does not know counts as lease.ErrInternal; its words are kept.
func said(code, message string) error {
	sentinel := lease.FromCode(code)
	switch {
	case sentinel.Code() != code:
		return &toldError{sentinel, fmt.Sprintf("%v (%q): %s", sentinel, code, message)}
	case message == "" || message == sentinel.Error():
		return sentinel
	case !strings.Contains(message, sentinel.Error()):
		message = sentinel.Error() + ": " + message
	}
	return &toldError{sentinel, message}
}

// encodeError writes err as an error reply. It has this form in every format.
func encodeError(err error) []byte {
	w := &writer{}
	w.object("", func() {
		w.version()
		w.failure(err)
	})
	return w.b
}

func (w *writer) failure(err error) {
	w.object("error", func() {
		w.text("code", lease.Code(err))
		w.text("message", err.Error())
		var elsewhere *partitionError
		if errors.As(err, &elsewhere) {
			w.number("partitions", int64(elsewhere.partitions))
		}
	})
}

// answered checks what comes back: the error that was told, if it is one, then
// the format number.
func answered(body []byte) error {
	if err := told(body); err != nil {
		return err
	}
	return checkFormat(body)
}

// told gives the error that body tells, as a *toldError, if it is an error reply.
func told(body []byte) error {
	if err := document(body); err != nil {
		return err
	}
	var failure error
	err := object(body, func(name string, raw []byte) (bool, error) {
		if name != "error" {
			return false, nil
		}
		var code, message string
		var partitions int64
		err := object(raw, func(name string, raw []byte) (bool, error) {
			switch name {
			case "code":
				return true, readText(raw, &code)
			case "message":
				return true, readText(raw, &message)
			case "partitions":
				return true, readNumber(raw, &partitions)
			}
			return false, nil
		}, "code")
		failure = said(code, message)
		if sentinel, ok := failure.(*lease.Error); ok {
			failure = &toldError{sentinel, sentinel.Error()}
		}
		if partitions > 0 && errors.Is(failure, lease.ErrPartition) {
			failure = &partitionError{int(min(partitions, MaxPartitions)), message}
		}
		return true, err
	})
	if err != nil {
		return err
	}
	return failure
}

// errNobody says that nobody serves a subject.
var errNobody = errors.New("bus: nobody serves it")

type nobodyError struct{ subject string }

func (e *nobodyError) Error() string {
	return fmt.Sprintf("%v: nobody serves %s", lease.ErrNoCoordinator, e.subject)
}
func (e *nobodyError) Unwrap() []error { return []error{lease.ErrNoCoordinator, errNobody} }

// unanswered says what a failure of NATS means to who asked.
func unanswered(err error, subject string) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return &nobodyError{subject}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("bus: waiting for an answer on %s: %w", subject, err)
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: it is larger than the NATS server's max_payload", lease.ErrBadRequest)
	}
	return fmt.Errorf("%w: asking on %s: %w", lease.ErrNoCoordinator, subject, err)
}
