package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// DefaultURL is where a coordinator with an embedded NATS server listens.
const DefaultURL = "nats://127.0.0.1:4222"

// Conn is a connection to a NATS system, for those who only hand it on.
type Conn = nats.Conn

// ConnectConfig says how to connect. The zero value is complete: no
// credentials, half a second for first contact. The credentials mean what the
// nats command means by the flags and variables named beside them.
type ConnectConfig struct {
	// Name is what NATS calls the connection in its reports.
	Name string
	// Wait is how long first contact may take, 500 ms if 0.
	Wait time.Duration
	// Retry gives a connection that goes on trying where first contact fails
	// within Wait, instead of an error.
	Retry bool

	Creds    string // a file with a user's JWT and seed: --creds, NATS_CREDS
	User     string // --user, NATS_USER
	Password string // --password, NATS_PASSWORD
	Token    string // --token, NATS_TOKEN
	NKey     string // a file with a user's seed: --nkey, NATS_NKEY
	Cert     string // a file with the TLS certificate to show: --tlscert, NATS_CERT
	Key      string // a file with its private key: --tlskey, NATS_KEY
	CA       string // a file with the authorities to trust: --tlsca, NATS_CA
	JWT      string // a user's JWT, which is no secret, and
	Seed     string // its seed, as contexts of the nats command may have them
	TLSFirst bool   // begin with TLS, before the server says anything: --tlsfirst

	// InboxPrefix is where replies arrive, "_INBOX" if empty: --inbox-prefix.
	InboxPrefix string
	// Log hears of lost connections, of what NATS forbids, and why first contact takes
	// long; nil for none.
	Log *slog.Logger
}

// Validate reports what does not go together. It changes nothing.
func (c ConnectConfig) Validate() error {
	var ways []string
	for _, way := range []struct {
		name string
		set  bool
	}{{"creds", c.Creds != ""}, {"user", c.User != ""}, {"token", c.Token != ""}, {"nkey", c.NKey != ""}, {"JWT", c.JWT != ""}} {
		if way.set {
			ways = append(ways, way.name)
		}
	}
	var errs []error
	if len(ways) > 1 {
		errs = append(errs, fmt.Errorf("bus: %s exclude each other; give one", strings.Join(ways, " and ")))
	}
	if c.Password != "" && c.User == "" {
		errs = append(errs, errors.New("bus: a password without a user; give the user too"))
	}
	if (c.JWT == "") != (c.Seed == "") {
		errs = append(errs, errors.New("bus: a user's JWT and its seed belong together; give both, or neither"))
	}
	if (c.Cert == "") != (c.Key == "") {
		errs = append(errs, &SettingError{fmt.Errorf("bus: the certificate is %q and its private key %q", c.Cert, c.Key),
			"give both Cert and Key, or neither", "give both --tlscert and --tlskey, or neither"})
	}
	if c.Wait < 0 {
		errs = append(errs, fmt.Errorf("bus: a wait of %v for first contact; use 0 (500 ms) or more", c.Wait))
	}
	return errors.Join(errs...)
}

// Connect is ConnectContext with a context that does not end.
func Connect(url string, cfg ConnectConfig) (*nats.Conn, error) {
	return ConnectContext(context.Background(), url, cfg)
}

// ConnectContext connects to the NATS server at url, or the first of several
// divided by commas that answers. An error wraps lease.ErrNoCoordinator if none
// answered within the wait, ErrPermission if the credentials were refused, ctx's
// error if that ended first, and none of them if url or the config make no sense.
// Once it has returned, ctx has no meaning for the connection.
//
// The connection sends nothing late: what cannot be sent while it is lost
// fails. It looks for its server every second and reconnects for ever, each
// process at moments of its own. The caller closes it.
func ConnectContext(ctx context.Context, url string, cfg ConnectConfig) (*nats.Conn, error) {
	return connect(ctx, url, cfg)
}

