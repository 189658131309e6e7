package lease

import "errors"

// Error is a sentinel: a sentence for people and a code for the wire. Compare
// with errors.Is.
type Error struct {
	code string
	text string
}

func (e *Error) Error() string { return "lease: " + e.text }

// Code is the sentinel's name on the wire.
func (e *Error) Code() string { return e.code }

// Reasons a request is refused. They stand in Refusal.Reason.
var (
	// ErrLimit says that a rule has not enough free: waiting helps.
	ErrLimit = sentinel("limit", "the limit is reached")
	// ErrNever says that the cost is above what a rule could ever grant.
	ErrNever = sentinel("never", "the cost is above what the rule could ever grant")
	// ErrUnknownKey says that no prefix of the key is named in the policy.
	ErrUnknownKey = sentinel("unknown_key", "no limit of the policy names the key or a prefix of it")
	// ErrNeedsSlot says that a concurrency rule binds and no slot was asked
	// for or held: Wait and Allow cannot give a slot back, Acquire can.
	ErrNeedsSlot = sentinel("needs_slot", "the key has a concurrency rule; ask for a slot")
	// ErrUnknownClass says that no line of the policy has the class of the request.
	ErrUnknownClass = sentinel("unknown_class", "no line of the policy has the class")
	// ErrLineFull says that as many requests wait as may.
	ErrLineFull = sentinel("line_full", "the line is full")
	// ErrShed says that more wait than is well, or for longer: lower classes are refused first.
	ErrShed = sentinel("shed", "more wait than may, or for longer; lower classes are refused first")
	// ErrTooLate says that the wait is known to exceed the deadline.
	ErrTooLate = sentinel("too_late", "the wait would exceed the deadline")
	// ErrTimedOut says that the deadline passed while the request waited.
	ErrTimedOut = sentinel("timed_out", "the deadline passed in the line")
	// ErrPaused says that an operator has paused the key or a prefix of it: Refusal.Pause
	// says why. Waiting helps.
	ErrPaused = sentinel("paused", "it is paused")
	// ErrTooManyKeys says that as many keys are in use as the coordinator keeps;
	// those go on. Refusal.Rule has the bound, here and below.
	ErrTooManyKeys = sentinel("too_many_keys", "as many keys are in use as may be; use fewer, or wait until some are at rest")
	// ErrTooManyHolders says the same of holders: every restart is a new one.
	ErrTooManyHolders = sentinel("too_many_holders", "as many holders are known as may be; start fewer, or wait until some are forgotten")
	// ErrTooManyLeases says that as many leases live as may.
	ErrTooManyLeases = sentinel("too_many_leases", "as many leases live as may; return some, or ask for more in one")
	// ErrTooManyWaiters says that as many requests wait as may, on all keys.
	ErrTooManyWaiters = sentinel("too_many_waiters", "as many requests wait as may; ask for fewer at a time")
)

// Failures: no answer could be had.
var (
	// ErrNoCoordinator says that nobody leads: no coordinator answered.
	ErrNoCoordinator = sentinel("no_coordinator", "no coordinator answers")
	// ErrForbidden says that what lies between forbids to ask; waiting does not help.
	ErrForbidden = sentinel("forbidden", "it is forbidden to ask")
	// ErrStopped says that the other side is shutting down.
	ErrStopped = sentinel("stopped", "it has been stopped")
	// ErrFenced says that another epoch has the seat: nothing was recorded, and
	// nothing that waited for it may be answered.
	ErrFenced = sentinel("fenced", "another leader has the seat")
	// ErrGap says that the mirror lacks turns before the one it was given.
	ErrGap = sentinel("gap", "the mirror lacks earlier turns")
	// ErrLost says that the mirror has forgotten what it had.
	ErrLost = sentinel("lost", "the mirror has lost what it had")
	// ErrPolicy says that the leader goes by a policy that is in force no more.
	ErrPolicy = sentinel("policy", "another policy is in force")
	// ErrMoved says that the seat is not as it was seen: its leader lives, or another
	// has won it.
	ErrMoved = sentinel("moved", "the seat is not as it was seen")
	// ErrPartitions says that two coordinators divide the cell differently.
	ErrPartitions = sentinel("partitions", "the cell is divided into another number of partitions")
	// ErrPartition says that a message went to another partition than its tenant's.
	ErrPartition = sentinel("wrong_partition", "wrong partition")
	// ErrRival says that coordinators of one cell have different mirrors: each would grant
	// the whole limit.
	ErrRival = sentinel("rival", "another coordinator of the cell has another mirror")
	// ErrMirrorAway says that nothing can be recorded now, and that nothing was taken.
	ErrMirrorAway = sentinel("mirror_away", "the mirror is away; ask again when it is back")
	// ErrSuperseded says that this copy of a request is not answered: a newer
	// one took its place, or nobody waits for it any more.
	ErrSuperseded = sentinel("superseded", "a newer copy took its place, or nobody waits for it")
	// ErrBadKey says that a key is empty, too long or has an empty segment.
	ErrBadKey = sentinel("bad_key", "bad key")
	// ErrBadRequest says that a message does not make sense.
	ErrBadRequest = sentinel("bad_request", "bad request")
	// ErrFormat says that the two sides speak different format numbers.
	ErrFormat = sentinel("format", "the format number is not understood")
	// ErrInternal says that the coordinator failed; its log says why.
	ErrInternal = sentinel("internal", "the coordinator failed")
)

var sentinels = map[string]*Error{}

func sentinel(code, text string) *Error {
	e := &Error{code, text}
	sentinels[code] = e
	return e
}

// Code gives the wire code of err: that of the sentinel it wraps, or
// "internal".
func Code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.code
	}
	return ErrInternal.code
}

// FromCode gives the sentinel with that wire code, or ErrInternal if there is
// none.
func FromCode(code string) *Error {
	if e, ok := sentinels[code]; ok {
		return e
	}
	return ErrInternal
}
