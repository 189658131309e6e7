package bus

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestOversizedHarmsNobodyElse is B155: what is too large is refused here, by name, and is
// not sent; others of the connection go on.
func TestOversizedHarmsNobodyElse(t *testing.T) {
	url := configured(t, "max_payload: 512")
	serve(t, dialed(t, url, ConnectConfig{}), ServeConfig{
		Lessor: granting(),
		Status: func(context.Context, lease.Key) (any, error) { return strings.Repeat("s", 4096), nil },
	})
	nc := dialed(t, url, ConnectConfig{})
	c := NewClient(nc, ClientConfig{})
	for says, keys := range map[string][]lease.Key{
		"9 keys":      {"a", "a", "a", "a", "a", "a", "a", "a", "a"},
		"at most":     {lease.Key(strings.Repeat("k", 2<<20))},
		"max_payload": {lease.Key(strings.Repeat("k", 1024))},
		"two tenants": {"a/x", "b/x"},
		"no key":      nil,
	} {
		_, err := c.Acquire(bounded(t), request(1, keys...))
		require.ErrorIs(t, err, lease.ErrBadRequest, says)
		require.ErrorContains(t, err, says)
	}
	sent := nc.Stats().OutMsgs
	many := make([]lease.Request, 50_000)
	for i := range many {
		many[i] = request(uint64(i), "a")
	}
	_, err := c.AcquireAll(bounded(t), many)
	require.ErrorIs(t, err, lease.ErrBadRequest)
	require.ErrorContains(t, err, "50000 requests")
	require.Equal(t, sent, nc.Stats().OutMsgs)
	_, err = c.Status(bounded(t), "")
	require.ErrorIs(t, err, lease.ErrBadRequest)
	require.ErrorContains(t, err, "ask for one key")
	_, err = c.Acquire(bounded(t), request(2, "a"))
	require.NoError(t, err)
	require.Zero(t, nc.Stats().Reconnects)
}

func TestClosedConnectionIsNoCoordinator(t *testing.T) {
	e := embed(t)
	nc := dialed(t, e.URL(), ConnectConfig{})
	c := NewClient(nc, ClientConfig{})
	ended := make(chan error)
	started := make(chan struct{})
	go func() {
		close(started)
		ended <- c.Recalls(context.Background(), holder, func(lease.Recall) {})
	}()
	<-started
	nc.Close()
	require.ErrorIs(t, <-ended, lease.ErrNoCoordinator)
	_, err := c.Acquire(bounded(t), request(1, "acme"))
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
	require.ErrorIs(t, NewClient(nc, ClientConfig{}).Recalls(bounded(t), holder, nil), lease.ErrNoCoordinator)
	require.Eventually(t, func() bool { return watchOf(nc) == nil }, 30*time.Second, time.Millisecond)
}

func TestAnswersThatMakeNoSenseAreTheCoordinatorsFault(t *testing.T) {
	e := embed(t)
	hand := dialed(t, e.URL(), ConnectConfig{})
	answers := make(chan string, 1)
	_, err := hand.Subscribe("ration.v1.default.>", func(m *nats.Msg) { _ = m.Respond([]byte(<-answers)) })
	require.NoError(t, err)
	require.NoError(t, hand.Flush())
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	for body, sentinel := range map[string]error{
		"":        lease.ErrInternal,
		"{}":      lease.ErrInternal,
		`{"v":2}`: lease.ErrFormat,
		`{"v":1,"id":"shell-1.7f3a/2","outcome":"ended","epoch":"1.1"}`: lease.ErrInternal, // another's
		`{"v":1,"error":{"code":"line_full"}}`:                          lease.ErrLineFull,
	} {
		answers <- body
		_, err := c.Acquire(bounded(t), request(1, "acme"))
		require.ErrorIs(t, err, sentinel, body)
		answers <- body
		_, err = c.Report(bounded(t), lease.Report{Holder: holder, Counts: []lease.Count{{ID: request(1).ID, Keys: []lease.Key{"acme"}}}})
		if !strings.Contains(body, "ended") {
			require.ErrorIs(t, err, sentinel, body)
		}
	}
}
