package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// ClientConfig says which coordinators to ask. The zero value is complete.
type ClientConfig struct {
	// Cell is the deployment asked, DefaultCell if empty.
	Cell string
	// Partitions is how many the cell is taken to be divided into at first, 1 if 0: the
	// coordinators tell whoever is wrong.
	Partitions int
}

// Client is a lease.Lessor that asks over NATS. It is safe for concurrent use
// and holds nothing but its connection, which outlives it.
type Client struct {
	nc    *nats.Conn
	watch *watch
	cfg   ClientConfig

	partitions atomic.Int64
	leads      leads
}

var (
	_ lease.Lessor = (*Client)(nil)
	_ io.Closer    = (*Client)(nil)
)

// NewClient gives a lessor on a connection that Connect made. Another kind of
// connection, one that may send late, is a bug, and so is a config that names
// no cell that can exist: it panics.
func NewClient(nc *nats.Conn, cfg ClientConfig) *Client {
	if cfg.Cell == "" {
		cfg.Cell = DefaultCell
	}
	if cfg.Partitions == 0 {
		cfg.Partitions = 1
	}
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	w := watchOf(nc)
	if w == nil && !nc.IsClosed() {
		panic("bus: NewClient needs a connection of Connect, which sends nothing late")
	}
	c := &Client{nc: nc, watch: w, cfg: cfg}
	c.partitions.Store(int64(cfg.Partitions))
	return c
}

// Validate reports a cell or a number of partitions that cannot be. It changes
// nothing.
func (c ClientConfig) Validate() error {
	var errs []error
	if c.Cell != "" {
		errs = append(errs, checkCell(c.Cell))
	}
	if c.Partitions != 0 {
		errs = append(errs, checkPartitions(c.Partitions))
	}
	return errors.Join(errs...)
}

// Acquire sends r once and waits for its answer until ctx ends; give ctx a
// deadline, for a lost message is never answered.
//
// The error wraps lease.ErrNoCoordinator at once if nobody leads or the
// connection is lost, ErrPermission if NATS forbids it, the sentinel that the
// coordinator answered, or ctx's error.
func (c *Client) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	tenant, err := sameTenant(r.Keys)
	if err != nil {
		return lease.Answer{}, err
	}
	body, err := encodeRequest(r)
	if err != nil {
		return lease.Answer{}, err
	}
	body, err = c.toLeader(ctx, verbAcquire, tenant, body)
	if err != nil {
		return lease.Answer{}, err
	}
	a, err := decodeAnswer(body)
	if err == nil && a.ID != r.ID {
		err = fmt.Errorf("%w: an answer to %v", lease.ErrBadRequest, a.ID)
	}
	if err != nil {
		return lease.Answer{}, misunderstood(err)
	}
	return a, nil
}

// AcquireAll sends many requests of one tenant, 1 to MaxRequests with one Sent, in
// one message, and gives their answers in their order. None of them waits in the
// line: one that would is answered lease.Waiting and keeps its place there for a
// few seconds; ask for it again by Acquire. An answer without an outcome says that a
// newer copy is answered instead. Errors are those of Acquire, of all together.
func (c *Client) AcquireAll(ctx context.Context, rs []lease.Request) ([]lease.Answer, error) {
	var keys []lease.Key
	for _, r := range rs {
		keys = append(keys, r.Keys...)
	}
	tenant, err := sameTenant(keys)
	if err != nil {
		return nil, err
	}
	body, err := encodeRequests(rs)
	if err != nil {
		return nil, err
	}
	body, err = c.toLeader(ctx, verbAcquire, tenant, body)
	if err != nil {
		return nil, err
	}
	as, err := decodeAnswers(body)
	if err == nil && len(as) != len(rs) {
		err = fmt.Errorf("%w: %d answers to %d requests", lease.ErrBadRequest, len(as), len(rs))
	}
	for i := range as {
		if err == nil && as[i].Outcome != 0 && as[i].ID != rs[i].ID {
			err = fmt.Errorf("%w: answer %d is to %v", lease.ErrBadRequest, i, as[i].ID)
		}
	}
	if err != nil {
		return nil, misunderstood(err)
	}
	return as, nil
}

