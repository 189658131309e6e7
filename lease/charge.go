package lease

import (
	"fmt"
	"slices"
	"time"

	"ration/algo"
)

// ChargeMemory is for how long at least the id of a charge is remembered, also over a
// failover, unless there are more than a thousand of one prefix.
const ChargeMemory = 10 * time.Minute

// chargesMost is how many ids of charges are remembered at one prefix. Of more the oldest is
// forgotten: told again, it counts again, which is safe.
const chargesMost = 1024

// ChargeRecord is a charge that is remembered, so that it counts once: N of its unit, empty
// for calls, until an instant of ledger time; 0 in a Change for one that is not remembered any
// more. It stands with the longest limited prefix that it counts at.
type ChargeRecord struct {
	ID    string
	N     int64
	Unit  string
	Until algo.Instant
}

// chargeUse counts what was used elsewhere as spent, in every window of the key's prefixes
// that counts its unit. What is beyond a limit is debt, of up to one limit, repaid as spends
// come back.
func (l *Ledger) chargeUse(act Act) (Acted, error) {
	of := resource(act.Unit)
	if act.Unit == algo.Calls {
		of = tokens
	}
	named := slices.DeleteFunc(l.match(nil, []Key{act.Key}), func(a *account) bool { return !a.contract.named })
	if len(named) == 0 {
		return Acted{}, fmt.Errorf("%w: nothing of %.80q is counted", ErrUnknownKey, act.Key)
	}
	charged := slices.DeleteFunc(slices.Clone(named), func(a *account) bool { return !a.lists(of) })
	if len(charged) == 0 {
		return Acted{}, fmt.Errorf("%w: no rule of %.80q counts %s; %s", ErrBadRequest, act.Key, unitName(of), unitsCounted(named))
	}
	if refusal, crowded := l.tooManyKeys(charged, &tenant{name: act.Key.Tenant()}); crowded {
		return Acted{}, fmt.Errorf("%w (%s)", refusal.Reason, refusal.Rule)
	}
	last := charged[len(charged)-1]
	again, err := l.rememberCharge(last, act, of)
	if err != nil {
		return Acted{}, err
	}
	if !again {
		l.debit(charged, of, act.N, l.now.Add(-act.Age))
		l.stats.Charges++
	}
	acted := Acted{Again: again}
	for _, a := range charged {
		acted.Keys = append(acted.Keys, KeyStatus{Key: a.key, Windows: a.windowStatus(l.now)})
	}
	return acted, nil
}

// rememberCharge notes the id of a charge at the account, and says whether it was known.
func (l *Ledger) rememberCharge(a *account, act Act, of resource) (again bool, err error) {
	t := l.acted(a)
	if i := slices.IndexFunc(t.charges, func(c ChargeRecord) bool { return c.ID == act.ID }); i >= 0 {
		switch was := t.charges[i]; {
		case was.N != act.N:
			return false, fmt.Errorf("%w: the charge %q of %.80q was told before, of %d and not %d; give another id", ErrBadRequest, act.ID, a.key, was.N, act.N)
		case resource(was.Unit) != of:
			return false, fmt.Errorf("%w: the charge %q of %.80q was told before, of %s and not %s; give another id",
				ErrBadRequest, act.ID, a.key, unitName(resource(was.Unit)), unitName(of))
		}
		l.stats.ChargedAgain++
		return true, nil
	}
	if len(t.charges) >= chargesMost {
		l.forgetCharge(a)
	}
	c := ChargeRecord{ID: act.ID, N: act.N, Unit: string(of), Until: l.now.Add(ChargeMemory)}
	t.charges = append(t.charges, c)
	l.recordCharge(t, c)
	return false, nil
}

// forgetCharges lets go of the ids whose time is over.
func (l *Ledger) forgetCharges(a *account) {
	for a.acts != nil && len(a.acts.charges) > 0 && !l.now.Before(a.acts.charges[0].Until) {
		l.use(a)
		l.forgetCharge(a)
		l.touch(a)
	}
}

// forgetCharge lets go of the oldest id.
func (l *Ledger) forgetCharge(a *account) {
	t := a.acts
	gone := t.charges[0]
	t.charges = append([]ChargeRecord(nil), t.charges[1:]...) // a turn may have the list
	l.recordCharge(t, ChargeRecord{ID: gone.ID})
}

// recordCharge keeps for the mirror, if there is one, what has become of an id.
func (l *Ledger) recordCharge(t *acts, c ChargeRecord) {
	if !l.config.Unmirrored {
		t.charged = append(t.charged, c)
	}
}

// unitName is what people call a resource.
func unitName(of resource) string {
	if of == tokens {
		return "calls"
	}
	return "unit=" + string(of)
}

// unitsCounted says what rules of the accounts count, but for slots.
func unitsCounted(accounts []*account) string {
	var units []string
	for _, a := range accounts {
		for _, r := range a.contract.list() {
			if name := unitName(r.of); r.of != slots && !slices.Contains(units, name) {
				units = append(units, name)
			}
		}
	}
	if len(units) == 0 {
		return "they count nothing that is spent"
	}
	return fmt.Sprintf("they count %s", join(units))
}

func join(words []string) string {
	text := words[0]
	for i, w := range words[1:] {
		if i == len(words)-2 {
			text += " and " + w
		} else {
			text += ", " + w
		}
	}
	return text
}
