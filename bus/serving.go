package bus

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// serving is one call of Serve.
type serving struct {
	nc      *nats.Conn
	cfg     ServeConfig
	subs    []*nats.Subscription
	pings   *nats.Subscription
	unwatch []func()
	stop    context.CancelCauseFunc

	questions *nats.Subscription // for the status
	clerk     *clerk
	acts      acts
	applies   applies

	// cut ends the scope of requests under way, which outlives that of serving
	// by the grace.
	cut context.CancelFunc

	lessor            Beginner
	asking            *asking
	acquires, reports *desk
	answers           *queue[answer]
	heard             *heard // by who reads acquires

	intake sync.WaitGroup // what messages arrive through
	desks  sync.WaitGroup // who reads them
	work   sync.WaitGroup // who works on them
	told   sync.WaitGroup // who sends answers
	count  counts
}

// desk takes up the messages of one verb in their order. Each verb has its own, so
// that the messages of one never stand behind those of the other.
type desk struct {
	verb   string
	places *places
	queue  *queue[*question]
	read   func(q *question, body []byte) error
}

// counts is what the service tells of itself in its statistics.
type counts struct {
	acquires, reports, errors, turnedAway atomic.Int64
}

func newServing(nc *nats.Conn, cfg ServeConfig) *serving {
	s := &serving{
		nc:      nc,
		cfg:     cfg,
		asking:  newAsking(),
		answers: newQueue[answer](),
		heard:   newHeard(),
	}
	scope, cut := context.WithCancel(context.Background())
	s.cut = cut
	if b, ok := cfg.Lessor.(Beginner); ok {
		s.lessor = b
	} else {
		s.lessor = waited{cfg.Lessor, scope, &s.work}
	}
	s.acquires = s.open(verbAcquire, "requests", cfg.most, s.acquire)
	s.reports = s.open(verbReport, "reports", maxReports, s.report)
	s.told.Go(s.tell)
	return s
}

func (s *serving) open(verb, what string, places int, read func(*question, []byte) error) *desk {
	d := &desk{verb, newPlaces(what, places), newQueue[*question](), read}
	s.desks.Go(func() {
		for qs, ok := d.queue.take(nil); ok; qs, ok = d.queue.take(qs) {
			for _, q := range qs {
				body := q.data
				q.data = nil
				if err := d.read(q, body); err != nil {
					s.answer(answer{to: q, err: err})
				} // else it may be answered already, and another question by now
			}
		}
	})
	return d
}

// arrive takes a message in, or turns it away where its tenant has too much under
// way. It never waits and does little, so that nothing fills up behind it.
func (s *serving) arrive(n int, m *nats.Msg) {
	verb, token := verbAndToken(m.Subject)
	var d *desk
	switch verb {
	case verbAcquire:
		if m.Reply == "" {
			return // nobody would hear of the grant
		}
		d = s.acquires
		s.count.acquires.Add(1)
	case verbReport:
		d = s.reports
		s.count.reports.Add(1)
	default:
		s.refuse(m, fmt.Errorf("%w: no verb %.40q; there are %s and %s", lease.ErrBadRequest, verb, verbAcquire, verbReport))
		return
	}
	if len(m.Data) > MaxMessage {
		s.refuse(m, tooLarge(len(m.Data)))
		return
	}
	q, err := s.asking.enter(d, n, token, m)
	if err != nil {
		s.count.turnedAway.Add(1)
		s.refuse(m, err)
		return
	}
	d.queue.put(q)
}

// belongs checks that the subject says what the keys do. NATS grants rights on
// subjects, so a body of another tenant would reach past them.
func (s *serving) belongs(q *question, keys []lease.Key) error {
	n, token := q.partition, q.token
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
		return &partitionError{s.cfg.Partitions, fmt.Sprintf("tenant token %.80q belongs to partition %d of %d; the subject says %d",
			token, p, s.cfg.Partitions, n)}
	}
	return nil
}

func (s *serving) acquire(q *question, body []byte) error {
	r, all, err := s.heard.decodeRequests(body)
	if err != nil {
		return err
	}
	if q.together = all != nil; q.together {
		for i := range all {
			if err := s.belongs(q, all[i].Keys); err != nil {
				return err
			}
		}
		s.lessor.BeginAll(all, func(as []lease.Answer, err error) { s.answer(answer{to: q, all: as, err: err}) })
		return nil
	}
	if err := s.belongs(q, r.Keys); err != nil {
		return err
	}
	if err := s.asking.sit(q, r.Keys); err != nil {
		s.count.turnedAway.Add(1)
		return err
	}
	s.lessor.Begin(r, func(a lease.Answer, err error) { s.answer(answer{to: q, one: a, err: err}) })
	return nil
}

func (s *serving) report(q *question, body []byte) error {
	r, err := decodeReport(body)
	if err != nil {
		return err
	}
	var keys []lease.Key
	for _, c := range r.Counts {
		keys = append(keys, c.Keys...)
	}
	for _, g := range r.GivenUp {
		keys = append(keys, g.Keys...)
	}
	if err := s.belongs(q, keys); err != nil {
		return err
	}
	s.lessor.BeginReport(r, func(reply lease.Reply, err error) { s.answer(answer{to: q, reply: reply, err: err}) })
	return nil
}