// Report sends r, in as many messages as its leases need, and puts the replies
// together. Errors are those of Acquire; part of r may then be recorded, so
// all of it is said again. A report that names no lease and no id touches
// nothing, and is not sent.
func (c *Client) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	var all lease.Reply
	var keys []lease.Key
	for _, n := range r.Counts {
		keys = append(keys, n.Keys...)
	}
	for _, g := range r.GivenUp {
		keys = append(keys, g.Keys...)
	}
	if len(r.Counts)+len(r.GivenUp) == 0 {
		return all, nil
	}
	tenant, err := sameTenant(keys)
	if err != nil {
		return all, err
	}
	messages, err := encodeReport(r)
	if err != nil {
		return all, err
	}
	for _, message := range messages {
		body, err := c.toLeader(ctx, verbReport, tenant, message)
		if err != nil {
			return lease.Reply{}, err
		}
		part, err := decodeReply(body)
		if err != nil {
			return lease.Reply{}, misunderstood(err)
		}
		all.Epoch = part.Epoch
		all.Renewed = append(all.Renewed, part.Renewed...)
		all.Ended = append(all.Ended, part.Ended...)
		all.Acknowledged = append(all.Acknowledged, part.Acknowledged...)
	}
	return all, nil
}

// Recalls calls got, from one goroutine, for each recall of h until ctx ends;
// then it returns nil. Recalls that cannot be read are skipped: they are hints.
// The error wraps ErrPermission if NATS forbids to listen, or
// lease.ErrNoCoordinator if the connection is closed.
func (c *Client) Recalls(ctx context.Context, h lease.Holder, got func(lease.Recall)) error {
	if err := checkName(h.Name); err != nil {
		return fmt.Errorf("%w: %w", lease.ErrBadRequest, err)
	}
	if c.watch == nil {
		return closed()
	}
	subject := recallSubject(c.cfg.Cell, h)
	stop, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	remove, err := c.watch.add(c.nc, &wait{subject: subject, fail: cancel})
	if err != nil {
		return err
	}
	defer remove()
	sub, err := c.nc.SubscribeSync(subject)
	if err != nil {
		return unanswered(err, subject)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only where the connection has ended it
	for {
		m, err := sub.NextMsgWithContext(stop)
		switch {
		case ctx.Err() != nil:
			return nil
		case stop.Err() != nil:
			return context.Cause(stop)
		case errors.Is(err, nats.ErrSlowConsumer):
			continue
		case err != nil:
			return unanswered(err, subject)
		}
		if r, err := decodeRecall(m.Data); err == nil && r.Holder == h {
			got(r)
		}
	}
}

// Status asks a coordinator for the state of key, or of everything if key is
// empty, and gives the JSON it answers. Errors are those of Acquire.
func (c *Client) Status(ctx context.Context, key lease.Key) (json.RawMessage, error) {
	return c.state(ctx, statusSubject(c.cfg.Cell), key)
}

// PartitionStatus is Status of what the leader of a partition has, and nobody else.
func (c *Client) PartitionStatus(ctx context.Context, n int, key lease.Key) (json.RawMessage, error) {
	return c.state(ctx, partitionStatusSubject(c.cfg.Cell, n), key)
}

func (c *Client) state(ctx context.Context, subject string, key lease.Key) (json.RawMessage, error) {
	body, err := c.ask(ctx, subject, encodeQuestion(key))
	if err != nil {
		return nil, err
	}
	if err := told(body); err != nil {
		return nil, misunderstood(err)
	}
	return body, nil
}

// ask sends one message and waits for what comes back.
func (c *Client) ask(ctx context.Context, subject string, body []byte) ([]byte, error) {
	switch {
	case c.watch == nil || c.nc.IsClosed():
		return nil, closed()
	case !c.nc.IsConnected():
		why := ""
		if unauthorized(c.nc.LastError()) {
			why = ", which refuses the credentials"
		}
		return nil, fmt.Errorf("%w: not connected to NATS%s", lease.ErrNoCoordinator, why)
	}
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	remove, err := c.watch.add(c.nc, &wait{subject: subject, asks: true, fail: cancel})
	if err != nil {
		return nil, err
	}
	defer remove()
	m, err := c.nc.RequestWithContext(asking, subject, body)
	switch {
	case err == nil:
		return m.Data, nil
	case ctx.Err() == nil && asking.Err() != nil:
		return nil, context.Cause(asking) // the watch's
	}
	return nil, unanswered(err, subject)
}

func closed() error {
	return fmt.Errorf("%w: the connection to NATS is closed", lease.ErrNoCoordinator)
}

// misunderstood keeps what the coordinator answered as an error, and a foreign
// format. An answer that makes no sense otherwise is the coordinator's fault,
// not the asker's.
func misunderstood(err error) error {
	var answer *toldError
	if errors.As(err, &answer) || errors.Is(err, lease.ErrFormat) {
		return err
	}
	return fmt.Errorf("%w: its answer cannot be read: %v", lease.ErrInternal, err)
}
