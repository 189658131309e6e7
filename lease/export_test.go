package lease

import "reflect"

// RestingIsUntouched says that nothing was written to what accounts at rest
// share.
func RestingIsUntouched() bool { return reflect.DeepEqual(resting, busy{}) }

// Apart is by how much guards grow where clocks differ by d, if it was so much.
var Apart = apart

// ChargesToRecord is how many charges, and ends of them, wait to be recorded at a prefix.
func (l *Ledger) ChargesToRecord(prefix Key) int {
	a, ok := l.accounts.Get(prefix)
	if !ok || a.acts == nil {
		return 0
	}
	return len(a.acts.charged)
}