func connect(ctx context.Context, url string, cfg ConnectConfig, more ...nats.Option) (*nats.Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if url == "" {
		url = DefaultURL
	}
	if cfg.Wait == 0 {
		cfg.Wait = 500 * time.Millisecond
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := CheckURL(url); err != nil {
		return nil, err
	}
	w := newWatch(cfg.Log)
	met := make(chan struct{}, 1)
	err := cfg.readable()
	var options []nats.Option
	if err == nil {
		options, err = cfg.options(w, met)
	}
	if err != nil {
		return nil, fmt.Errorf("bus: connecting to %s: %w", Redacted(url), err)
	}
	first, cancel := context.WithTimeout(ctx, cfg.Wait)
	defer cancel()
	// Each of several servers has its share of the wait, and then the next one is tried, as
	// later on whenever the connection is lost.
	share := min(max(cfg.Wait/time.Duration(strings.Count(url, ",")+1), 50*time.Millisecond), nats.DefaultTimeout)
	d := newDialer(first, share)
	options = append(options, nats.Timeout(share), nats.SetCustomDialer(d), nats.SkipHostLookup())
	nc, err := dial(first, url, cfg.Log, append(options, more...))
	if err == nil {
		watches.Store(nc, w)
		if nc.IsClosed() {
			watches.Delete(nc)
		}
		if cfg.Retry && !nc.IsConnected() {
			select {
			case <-met:
			case <-first.Done():
			}
		}
	}
	d.release()
	switch {
	case ctx.Err() != nil:
		if err == nil {
			nc.Close()
		}
		return nil, fmt.Errorf("bus: connecting to %s: %w", Redacted(url), ctx.Err())
	case err != nil:
		return nil, connectError(url, cfg.Wait, err)
	}
	return nc, nil
}

// Who waits long for first contact is told why, first after tellAfter and then every
// tellEvery.
const (
	tellAfter = time.Second
	tellEvery = 5 * time.Second
)

// dial tries until first ends: a server that is just starting refuses connections
// at once.
func dial(first context.Context, url string, log *slog.Logger, options []nats.Option) (*nats.Conn, error) {
	var last error
	tell := time.Now().Add(tellAfter)
	for {
		nc, err := nats.Connect(url, options...)
		switch {
		case err == nil:
			return nc, nil
		case !away(err):
			return nil, err
		case last == nil || absence(err) != noAnswer: // at the end an attempt is cut short, and says only that
			last = err
		}
		if now := time.Now(); first.Err() == nil && now.After(tell) {
			log.Warn("waiting for NATS", "url", Redacted(url), "error", absence(last))
			tell = now.Add(tellEvery)
		}
		select {
		case <-first.Done():
			return nil, last
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// readable says which of the files cannot be read.
func (c ConnectConfig) readable() error {
	for _, f := range []struct{ field, flag, file, holds string }{
		{"Creds", "--creds", c.Creds, "a user's JWT and seed"},
		{"NKey", "--nkey", c.NKey, "a user's seed"},
		{"Cert", "--tlscert", c.Cert, "a certificate"},
		{"Key", "--tlskey", c.Key, "its private key"},
		{"CA", "--tlsca", c.CA, "the certificates of authorities"},
	} {
		if f.file == "" {
			continue
		}
		if _, err := os.ReadFile(f.file); err != nil {
			return &SettingError{err, "name a file with " + f.holds + " in " + f.field, "name a file with " + f.holds + " with " + f.flag}
		}
	}
	return nil
}

// options are those of a connection whose requests must not be late.
func (c ConnectConfig) options(w *watch, met chan<- struct{}) ([]nats.Option, error) {
	o := []nats.Option{
		nats.Name(c.Name),
		nats.ReconnectBufSize(-1), // a buffered request would be granted after its caller gave up
		nats.RetryOnFailedConnect(c.Retry),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(400*time.Millisecond, 900*time.Millisecond),
		nats.PingInterval(time.Second),
		nats.MaxPingsOutstanding(2),
		nats.ErrorHandler(w.failed),
		nats.DisconnectErrHandler(w.disconnected),
		nats.ReconnectHandler(w.reconnected),
		nats.ClosedHandler(w.closed),
		nats.ConnectHandler(func(*nats.Conn) {
			select {
			case met <- struct{}{}:
			default:
			}
		}),
	}
	if c.InboxPrefix != "" {
		o = append(o, nats.CustomInboxPrefix(c.InboxPrefix))
	}
	switch {
	case c.Creds != "":
		o = append(o, nats.UserCredentials(c.Creds))
	case c.User != "":
		o = append(o, nats.UserInfo(c.User, c.Password))
	case c.Token != "":
		o = append(o, nats.Token(c.Token))
	case c.NKey != "":
		key, err := nats.NkeyOptionFromSeed(c.NKey)
		if err != nil {
			return nil, &SettingError{fmt.Errorf("%s: %w", c.NKey, err), "name a file with a user's seed in NKey", "name a file with a user's seed with --nkey"}
		}
		o = append(o, key)
	case c.JWT != "":
		o = append(o, nats.UserJWTAndSeed(c.JWT, c.Seed))
	}
	if c.TLSFirst {
		o = append(o, nats.TLSHandshakeFirst())
	}
	if c.Cert != "" {
		o = append(o, nats.ClientCert(c.Cert, c.Key))
	}
	if c.CA != "" {
		o = append(o, nats.RootCAs(c.CA))
	}
	return o, nil
}
