package redisbackend

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
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
}

// DefaultConfig waits for all replicas, and half a second for an answer.
func DefaultConfig() Config { return Config{Replicas: -1, Wait: 500 * time.Millisecond} }

// Server is a Redis, alone, behind Sentinels or as a Cluster. It is safe for
// concurrent use.
type Server struct {
	client redis.UniversalClient
	config Config
	name   string

	mu       sync.Mutex
	replicas map[int]time.Time // when so many were last connected
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
	s := &Server{config: c, name: u.Redacted(), replicas: map[int]time.Time{}}
	off := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch {
	case u.Query().Has("master_name"):
		o, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, bad(err)
		}
		o.MaxRetries, o.ContextTimeoutEnabled, o.DisableIdentity = -1, true, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = c.Wait, c.Wait, c.Wait
		o.PoolSize = cmp.Or(o.PoolSize, c.Connections)
		s.client = redis.NewFailoverClient(o)
	case u.Query().Has("addr"):
		o, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, bad(err)
		}
		o.MaxRetries, o.MaxRedirects, o.ContextTimeoutEnabled, o.DisableIdentity = -1, 3, true, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = c.Wait, c.Wait, c.Wait
		o.PoolSize = cmp.Or(o.PoolSize, c.Connections)
		o.MaintNotificationsConfig = off
		s.client = redis.NewClusterClient(o)
	default:
		o, err := redis.ParseURL(address)
		if err != nil {
			return nil, bad(err)
		}
		o.MaxRetries, o.ContextTimeoutEnabled, o.DisableIdentity = -1, true, true
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

// Check asks whether the server can be trusted with a mirror. An error that wraps
// ErrEvicts says that it cannot; any other that it cannot be asked.
func (s *Server) Check(ctx context.Context) error {
	check := func(ctx context.Context, node *redis.Client) error {
		info, err := node.Info(ctx, "memory").Result()
		if err != nil {
			return s.explain(err)
		}
		most, policy := field(info, "maxmemory"), field(info, "maxmemory_policy")
		if most != "0" && most != "" && policy != "noeviction" {
			return fmt.Errorf("%w: Redis at %s has a maxmemory of %s bytes and the policy %s, and may drop what was spent; set maxmemory-policy noeviction",
				ErrEvicts, s.name, most, policy)
		}
		return nil
	}
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, check)
	case *redis.Client:
		return check(ctx, c)
	}
	return nil
}

// ErrEvicts says that a server may drop records that matter.
var ErrEvicts = errors.New("redisbackend: the server may evict")

// explain says what an operator can do about an error of the server.
func (s *Server) explain(err error) error {
	text := err.Error()
	remedy := ""
	var certificate *tls.CertificateVerificationError
	switch {
	case strings.HasPrefix(text, "WRONGPASS"), strings.HasPrefix(text, "NOAUTH"), strings.Contains(text, "AUTH <password> called without"):
		remedy = "give the user and password in the URL, redis://user:password@host:6379"
	case strings.HasPrefix(text, "NOPERM"):
		remedy = "allow the user EVALSHA, EVAL, HGETALL, HMGET, HSET, HDEL, DEL, PEXPIRE, SCAN, WAIT, TIME and INFO on keys that begin with {ration:"
	case strings.HasPrefix(text, "READONLY"):
		remedy = "it is a replica; name the primary, or the Sentinels"
	case strings.HasPrefix(text, "LOADING"):
		remedy = "it reads its data, and will be asked again"
	case strings.HasPrefix(text, "MISCONF"):
		remedy = "it cannot save its data; its log says why"
	case strings.HasPrefix(text, "OOM"):
		remedy = "it has no memory left; raise maxmemory"
	case errors.As(err, &certificate):
		remedy = "its certificate does not fit"
	case strings.Contains(text, "first record does not look like a TLS handshake"):
		remedy = "it does not speak TLS; write redis:// for rediss://"
	}
	if remedy != "" {
		remedy = "; " + remedy
	}
	return fmt.Errorf("redisbackend: Redis at %s: %w%s", s.name, err, remedy)
}

// field finds a value in what INFO gives.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// remembered is for how long a replica that is gone may still be promoted.
const remembered = time.Minute

// count notes how many replicas a node has.
func (s *Server) count(info string) {
	n, err := strconv.Atoi(field(info, "connected_slaves"))
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas[n] = time.Now()
}

// needed is how many replicas have to have a turn.
func (s *Server) needed() (most int) {
	if s.config.Replicas >= 0 {
		return s.config.Replicas
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, at := range s.replicas {
		if time.Since(at) > remembered {
			delete(s.replicas, n)
			continue
		}
		most = max(most, n)
	}
	return most
}
