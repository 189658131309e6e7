package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// scripted is a lessor over a real ledger, with time from the bubble, that can
// be told to fail and counts what it heard.
type scripted struct {
	mu      sync.Mutex
	base    time.Time
	ledger  *lease.Ledger
	tickets lease.Ticket
	answers map[lease.Ticket]chan lease.Answer
	replies map[lease.Ticket]chan lease.Reply
	recalls map[lease.Holder]func(lease.Recall)
	timer   *time.Timer

	down     atomic.Bool
	asked    atomic.Int64
	goodbyes atomic.Int64
}

func newScripted(t testing.TB, policy string) *scripted {
	p, err := lease.ParsePolicy("test", []byte(policy))
	require.NoError(t, err)
	return &scripted{
		base: time.Now(), ledger: lease.NewLedger(p, lease.DefaultConfig()),
		answers: map[lease.Ticket]chan lease.Answer{}, replies: map[lease.Ticket]chan lease.Reply{},
		recalls: map[lease.Holder]func(lease.Recall){},
	}
}

func (s *scripted) now() algo.Instant { return epoch.Add(time.Since(s.base)) }

// turn is called under mu.
func (s *scripted) turn(in ...lease.Message) {
	now := s.now()
	for i := range in {
		in[i].Arrived = now
	}
	t := s.ledger.Turn(now, in)
	for _, a := range t.Answers {
		if to := s.answers[a.Ticket]; to != nil {
			delete(s.answers, a.Ticket)
			to <- a.Answer
		}
	}
	for _, r := range t.Replies {
		if to := s.replies[r.Ticket]; to != nil {
			delete(s.replies, r.Ticket)
			to <- r.Reply
		}
	}
	for _, r := range t.Recalls {
		if got := s.recalls[r.Holder]; got != nil {
			got(r)
		}
	}
	if at, ok := s.ledger.Next(); ok {
		if s.timer != nil {
			s.timer.Stop()
		}
		s.timer = time.AfterFunc(max(0, at.Sub(now)), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.turn()
		})
	}
}

func (s *scripted) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
}

func (s *scripted) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	s.asked.Add(1)
	if s.down.Load() {
		return lease.Answer{}, lease.ErrNoCoordinator
	}
	to := make(chan lease.Answer, 1)
	s.mu.Lock()
	s.tickets++
	s.answers[s.tickets] = to
	s.turn(lease.Message{Ticket: s.tickets, Request: &r})
	s.mu.Unlock()
	select {
	case a := <-to:
		return a, nil
	case <-ctx.Done():
		return lease.Answer{}, ctx.Err()
	}
}

func (s *scripted) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	if s.down.Load() {
		return lease.Reply{}, lease.ErrNoCoordinator
	}
	if r.Goodbye {
		s.goodbyes.Add(1)
	}
	to := make(chan lease.Reply, 1)
	s.mu.Lock()
	s.tickets++
	s.replies[s.tickets] = to
	s.turn(lease.Message{Ticket: s.tickets, Report: &r})
	s.mu.Unlock()
	select {
	case a := <-to:
		return a, nil
	case <-ctx.Done():
		return lease.Reply{}, ctx.Err()
	}
}

func (s *scripted) Recalls(ctx context.Context, h lease.Holder, got func(lease.Recall)) error {
	s.mu.Lock()
	s.recalls[h] = got
	s.mu.Unlock()
	<-ctx.Done()
	return nil
}

// held is what the ledger counts as held on a key.
func (s *scripted) held() lease.Amount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Status(s.now(), "").Held
}

func (s *scripted) start(t testing.TB, name string) *Worker {
	cfg := DefaultConfig()
	cfg.Name, cfg.MonotonicOnly, cfg.Seed = name, true, 1
	w, err := New(s, cfg)
	require.NoError(t, err)
	return w
}

func (s *scripted) end(t testing.TB, ws ...*Worker) {
	for _, w := range ws {
		require.NoError(t, w.Close(context.Background()))
		balanced(t, w.Stats(), w.Name())
		require.Zero(t, w.Stats().Held)
	}
	s.stop()
}

func bubble(t *testing.T, policy string, f func(t *testing.T, s *scripted)) {
	synctest.Test(t, func(t *testing.T) { f(t, newScripted(t, policy)) })
}
