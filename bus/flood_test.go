package bus

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
)

// Serve asks a leader without waiting for it.
var _ Beginner = (*coordinator.Leader)(nil)

// led serves a leader until the test ends.
func led(t testing.TB, url, policy string, cfg ServeConfig) {
	t.Helper()
	p, err := lease.ParsePolicy("test.yaml", []byte(policy))
	require.NoError(t, err)
	c, err := coordinator.New(coordinator.DefaultConfig(p))
	require.NoError(t, err)
	nc := dialed(t, url, ConnectConfig{})
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	cfg.Ready = func() { close(ready) }
	go func() {
		done <- c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			cfg.Lessor, cfg.Recalls = l, l.AllRecalls
			return Serve(ctx, nc, cfg)
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	<-ready
}

func body(seq int, patience, key string) []byte {
	return fmt.Appendf(nil, `{"v":1,"id":"flood.1/%d","keys":[%q],"want":{"tokens":1},"need":{"tokens":1},"sent":"0s","patience":%q}`, seq, key, patience)
}

// TestFloodOnOneKeyShutsNobodyOut: of more requests than there are places, all for
// one key that has no tokens, those beyond its share are refused, and meanwhile other
// keys of the tenant, other tenants and reports are served.
func TestFloodOnOneKeyShutsNobodyOut(t *testing.T) {
	e := embed(t)
	led(t, e.URL(), `limits: [{key: "{tenant}/{key}", rules: [1/1d]}]`, ServeConfig{most: 3000})
	hand := dialed(t, e.URL(), ConnectConfig{})
	subject := "ration.v1.default.p.0.acquire."

	var keyFull atomic.Int64
	inbox := nats.NewInbox()
	sub, err := hand.Subscribe(inbox, func(m *nats.Msg) {
		text := string(m.Data)
		if strings.Contains(text, `"code":"line_full"`) && strings.Contains(text, `requests of key \"bad/key\"`) {
			keyFull.Add(1)
		}
	})
	require.NoError(t, err)
	require.NoError(t, sub.SetPendingLimits(-1, -1))
	sent := 0
	flood := func(n int) {
		for range n {
			require.NoError(t, hand.PublishRequest(subject+"bad", inbox, body(sent, "1h", "bad/key")))
			sent++
		}
	}
	flood(3000) // and a key has a third of the places
	require.Eventually(t, func() bool {
		flood(10)
		return keyFull.Load() > 0
	}, 30*time.Second, time.Millisecond)

	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	a, err := c.Acquire(bounded(t), request(1, "good/key"))
	require.NoError(t, err)
	require.Equal(t, lease.Granted, a.Outcome)
	require.Eventually(t, func() bool { // once what came faster than it was read is read
		a, err = c.Acquire(bounded(t), request(1, "bad/other"))
		return err == nil
	}, 30*time.Second, time.Millisecond)
	require.Equal(t, lease.Granted, a.Outcome)
	reply, err := c.Report(bounded(t), lease.Report{Holder: holder, GivenUp: []lease.GivenUp{{ID: request(9).ID, Keys: []lease.Key{"bad/key"}}}})
	require.NoError(t, err)
	require.Len(t, reply.Acknowledged, 1)
}

// TestFloodThatIsNotReadShutsNobodyOut: a lessor that stands still, as while its
// mirror is away, holds the messages of one tenant up to that one's share.
func TestFloodThatIsNotReadShutsNobodyOut(t *testing.T) {
	e := embed(t)
	f := granting()
	f.acquire = func(ctx context.Context, r lease.Request) (lease.Answer, error) {
		if r.Keys[0].Tenant() == "bad" {
			<-ctx.Done()
		}
		return grantOf(r), ctx.Err()
	}
	stop := serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f, most: 400})
	hand := dialed(t, e.URL(), ConnectConfig{})
	refused := make(chan string, 400)
	inbox := nats.NewInbox()
	_, err := hand.Subscribe(inbox, func(m *nats.Msg) { refused <- string(m.Data) })
	require.NoError(t, err)
	for i := range 400 { // each on a key of its own
		require.NoError(t, hand.PublishRequest("ration.v1.default.p.0.acquire.bad", inbox, body(i, "1h", fmt.Sprintf("bad/%d", i))))
	}
	for range 200 { // a tenant alone has half of the places
		require.Contains(t, <-refused, `requests of tenant token \"bad\" are under way as may be, 200 of 200 of all`)
	}
	c := NewClient(hand, ClientConfig{})
	_, err = c.Acquire(bounded(t), request(1, "good"))
	require.NoError(t, err)
	stop()
	for range 200 {
		require.Contains(t, <-refused, `"code":"stopped"`)
	}
}

// TestLargeMessageIsRefusedByName is B155, for who is asked: and neither it nor many of it harm who comes
// after.
func TestLargeMessageIsRefusedByName(t *testing.T) {
	e := embed(t)
	led(t, e.URL(), `limits: [{key: "{tenant}", rules: [1000/1s]}]`, ServeConfig{})
	hand := dialed(t, e.URL(), ConnectConfig{})
	for _, verb := range []string{"acquire", "report"} {
		subject := "ration.v1.default.p.0." + verb + ".k"
		for _, size := range []int{MaxMessage + 1, 1 << 20} {
			m, err := hand.RequestWithContext(bounded(t), subject, []byte(strings.Repeat(" ", size)))
			require.NoError(t, err)
			require.Contains(t, string(m.Data), fmt.Sprintf("it has %d bytes, at most 65536 are allowed", size))
			require.Contains(t, string(m.Data), `"code":"bad_request"`)
		}
		for range 100 {
			require.NoError(t, hand.PublishRequest(subject, "nowhere", make([]byte, 1<<20)))
		}
	}
	require.Eventually(t, func() bool { // some may have been dropped among the large ones
		m, err := hand.RequestWithContext(bounded(t), "ration.v1.default.p.0.acquire.k", body(1, "0s", "k"))
		require.NoError(t, err)
		return strings.Contains(string(m.Data), "granted")
	}, 30*time.Second, time.Millisecond)
	require.True(t, hand.IsConnected())
	require.Zero(t, hand.Stats().Reconnects)
}
