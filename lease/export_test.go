package lease

import "reflect"

// RestingIsUntouched says that nothing was written to what accounts at rest
// share.
func RestingIsUntouched() bool { return reflect.DeepEqual(resting, busy{}) }
