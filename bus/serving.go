package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"ration/lease"
)

// serving is one call of Serve.
type serving struct {
	nc      *nats.Conn
	cfg     ServeConfig
	subs    []*nats.Subscription
	service micro.Service
	stop    context.CancelCauseFunc

	asking   sync.Mutex // held while the status is asked for
	withdrew bool       // no more of that

	// asked is the scope of requests under way. It outlives that of serving by
	// the grace, then cut ends it.
	asked context.Context
	cut   context.CancelFunc

	intake sync.WaitGroup // who takes messages up
	work   sync.WaitGroup // who works on them

	acquires, reports chan struct{} // one place for each that is under way
	count             counts
}

// counts is what the service tells of itself in its statistics.
type counts struct {
	acquires, reports, errors, turnedAway atomic.Int64
}

func newServing(nc *nats.Conn, cfg ServeConfig) *serving {
	s := &serving{
		nc:       nc,
		cfg:      cfg,
		acquires: make(chan struct{}, cfg.most),
		reports:  make(chan struct{}, maxReports),
	}
	s.asked, s.cut = context.WithCancel(context.Background())
	return s
}

// take starts the work on a message, or turns it away where too much is under
// way. It never blocks, so that the subscription never fills up behind it.
func (s *serving) take(n int, m *nats.Msg) {
	verb, token := verbAndToken(m.Subject)
	var places chan struct{}
	var answer func(context.Context, []byte, func([]lease.Key) error) ([]byte, error)
	switch verb {
	case verbAcquire:
		if m.Reply == "" {
			return // nobody would hear of the grant
		}
		places, answer = s.acquires, s.acquire
		s.count.acquires.Add(1)
	case verbReport:
		places, answer = s.reports, s.report
		s.count.reports.Add(1)
	default:
		s.refuse(m, fmt.Errorf("%w: no verb %.40q; there are %s and %s", lease.ErrBadRequest, verb, verbAcquire, verbReport))
		return
	}
	select {
	case places <- struct{}{}:
	default:
		s.count.turnedAway.Add(1)
		s.refuse(m, fmt.Errorf("%w: %d requests are under way, the most there may be; ask again later", lease.ErrLineFull, cap(places)))
		return
	}
	s.work.Go(func() {
		defer func() { <-places }()
		body, err := answer(s.asked, m.Data, func(keys []lease.Key) error { return s.belongs(n, token, keys) })
		switch {
		case err == nil:
			s.respond(m, body)
		case s.asked.Err() != nil && errors.Is(err, context.Canceled):
			s.refuse(m, fmt.Errorf("%w: the coordinator hands over; ask again", lease.ErrStopped))
		default:
			s.refuse(m, err)
		}
	})
}

// belongs checks that the subject says what the keys do. NATS grants rights on
// subjects, so a body of another tenant would reach past them.
func (s *serving) belongs(n int, token string, keys []lease.Key) error {
	if len(keys) > 0 {
		tenant, err := sameTenant(keys)
		if err != nil {
			return err
		}
		if t := Token(tenant); t != token {
			return fmt.Errorf("%w: the keys are of tenant %.80q, whose token is %.80q; the subject says %.80q",
				lease.ErrBadRequest, tenant, t, token)
		}
	}
	if p := Partition(token, s.cfg.Partitions); p != n {
		return fmt.Errorf("%w: tenant token %.80q belongs to partition %d of %d; the subject says %d",
			lease.ErrBadRequest, token, p, s.cfg.Partitions, n)
	}
	return nil
}

func (s *serving) acquire(ctx context.Context, body []byte, belongs func([]lease.Key) error) ([]byte, error) {
	r, err := decodeRequest(body)
	if err == nil {
		err = belongs(r.Keys)
	}
	if err != nil {
		return nil, err
	}
	// The lessor answers within the patience; this only bounds what a fault
	// could leave behind.
	ctx, cancel := context.WithTimeout(ctx, min(r.Patience, longest)+slack)
	defer cancel()
	a, err := s.cfg.Lessor.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	return written(encodeAnswer(a))
}

func (s *serving) report(ctx context.Context, body []byte, belongs func([]lease.Key) error) ([]byte, error) {
	r, err := decodeReport(body)
	if err != nil {
		return nil, err
	}
	var keys []lease.Key
	for _, c := range r.Counts {
		keys = append(keys, c.Keys...)
	}
	for _, g := range r.GivenUp {
		keys = append(keys, g.Keys...)
	}
	if err := belongs(keys); err != nil {
		return nil, err
	}
	reply, err := s.cfg.Lessor.Report(ctx, r)
	if err != nil {
		return nil, err
	}
	return written(encodeReply(reply))
}

// written turns an answer that cannot be written into a fault of this side.
func written(body []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, fmt.Errorf("%w: its answer cannot be written: %v", lease.ErrInternal, err)
	}
	return body, nil
}

func (s *serving) refuse(m *nats.Msg, err error) {
	s.count.errors.Add(1)
	if lease.Code(err) == lease.ErrInternal.Code() {
		s.cfg.Log.Error("a request failed", "subject", m.Subject, "error", err)
	}
	s.respond(m, encodeError(err))
}

// respond fails only where the connection does, and then the asker asks again.
func (s *serving) respond(m *nats.Msg, body []byte) {
	if m.Reply != "" {
		_ = m.Respond(body)
	}
}
