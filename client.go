package ration

import (
	"context"
	"errors"
	"log/slog"

	"ration/bus"
	"ration/lease"
	"ration/worker"
)

// Client is this process's place in the fleet: it holds what the process has
// leased. It is safe for concurrent use. Close it, so that what is unspent goes
// back at once.
type Client struct {
	worker *worker.Worker
	after  func() error // ends what carried the worker's messages
}

// Connect is ConnectContext with a context that does not end.
func Connect(url string, opts ...Option) (*Client, error) {
	return ConnectContext(context.Background(), url, opts...)
}

// ConnectContext joins the fleet whose coordinator listens on the NATS server at
// url: "" for nats://127.0.0.1:4222, or several divided by commas. The error wraps
// ErrNoCoordinator if NATS did not answer within the wait of WithConnectWait,
// half a second by default, or ctx's error if that ended first; afterwards ctx has
// no meaning. A coordinator need not be there yet: callers wait for it as long as
// they wait for tokens. Contact says whether it is.
func ConnectContext(ctx context.Context, url string, opts ...Option) (*Client, error) {
	s := newSettings(opts)
	if s.connect.Name == "" {
		s.connect.Name = s.worker.Name
	}
	if err := s.client.Validate(); err != nil {
		return nil, named(err)
	}
	nc, err := bus.ConnectContext(ctx, url, s.connect)
	if err != nil {
		return nil, named(err)
	}
	w, err := worker.New(bus.NewClient(nc, s.client), s.worker)
	if err != nil {
		nc.Close()
		return nil, named(err)
	}
	return &Client{worker: w, after: func() error { nc.Close(); return nil }}, nil
}

// Limiter gives the limiter of a key, a path such as "acme/prod/search": every
// prefix of it that the policy names is limited.
//
// With more keys each call takes from all prefixes of all of them at one instant, or
// from none: for what no one path says, such as the user who calls and the route that
// is called,
//
//	limiter, err := client.Limiter("acme/user/7", "acme/route/search")
//
// They have to begin with the same segment, and to be 8 at most. A prefix that several
// of them have is taken from once, and so a key that is named again, or is a prefix of
// another, adds nothing.
//
// All limiters of the same keys, in whatever order, share their tokens. The error wraps
// ErrBadKey.
func (c *Client) Limiter(key string, more ...string) (*Limiter, error) {
	if len(more) == 0 {
		k, err := lease.ParseKey(key)
		if err != nil {
			return nil, named(err)
		}
		return &Limiter{c.worker.Limiter(k)}, nil
	}
	keys, err := lease.ParseKeys(append([]string{key}, more...)...)
	if err != nil {
		return nil, named(err)
	}
	return &Limiter{c.worker.Limiter(keys[0], keys[1:]...)}, nil
}

// Contact asks the coordinator of a key whether it is there, again and again
// until it answers or ctx ends; then the error wraps ErrNoCoordinator, or says
// what else is wrong. It takes nothing.
func (c *Client) Contact(ctx context.Context, key string) error {
	k, err := lease.ParseKey(key)
	if err != nil {
		return named(err)
	}
	if err := c.worker.Contact(ctx, k); err != nil {
		return named(err)
	}
	return nil
}

// Name is what the fleet calls this process.
func (c *Client) Name() string { return c.worker.Name() }

// Stats says where all tokens went that this process was ever granted.
func (c *Client) Stats() Stats { return Stats(c.worker.Stats()) }

// Stats is a client's books: at a quiet moment, Granted = Spent + Returned +
// Expired + Held, and likewise UnitsGranted and so on for the units besides calls,
// all of them added up.
type Stats worker.Books

// Close fails who waits with ErrClosed, ends the contexts of calls that hold
// slots, returns what is unspent and says goodbye: once in any case, which takes a
// second at most, and again while ctx allows if it was not heard. The error says
// what the coordinator did not hear; what was held then expires. Close waits for
// every goroutine of the client. A second Close does nothing.
func (c *Client) Close(ctx context.Context) error {
	err := c.worker.Close(ctx)
	if c.after != nil {
		err = errors.Join(err, c.after())
	}
	if err != nil {
		return named(err)
	}
	return nil
}

// settings are what options change.
type settings struct {
	worker  worker.Config
	client  bus.ClientConfig
	connect bus.ConnectConfig
}

func newSettings(opts []Option) *settings {
	s := &settings{worker: worker.DefaultConfig()}
	for _, o := range opts {
		o(s)
	}
	return s
}

// logTo is where both halves log.
func (s *settings) logTo(l *slog.Logger) {
	s.worker.Log = l
	s.connect.Log = l
}
