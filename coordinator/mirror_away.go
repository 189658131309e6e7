package coordinator

// MirrorAway says that the mirror does not answer, or is slow: then turns are not recorded,
// and under a policy that says "mirror: strict" the turn loop waits and answers nothing. It
// may be called from any goroutine.
func (l *Leader) MirrorAway() bool { return l.away.is.Load() }
