package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// ServeConfig says what is served. Only Lessor must be given.
type ServeConfig struct {
	// Lessor answers. It is called from many goroutines at once, unless it is
	// also a Beginner.
	Lessor lease.Lessor
	// Cell is the deployment served, DefaultCell if empty.
	Cell string
	// Partitions is how many the cell is divided into, 1 if 0, and Partition the one
	// that is served.
	Partitions int
	Partition  int
	// Epoch is that of the leader; nil for one that is never another.
	Epoch func() lease.Epoch
	// Spread is the time over which those who waited for another leader should ask this one.
	Spread time.Duration
	// Name is what operators call this coordinator.
	Name string
	// Version of the coordinator, as in semantic versioning; "0.0.0" if empty.
	Version string
	// Status gives the state of a key, or of the whole partition for the empty key: a
	// value to marshal as a JSON object, or a []byte that is one already. With
	// nil the status is not served.
	Status func(ctx context.Context, key lease.Key) (any, error)
	// Admin is what the partitions that a coordinator serves have in common. With nil this
	// one is found by itself, and its status is that of the cell.
	Admin *Admin
	// ResetClock takes the wall clock for calendar time, and gives what that has changed, as
	// Status does. With nil it is not served.
	ResetClock func(ctx context.Context) (any, error)
	// Act does what an operator asks of a key, and gives what that has changed, as Status
	// does. With nil it is not served.
	Act func(ctx context.Context, a lease.Act) (any, error)
	// Apply puts a policy into force, and gives its revision, as Status does. With nil it is
	// not served.
	Apply func(ctx context.Context, p Policy) (any, error)
	// Recalls calls got for each recall, whoever its holder is, until ctx
	// ends. got does not block. With nil no recalls are published.
	Recalls func(ctx context.Context, got func(lease.Recall)) error
	// Ready is called once, when requests arrive. It may be nil.
	Ready func()
	// Log hears what an operator acts on; nil for none.
	Log *slog.Logger

	most int // places of acquires under way; maxAcquires if 0
}

func (c ServeConfig) complete() ServeConfig {
	if c.Cell == "" {
		c.Cell = DefaultCell
	}
	if c.Partitions == 0 {
		c.Partitions = 1
	}
	if c.Version == "" {
		c.Version = "0.0.0"
	}
	if c.Epoch == nil {
		c.Epoch = func() lease.Epoch { return lease.Epoch{} }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.most == 0 {
		c.most = maxAcquires
	}
	return c
}

// Validate reports what cannot be served. It changes nothing.
func (c ServeConfig) Validate() error {
	var errs []error
	if c.Lessor == nil {
		errs = append(errs, errors.New("bus: no lessor to serve"))
	}
	c = c.complete()
	if c.Partition < 0 || c.Partition >= c.Partitions {
		errs = append(errs, fmt.Errorf("bus: partition %d of %d: use 0 to %d", c.Partition, c.Partitions, c.Partitions-1))
	}
	return errors.Join(append(errs, checkCell(c.Cell), checkPartitions(c.Partitions))...)
}

const (
	// What waits in the client library until it is let in. It is small: a
	// request that is dropped is asked again, one that sat here is stale.
	pendingMessages = 8192
	pendingBytes    = 32 << 20
	// The places for what may be under way at once: one for each message and for
	// each KiB of it. Of the acquires one key alone can have a third, which is more
	// than the line of one key. Reports are counted apart, since they give back what
	// acquires wait for.
	maxAcquires = 1 << 15
	maxReports  = 1 << 14
	// How long requests under way may go on once serving ends. What can be
	// answered at all is, and who waits in line is told to ask the next leader.
	grace = 10 * time.Millisecond
	// How long draining may take.
	drainWait = time.Second
	// How much longer than its patience a request may be under way, and the
	// patience that this is reckoned with at most.
	slack   = 5 * time.Second
	longest = 24 * time.Hour
)

// Serve answers for cfg.Lessor until ctx ends, then gives nil. It unsubscribes
// first, so that NATS answers "no responders" to whoever asks next, answers
// what had arrived, and returns when all that it started has ended. The
// connection stays open; its end, or a subscription that NATS forbids, is an
// error.
func Serve(ctx context.Context, nc *nats.Conn, cfg ServeConfig) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	s := newServing(nc, cfg.complete())
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.stop = stop
	if err := s.start(ctx); err != nil {
		stop(nil)
		s.end()
		return err
	}
	if cfg.Ready != nil && ctx.Err() == nil {
		cfg.Ready()
	}
	<-ctx.Done()
	s.end()
	var failure *serveError
	if errors.As(context.Cause(ctx), &failure) {
		return failure.err
	}
	return nil
}

