package main

import (
	"context"
	"sync"
	"time"
)

// pace spaces demand evenly. A caller that comes late is not made up for. It is
// safe for concurrent use.
type pace struct {
	every time.Duration

	mu   sync.Mutex
	next time.Time
}

// newPace gives the pace of so many calls a second, or none for 0.
func newPace(rate float64) *pace {
	if rate <= 0 {
		return &pace{}
	}
	return &pace{every: time.Duration(float64(time.Second) / rate)}
}

// wait waits for the next place, and says false if ctx ends first.
func (p *pace) wait(ctx context.Context) bool {
	if p.every == 0 {
		return ctx.Err() == nil
	}
	p.mu.Lock()
	now := time.Now()
	at := p.next
	if at.Before(now) {
		at = now
	}
	p.next = at.Add(p.every)
	p.mu.Unlock()
	timer := time.NewTimer(at.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
