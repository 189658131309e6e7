package redisbackend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Config says how to use a server. DefaultConfig is complete.
type Config struct {
	// Replicas is how many replicas have to have a turn before it is answered. Below 0
	// it is all that have been connected within the last minute.
	Replicas int
	// Wait is how long an answer of the server is waited for, above 0; calls with a nearer
	// deadline wait no longer.
	Wait time.Duration
	// Connections is how many there may be to a server at once, unless the URL says; go-redis
	// decides if 0. Who waits for replicas has one all the time.
	Connections int
	// Log gets what an operator acts on and no call fails for; nil for nothing.
	Log *slog.Logger
}

// DefaultConfig waits for all replicas, and half a second for an answer.
func DefaultConfig() Config { return Config{Replicas: -1, Wait: 500 * time.Millisecond} }

// Server is a Redis, alone, behind Sentinels or as a Cluster. It is safe for
// concurrent use.
type Server struct {
	client redis.UniversalClient
	config Config
	name   string
}

// Open reads a URL as go-redis does, and dials nothing yet:
//
//	redis://user:password@host:6379/0              one server; rediss:// with TLS
//	redis://sentinel:26379?master_name=m&addr=...  behind Sentinels
//	redis://node:6379?addr=node2:6379&addr=...     a Cluster
//
// The error says what is wrong with it.
func Open(address string, c Config) (*Server, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("redisbackend: the URL cannot be read: %w; write it like redis://127.0.0.1:6379", withoutURL(err))
	}
	redis.SetLogger(quiet{}) // what fails is told by errors
	s := &Server{config: c, name: redacted(u)}
	off := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch {
	case u.Query().Has("master_name"):
		o, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, bad(err)
		}
		o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = -1, 1, true, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = c.Wait, c.Wait, c.Wait
		o.PoolSize = cmp.Or(o.PoolSize, c.Connections)
		s.client = redis.NewFailoverClient(o)
	case u.Query().Has("addr"):
		o, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, bad(err)
		}
		o.MaxRetries, o.DialerRetries, o.MaxRedirects, o.ContextTimeoutEnabled, o.DisableIdentity = -1, 1, 3, true, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = c.Wait, c.Wait, c.Wait
		o.PoolSize = cmp.Or(o.PoolSize, c.Connections)
		o.MaintNotificationsConfig = off
		s.client = redis.NewClusterClient(o)
	default:
		o, err := redis.ParseURL(address)
		if err != nil {
			return nil, bad(err)
		}
		o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = -1, 1, true, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = c.Wait, c.Wait, c.Wait
		o.PoolSize = cmp.Or(o.PoolSize, c.Connections)
		o.MaintNotificationsConfig = off
		s.client = redis.NewClient(o)
	}
	return s, nil
}

func bad(err error) error {
	return fmt.Errorf("redisbackend: %w; write it like redis://127.0.0.1:6379", err)
}

// redacted is the URL without passwords: that of the Sentinels is a parameter.
func redacted(u *url.URL) string {
	shown := *u
	if q := u.Query(); q.Has("password") {
		q.Set("password", "xxxxx")
		shown.RawQuery = q.Encode()
	}
	return shown.Redacted()
}

// withoutURL takes out of an error the URL, which may have a password.
func withoutURL(err error) error {
	var in *url.Error
	if errors.As(err, &in) {
		return in.Err
	}
	return err
}

// quiet logs nothing.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// String is the URL without its password.
func (s *Server) String() string { return s.name }

// Close ends all connections.
func (s *Server) Close() error { return s.client.Close() }
