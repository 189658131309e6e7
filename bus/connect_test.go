package bus

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// nowhere is an address that refuses connections.
func nowhere(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func TestFirstContactThatFailsSaysWhereAndWhatToDo(t *testing.T) {
	addr := nowhere(t)
	_, err := Connect("nats://ann:secret@"+addr, ConnectConfig{Wait: 60 * time.Millisecond})
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
	require.ErrorContains(t, err, addr)
	require.ErrorContains(t, err, "within 60ms")
	require.ErrorContains(t, err, "start a coordinator, which brings one, or give Connect another URL")
	require.NotContains(t, err.Error(), "secret")

	for _, bad := range []string{
		"nats://", "nats://a b:4222", "://x", "nats://u:secret@host:port:port", "nats://:4222", "nats://a:0", "nats://a:65536", "nats://a:-1",
		"http://a:4222", "nats://a:4222,", "nats://a:4222,http://b", "",
	} {
		err := CheckURL(bad)
		require.ErrorContains(t, err, "give one like nats://127.0.0.1:4222", bad)
		if bad != "" { // which Connect takes for the default
			_, again := Connect(bad, ConnectConfig{Wait: time.Millisecond})
			require.Equal(t, err, again)
		}
		require.NotErrorIs(t, err, lease.ErrNoCoordinator)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestPasswordsAndTokensAreNotShown(t *testing.T) {
	for urls, shown := range map[string]string{
		"nats://a:1, nats://me:secret@b:2": "nats://a:1,nats://me:xxxxx@b:2",
		"nats://me:se%cret@b:2":            "nats://me:xxxxx@b:2",
		"nats://me:se://cret@b:2":          "nats://me:xxxxx@b:2",
		"tls://me:s@cret@b:2":              "tls://me:xxxxx@b:2",
		"nats://secret@b:2":                "nats://xxxxx@b:2", // a token
		"me:secret@b:2":                    "me:xxxxx@b:2",
		"secret@b:2":                       "xxxxx@b:2",
		"nats://b:2":                       "nats://b:2",
		"":                                 "",
	} {
		require.Equal(t, shown, Redacted(urls))
	}
}

func TestFirstContactWaitsForAServerThatIsStarting(t *testing.T) {
	addr := nowhere(t)
	var e *Embedded
	var started sync.WaitGroup
	log := &log{}
	started.Go(func() {
		var err error
		if e, err = Embed(addr); err != nil {
			t.Error(err)
		}
	})
	nc, err := Connect("nats://"+addr, ConnectConfig{Wait: 30 * time.Second, Log: log.logger()})
	started.Wait()
	require.NoError(t, err)
	nc.Close()
	e.Close()
}

// silent is an address where everybody is let in and told nothing. heard hears of
// each who comes.
func silent(t *testing.T) (addr string, heard <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	came := make(chan struct{}, 100)
	var listening sync.WaitGroup
	listening.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			came <- struct{}{}
		}
	})
	t.Cleanup(func() {
		l.Close()
		listening.Wait()
	})
	return l.Addr().String(), came
}

// The wait is a day, so a contact that does not hear its context hangs here.
func TestFirstContactEndsWithItsContext(t *testing.T) {
	const day = 24 * time.Hour
	for _, retry := range []bool{false, true} {
		addr, heard := silent(t)
		why := errors.New("enough")
		ctx, stop := context.WithCancelCause(context.Background())
		var stopping sync.WaitGroup
		stopping.Go(func() {
			<-heard
			stop(why)
		})
		_, err := ConnectContext(ctx, "nats://ann:secret@"+addr, ConnectConfig{Wait: day, Retry: retry})
		stopping.Wait()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, addr)
		require.NotContains(t, err.Error(), "secret")

		ctx, cancel := context.WithCancel(context.Background())
		stopping.Go(cancel)
		_, err = ConnectContext(ctx, "nats://"+nowhere(t), ConnectConfig{Wait: day, Retry: retry}) // connections are refused there
		stopping.Wait()
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestAConnectionOutlivesTheContextOfItsFirstContact(t *testing.T) {
	e := embed(t)
	ctx, cancel := context.WithCancel(context.Background())
	nc, err := ConnectContext(ctx, e.URL(), ConnectConfig{Wait: 10 * time.Second})
	require.NoError(t, err)
	defer nc.Close()
	cancel()
	require.NoError(t, nc.FlushWithContext(bounded(t)))
	require.Zero(t, nc.Stats().Reconnects)
}

func TestFirstContactWithASilentServerEndsWithTheWait(t *testing.T) {
	addr, _ := silent(t)
	_, err := Connect("nats://"+addr, ConnectConfig{Wait: 60 * time.Millisecond})
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
	require.ErrorContains(t, err, "within 60ms (no answer); start a coordinator")
}

func TestRetryGivesAConnectionThatGoesOnTrying(t *testing.T) {
	addr := nowhere(t)
	nc := dialed(t, "nats://"+addr, ConnectConfig{Wait: 20 * time.Millisecond, Retry: true})
	c := NewClient(nc, ClientConfig{})
	_, err := c.Acquire(bounded(t), request(1, "acme"))
	require.ErrorIs(t, err, lease.ErrNoCoordinator)

	// A coordinator that starts before its NATS server serves when it is there.
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error)
	go func() { done <- Serve(ctx, nc, ServeConfig{Lessor: granting(), Ready: func() { close(ready) }}) }()
	e, err := Embed(addr)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	<-ready
	_, err = c.Acquire(bounded(t), request(2, "acme"))
	require.NoError(t, err)
	cancel()
	require.NoError(t, <-done)
}

