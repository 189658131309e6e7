package lease

import "time"

// Rounded gives a duration as people read it: at most three digits of it below a minute,
// and whole seconds above. It is rounded up, so that who waits for so long has waited
// long enough.
func Rounded(d time.Duration) time.Duration {
	if d < 0 {
		return -Rounded(-d)
	}
	grain := time.Duration(1)
	for ; d/grain >= 1000 && grain < 100*time.Millisecond; grain *= 10 {
	}
	if d > time.Minute {
		grain = time.Second
	}
	if over := d % grain; over > 0 && d <= 1<<63-1-grain {
		d += grain - over
	}
	return d
}
