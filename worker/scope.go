package worker

import (
	"context"
	"sync"
)

// scope is what a worker's goroutines live in: whoever ends it waits for them
// all, and none begins afterwards.
type scope struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	ended bool
	group sync.WaitGroup
}

func newScope() *scope {
	ctx, cancel := context.WithCancel(context.Background())
	return &scope{ctx: ctx, cancel: cancel}
}

// enter says whether the scope is open; if so, leave has to follow.
func (s *scope) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.group.Add(1)
	return true
}

func (s *scope) leave() { s.group.Done() }

// spawn runs f in a goroutine of the scope, or not at all if it has ended.
func (s *scope) spawn(f func()) bool {
	if !s.enter() {
		return false
	}
	go func() {
		defer s.leave()
		f()
	}()
	return true
}

// end cancels the scope's context and waits until every goroutine has left.
func (s *scope) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.cancel()
	s.group.Wait()
}
