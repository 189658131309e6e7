package coordinator

import (
	"time"

	"ration/lease"
)

// Absence is how a leader stands to a mirror that it does not wait for, under a policy that
// says "mirror: available". The mirror is there, and then each turn is recorded before it
// is answered; or away, and then turns are answered without, and what they change is owed;
// or back, and then turns are recorded again, while what is owed is written back. Until
// nothing is owed promise 1 is off: a successor would not know all that was granted. It is
// pure, and not safe for concurrent use.
type Absence struct {
	away    bool
	behind  bool // away or back
	since   time.Time
	leases  int64
	granted lease.Amount
	unknown *lease.Turn // the last that was given to the mirror, which may have it or not
}

// Behind tells of a mirror that lacks some of what its leader has granted. While it does
// the leader's death means that this is forgotten.
type Behind struct {
	// Since is when the first turn was answered that is not recorded.
	Since time.Time
	// Away says that the mirror does not answer; else it is being caught up.
	Away bool
	// Leases and Granted are what was granted since without being recorded first.
	Leases  int64
	Granted lease.Amount
}

// Away says that turns are answered without the mirror.
func (a *Absence) Away() bool { return a.away }

// Behind tells how far the mirror is behind, and false where it is not.
func (a *Absence) Behind() (Behind, bool) {
	return Behind{a.since, a.away, a.leases, a.granted}, a.behind
}

// Late tells that the mirror was not waited for any longer at now, when it had been given a
// turn; nil is for another question. It says whether the mirror was not behind before.
func (a *Absence) Late(l *lease.Ledger, t *lease.Turn, now time.Time) (begins bool) {
	begins = !a.behind
	if begins {
		*a = Absence{since: now}
	}
	a.away, a.behind, a.unknown = true, true, t
	l.Owe()
	return begins
}

// Unrecorded tells that a turn is answered without the mirror.
func (a *Absence) Unrecorded(t *lease.Turn) {
	leases, granted := t.Granted()
	a.leases += leases
	a.granted.Tokens += granted.Tokens
	a.granted.Slots += granted.Slots
	units := append(lease.Units(nil), a.granted.Units...) // who was told of it has the old list
	for _, u := range granted.Units {
		units = units.Plus(u.Unit, u.N)
	}
	a.granted.Units = units
}

// Lost tells that the mirror will never have the turn that it was given last.
func (a *Absence) Lost(l *lease.Ledger) {
	if a.unknown != nil {
		l.OweTurn(a.unknown)
	}
	a.unknown = nil
}

// Back tells that a mirror that was away answers, and that what became of the turn that it
// was given last is known.
func (a *Absence) Back(l *lease.Ledger) {
	a.away, a.unknown = false, nil
	l.Repay()
}

// Recorded tells that a turn was recorded before it is answered. It says whether the mirror
// has caught up with it.
func (a *Absence) Recorded(t *lease.Turn) (ends bool) {
	ends = a.behind && !t.Behind
	a.behind = a.behind && !ends
	return ends
}