// serveError tells a fault of serving from the end that the caller wished.
type serveError struct{ err error }

func (e *serveError) Error() string { return e.err.Error() }

func (s *serving) fail(err error) { s.stop(&serveError{err}) }

// start subscribes and waits until the server knows it.
func (s *serving) start(ctx context.Context) error {
	n := s.cfg.Partition
	if err := s.subscribe(ctx, n); err != nil {
		return fmt.Errorf("bus: subscribing to partition %d: %w", n, err)
	}
	if err := s.answerPings(n); err != nil {
		return fmt.Errorf("bus: subscribing to pings of partition %d: %w", n, err)
	}
	if err := s.answerActs(ctx); err != nil {
		return err
	}
	if err := s.takePolicies(ctx); err != nil {
		return fmt.Errorf("bus: subscribing to policies of partition %d: %w", n, err)
	}
	if err := s.announce(ctx); err != nil {
		return fmt.Errorf("bus: adding the service: %w", err)
	}
	if err := s.subscribed(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil { // one of them is forbidden
		return nil
	}
	// It is a hint: who misses it asks again by itself. Who asks once this is ready is not
	// told by it to ask again.
	_ = s.nc.Publish(leadsSubject(s.cfg.Cell, n), s.announcement())
	_ = s.nc.FlushTimeout(100 * time.Millisecond)
	if s.cfg.Recalls != nil {
		s.work.Go(func() {
			if err := s.cfg.Recalls(ctx, s.recall); err != nil && ctx.Err() == nil {
				s.fail(fmt.Errorf("bus: hearing of recalls: %w", err))
			}
		})
	}
	return nil
}

func (s *serving) recall(r lease.Recall) {
	body, err := encodeRecall(r)
	if err != nil {
		s.cfg.Log.Error("a recall cannot be sent", "error", err)
		return
	}
	_ = s.nc.Publish(recallSubject(s.cfg.Cell, r.Holder), body) // a hint; it may be lost
}

// end stops in the order that leaves nobody without an answer who could have
// one.
func (s *serving) end() {
	for _, remove := range s.unwatch {
		remove()
	}
	s.withdraw()
	if s.pings != nil {
		_ = s.pings.Unsubscribe() // who is about to lead need not wait
	}
	for _, sub := range s.subs {
		if !s.nc.IsConnected() || sub.Drain() != nil {
			_ = sub.Unsubscribe() // nothing more can arrive on it
		}
	}
	late := time.AfterFunc(drainWait, func() {
		for _, sub := range s.subs {
			_ = sub.Unsubscribe()
		}
	})
	s.intake.Wait()
	late.Stop()
	s.acquires.queue.close()
	s.reports.queue.close()
	s.desks.Wait()
	s.asking.close()
	select {
	case <-s.asking.none:
	case <-time.After(grace):
	}
	for _, q := range s.asking.rest() {
		s.answers.put(answer{to: q, err: errHandsOver})
	}
	s.cut()
	s.work.Wait()
	s.answers.close()
	s.told.Wait()
	if s.nc.IsConnected() {
		_ = s.nc.FlushTimeout(drainWait) // the last answers; whoever misses one asks again
	}
}