func TestFirstOfSeveralServersThatAnswersIsTaken(t *testing.T) {
	e := embed(t)
	nc := dialed(t, "nats://"+nowhere(t)+", "+e.URL(), ConnectConfig{Wait: time.Second})
	require.Equal(t, e.URL(), nc.ConnectedUrl())
}

func TestFilesThatCannotBeReadAreNamed(t *testing.T) {
	e := embed(t)
	for _, cfg := range []ConnectConfig{{NKey: "missing.nk"}, {Creds: "missing.creds"}, {CA: "missing.pem"}, {Cert: "missing.pem", Key: "missing.key"}} {
		cfg.Wait = time.Second
		_, err := Connect(e.URL(), cfg)
		require.ErrorContains(t, err, "missing.")
		require.Regexp(t, `; name a file with .* in (NKey|Creds|CA|Cert)$`, err.Error())
		require.NotErrorIs(t, err, lease.ErrNoCoordinator)
	}
}

func TestWhatDoesNotGoTogetherIsReported(t *testing.T) {
	require.NoError(t, ConnectConfig{}.Validate())
	err := ConnectConfig{User: "a", Token: "t", Cert: "c", Wait: -1}.Validate()
	require.ErrorContains(t, err, "user and token exclude each other")
	require.ErrorContains(t, err, `the certificate is "c" and its private key ""; give both Cert and Key, or neither`)
	require.ErrorContains(t, err, "a wait of -1ns")
	require.ErrorContains(t, ConnectConfig{Password: "p"}.Validate(), "password without a user")
	_, err = Connect("", ConnectConfig{Password: "p"})
	require.Error(t, err)
}

// TestOperatorsHearOfLostConnections: and of their return.
func TestOperatorsHearOfLostConnections(t *testing.T) {
	e, err := Embed("-1")
	require.NoError(t, err)
	u, err := url.Parse(e.URL())
	require.NoError(t, err)
	log := &log{}
	nc := dialed(t, e.URL(), ConnectConfig{Log: log.logger()})
	e.Close()
	require.Eventually(t, func() bool { return log.holds("connection to NATS is lost") }, 30*time.Second, time.Millisecond)
	e, err = Embed(u.Host)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	require.Eventually(t, func() bool { return log.holds("connected to NATS again") }, 30*time.Second, time.Millisecond)
	require.True(t, nc.IsConnected())
}

// TestWhoWaitsLongForNATSIsToldWhy: once in a while, and it is found when it is there.
func TestWhoWaitsLongForNATSIsToldWhy(t *testing.T) {
	addr := nowhere(t)
	log := &log{}
	var starting sync.WaitGroup
	starting.Go(func() {
		if !eventually(func() bool { return log.holds("waiting for NATS") }) {
			t.Error("nothing is said")
		}
		e, err := Embed(addr)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(e.Close)
	})
	nc := dialed(t, "nats://ann:secret@"+addr, ConnectConfig{Wait: 60 * time.Second, Log: log.logger()})
	starting.Wait()
	require.True(t, nc.IsConnected())
	require.True(t, log.holds("connection refused"))
	require.False(t, log.holds("secret"))
}

// eventually is require.Eventually for goroutines of a test.
func eventually(holds func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return until(ctx, holds) == nil
}

// TestCredentialsThatNATSRefusesLaterAreSaidAndShownAgain: an operator may mend that.
func TestCredentialsThatNATSRefusesLaterAreSaidAndShownAgain(t *testing.T) {
	addr := nowhere(t)
	const good, bad = `authorization { user: ann, password: p }`, `authorization { user: ann, password: other }`
	url, stop := configuredAt(t, addr, good)
	log := &log{}
	nc := dialed(t, url, ConnectConfig{User: "ann", Password: "p", Log: log.logger()})
	stop()
	_, stop = configuredAt(t, addr, bad)
	const said = "NATS refuses the credentials; showing them again"
	require.Eventually(t, func() bool { return log.holds(said) }, 30*time.Second, time.Millisecond)
	require.Eventually(t, func() bool {
		_, err := NewClient(nc, ClientConfig{}).Acquire(bounded(t), request(1, "acme"))
		require.ErrorIs(t, err, lease.ErrNoCoordinator)
		return strings.HasSuffix(err.Error(), "not connected to NATS, which refuses the credentials")
	}, 30*time.Second, time.Millisecond)
	stop()
	configuredAt(t, addr, good)
	require.Eventually(t, nc.IsConnected, 30*time.Second, time.Millisecond)
}

// log is a log to look at.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) holds(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.buf.Bytes(), []byte(s))
}

func (l *log) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.buf.Bytes(), []byte(s))
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
