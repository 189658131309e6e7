package lease

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"ration/algo"
)

// Verb is what an operator does to a key.
type Verb string

const (
	// VerbPause lets nothing of a prefix be granted, until it is resumed or the time is over.
	VerbPause Verb = "pause"
	// VerbResume ends the pause of a prefix.
	VerbResume Verb = "resume"
	// VerbReset forgets what was spent of a prefix and below, never what is held.
	VerbReset Verb = "reset"
	// VerbCharge counts as spent what was used elsewhere, in every window of a key.
	VerbCharge Verb = "charge"
)

// Verbs are all there are.
var Verbs = [...]Verb{VerbPause, VerbResume, VerbReset, VerbCharge}

const (
	// MaxReason is the longest reason of an act, in bytes.
	MaxReason = 256
	// MaxName is the longest name of who acts, and the longest id of a charge, in bytes.
	MaxName = 64
)

// Act is what an operator does to a key, and why.
type Act struct {
	Verb Verb
	Key  Key
	// Reason is why, up to MaxReason bytes, and By who, up to MaxName: both UTF-8 without
	// control characters, and both may be empty.
	Reason string
	By     string
	// For is how long a pause lasts; 0 is until it is resumed.
	For time.Duration
	// ID names a charge, so that it counts once however often it is told: 1 to MaxName
	// of letters, digits and "-_.:". It is remembered for ChargeMemory at least, unless
	// more than a thousand others of the prefix come meanwhile.
	ID string
	// N is how much a charge counts, 1 to algo.MaxLimit, and Unit of what; empty for calls.
	N    int64
	Unit string
	// Age is how long ago it was spent, up to algo.MaxPeriod.
	Age time.Duration
}

// Acted is what an act has done.
type Acted struct {
	// Pause is that which is in force from now on, or which has ended by a resume; nil if
	// there was none.
	Pause *Pause
	// Leases is how many live below the prefix that was paused. They were asked to give back
	// what is idle, and end in their time.
	Leases int
	// Keys are the limited prefixes that a charge counts in, with their windows as they are
	// now, and nothing else: an answer is as short however many hold something.
	Keys []KeyStatus
	// Again says that the charge had been counted before.
	Again bool
	// Reset is of how many prefixes what was spent was forgotten, and More that there are
	// further ones: the same act goes on.
	Reset int
	More  bool
}

// Validate says what is wrong with an act, wrapping ErrBadKey or ErrBadRequest, or nil.
func (a *Act) Validate() error {
	if _, err := ParseKey(string(a.Key)); err != nil {
		return err
	}
	if err := validText("reason", a.Reason, MaxReason); err != nil {
		return err
	}
	if err := validText("name of who acts", a.By, MaxName); err != nil {
		return err
	}
	if a.Verb != VerbPause && a.For != 0 {
		return fmt.Errorf("%w: only a pause has a time to last", ErrBadRequest)
	}
	if a.Verb != VerbCharge && (a.ID != "" || a.N != 0 || a.Unit != "" || a.Age != 0) {
		return fmt.Errorf("%w: only a charge has an id, a number, a unit or an age", ErrBadRequest)
	}
	switch a.Verb {
	case VerbPause:
		if a.For < 0 {
			return fmt.Errorf("%w: a pause for %v has no time to last; give more than 0, or none for a pause until it is resumed", ErrBadRequest, a.For)
		}
	case VerbResume, VerbReset:
	case VerbCharge:
		return a.validCharge()
	default:
		return fmt.Errorf("%w: %.40q is not pause, resume, reset or charge", ErrBadRequest, string(a.Verb))
	}
	return nil
}

func (a *Act) validCharge() error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
	switch {
	case a.ID == "" || len(a.ID) > MaxName || strings.Trim(a.ID, letters) != "":
		return fmt.Errorf("%w: the id %.80q of a charge is not 1 to %d letters, digits, dashes, underscores, dots and colons", ErrBadRequest, a.ID, MaxName)
	case a.N < 1 || a.N > algo.MaxLimit:
		return fmt.Errorf("%w: a charge of %d is not within 1 to %d; nothing is given back by charging", ErrBadRequest, a.N, algo.MaxLimit)
	case a.Age < 0 || a.Age > algo.MaxPeriod:
		return fmt.Errorf("%w: an age of %v is not within 0 to %v", ErrBadRequest, a.Age, algo.MaxPeriod)
	case a.Unit != "" && algo.UnitFault(a.Unit) != "":
		return fmt.Errorf("%w: %s; %s", ErrBadRequest, algo.UnitFault(a.Unit), algo.UnitRemedy)
	}
	return nil
}

// validText checks what people are shown.
func validText(what, text string, most int) error {
	switch {
	case len(text) > most:
		return fmt.Errorf("%w: the %s has %d bytes, at most %d are allowed", ErrBadRequest, what, len(text), most)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: the %s is not UTF-8", ErrBadRequest, what)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }):
		return fmt.Errorf("%w: the %s has a control character, such as a new line", ErrBadRequest, what)
	}
	return nil
}

// Act does what an operator asks, between two turns. What follows for those who wait
// comes in the next one, which records it too. wall is the leader's wall clock at now. Of
// an act that Validate refuses nothing is defined. Keys that Unloaded names of its key must
// have been restored before; a reset is of what is in memory, so all that the mirror has is
// to be.
//
// An error says that nothing was done, and wraps ErrUnknownKey, ErrBadRequest or
// ErrTooManyKeys.
func (l *Ledger) Act(now, wall algo.Instant, a Act) (Acted, error) {
	l.now = max(l.now, now)
	switch a.Verb {
	case VerbPause:
		return l.pause(a, wall)
	case VerbResume:
		return l.resume(a), nil
	case VerbReset:
		return l.reset(a), nil
	}
	return l.chargeUse(a)
}

// acts is what operators' acts have left at an account.
type acts struct {
	pause   *Pause // never changed, but replaced
	parked  parked // who waits for its end
	charges []ChargeRecord
	// pardoned says that the prefix was reset while the mirror had lost records: where it
	// comes to rest, what it had then must not count as spent again.
	pardoned bool

	// What the mirror does not have yet.
	paused  bool // pause is another
	charged []ChargeRecord
}

// acted gives the account room for what acts leave.
func (l *Ledger) acted(a *account) *acts {
	l.use(a)
	if a.acts == nil {
		a.acts = new(acts)
	}
	return a.acts
}

// tidy forgets what no longer matters of the acts at an account.
func (l *Ledger) tidy(a *account) {
	t := a.acts
	if t == nil {
		return
	}
	t.pardoned = t.pardoned && l.lost.Epoch != 0
	if t.pause == nil && t.parked.n == 0 && len(t.charges) == 0 && !t.pardoned {
		a.acts = nil
	}
}

// change adds to a change what the acts at the account have changed.
func (t *acts) change(c *Change) {
	if t == nil {
		return
	}
	if c.Whole {
		c.Paused, c.Pause, c.Charges = t.pause != nil, t.pause, t.charges[:len(t.charges):len(t.charges)]
	} else {
		c.Paused, c.Pause, c.Charges = t.paused, t.pause, t.charged
	}
	t.paused, t.charged = false, nil
}

// keeps is for how long, at least, what acts have left can matter.
func (t *acts) keeps(now algo.Instant) (d time.Duration) {
	if t == nil {
		return 0
	}
	if n := len(t.charges); n > 0 {
		d = t.charges[n-1].Until.Sub(now)
	}
	if t.pause != nil {
		d = max(d, t.pause.left(now))
	}
	return d
}
