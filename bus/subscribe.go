package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// subscribe takes all verbs and tenants of partition n. It is a plain
// subscription: of a queue group, a frozen member would swallow requests.
func (s *serving) subscribe(ctx context.Context, n int) error {
	subject := partitionSubject(s.cfg.Cell, n) + ".*.*"
	remove := s.onForbidden(subject)
	sub, err := s.nc.Subscribe(subject, func(m *nats.Msg) { s.arrive(n, m) })
	if err != nil {
		remove()
		return err
	}
	s.subs = append(s.subs, sub)
	s.intake.Add(1)
	ended := sync.OnceFunc(func() {
		remove()
		if ctx.Err() == nil {
			s.fail(fmt.Errorf("%w: the subscription to %s has ended", lease.ErrNoCoordinator, subject))
		}
		s.intake.Done()
	})
	sub.SetClosedHandler(func(string) { ended() })
	if !sub.IsValid() { // the connection was closed before the handler was there
		ended()
	}
	return sub.SetPendingLimits(pendingMessages, pendingBytes)
}

// answerPings tells who asks that there is a leader, until the subscription ends with
// the others.
func (s *serving) answerPings(n int) error {
	subject := pingSubject(s.cfg.Cell, n)
	s.unwatch = append(s.unwatch, s.onForbidden(subject))
	sub, err := s.nc.Subscribe(subject, func(m *nats.Msg) {
		if m.Reply != "" {
			_ = m.Respond(s.pong()) // it asks again
		}
	})
	s.pings = sub
	return err
}

// onForbidden ends serving when NATS forbids to subscribe to subject, until the function
// it gives is called. It comes before the subscription, whose refusal may be there at once.
func (s *serving) onForbidden(subject string) (remove func()) {
	w := watchOf(s.nc)
	if w == nil {
		return func() {}
	}
	remove, _ = w.add(s.nc, &wait{subject: subject, fail: s.fail}) // an error is of who asks
	return remove
}

func (s *serving) pong() []byte { return s.self("") }

// announcement says that it leads now, and over which time others should ask it.
func (s *serving) announcement() []byte {
	if s.cfg.Spread <= 0 {
		return s.self("")
	}
	return s.self(strconv.FormatInt(s.cfg.Spread.Microseconds(), 10) + "us")
}

func (s *serving) self(spread string) []byte {
	epoch := s.cfg.Epoch()
	body, err := json.Marshal(pingMessage{Format, epoch.Number, epoch.Mark, spread})
	if err != nil {
		panic(err) // it has numbers
	}
	return body
}

// subscribed waits until the server has taken up the subscriptions, or has forbidden
// one. Those made on a connection that is lost just now are taken up when it is back.
func (s *serving) subscribed(ctx context.Context) error {
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		err := s.nc.FlushWithContext(attempt)
		cancel()
		switch {
		case err == nil:
			if w := watchOf(s.nc); w != nil {
				w.caughtUp(ctx, s.nc)
			}
			return nil
		case s.nc.IsClosed():
			return closed()
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}
