package ration

import (
	"log/slog"
	"time"
)

// Option changes how Connect or Local sets a client up.
type Option func(*settings)

// WithName says what the fleet calls this process; the host's name and the
// process's number unless given.
func WithName(name string) Option { return func(s *settings) { s.worker.Name = name } }

// WithClass says of which class this process's calls are, where the policy's lines
// have classes; a call may name another, see Class.
func WithClass(class string) Option { return func(s *settings) { s.worker.Pool.Class = class } }

// WithCell names the deployment, where several share a NATS system.
func WithCell(cell string) Option { return func(s *settings) { s.client.Cell = cell } }

// WithConnectWait says how long Connect waits for NATS, 500 ms unless given.
func WithConnectWait(d time.Duration) Option { return func(s *settings) { s.connect.Wait = d } }

// WithLog says where to log what an operator acts on; nowhere unless given.
func WithLog(l *slog.Logger) Option { return func(s *settings) { s.logTo(l) } }

// Credentials is how to show NATS who this is, as the nats command takes them.
type Credentials struct {
	Creds    string // file with a user's JWT and seed
	User     string
	Password string
	Token    string
	NKey     string // file with a user's seed
	Cert     string // file with the TLS certificate to show
	Key      string // file with its private key
	CA       string // file with the authorities to trust
	JWT      string // a user's JWT itself
	Seed     string // its seed
	TLSFirst bool   // begin with TLS, before the server says anything

	// InboxPrefix is where replies arrive, "_INBOX" if empty; for users that may not
	// subscribe to that.
	InboxPrefix string
}

// WithCredentials says how to show NATS who this is.
func WithCredentials(c Credentials) Option {
	return func(s *settings) {
		s.connect.Creds, s.connect.User, s.connect.Password, s.connect.Token = c.Creds, c.User, c.Password, c.Token
		s.connect.NKey, s.connect.Cert, s.connect.Key, s.connect.CA = c.NKey, c.Cert, c.Key, c.CA
		s.connect.JWT, s.connect.Seed, s.connect.TLSFirst, s.connect.InboxPrefix = c.JWT, c.Seed, c.TLSFirst, c.InboxPrefix
	}
}
