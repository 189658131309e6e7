package worker

import (
	"sync"
	"time"
)

// alarm calls ring at the earliest instant it was set to, in a goroutine of the
// scope. Setting it to a later instant than it has changes nothing: ring looks
// for itself whether there is anything to do.
type alarm struct {
	scope *scope
	clock *clock
	late  func(by time.Duration) // told before it rings
	ring  func()

	mu    sync.Mutex
	timer *time.Timer
	at    time.Duration // Forever: not set
}

func newAlarm(s *scope, c *clock, late func(time.Duration), ring func()) *alarm {
	return &alarm{scope: s, clock: c, late: late, ring: ring, at: Forever}
}

// set makes it ring by an instant.
func (a *alarm) set(at time.Duration) {
	if at == Forever {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if at >= a.at {
		return
	}
	a.at = at
	wait := max(0, at-a.clock.now())
	if a.timer == nil {
		a.timer = time.AfterFunc(wait, a.fire)
		return
	}
	a.timer.Reset(wait)
}

func (a *alarm) fire() {
	a.mu.Lock()
	at := a.at
	if at == -Forever || at == Forever {
		a.mu.Unlock()
		return // stopped, or rung already
	}
	a.at = Forever
	a.mu.Unlock()
	if a.scope.enter() {
		defer a.scope.leave()
		a.late(a.clock.now() - at)
		a.ring()
	}
}

// stop keeps it from ringing ever again.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = -Forever // no instant is earlier
	if a.timer != nil {
		a.timer.Stop()
	}
}
