//go:build !linux

package worker

import "time"

// bootTime stands in for the boot-time clock by the wall clock, which counts on
// during a suspend as well. A wall clock set forward looks like a suspend, and
// costs the leases; one set back is not followed.
func bootTime() (time.Duration, bool) { return time.Duration(time.Now().UnixNano()), true }
