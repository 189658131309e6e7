package bus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

func TestSpreadOfAnAnnouncementIsReadWithSense(t *testing.T) {
	for body, want := range map[string]time.Duration{
		`{"v":1,"epoch":"1","mark":"2","spread":"850us"}`: 850 * time.Microsecond,
		`{"v":1,"epoch":"1","mark":"2"}`:                  0,
		`{"v":1,"spread":"-5s"}`:                          0,
		`{"v":1,"spread":"soon"}`:                         0,
		`{"v":1,"spread":"100h"}`:                         time.Second,
		`no message`:                                      0,
	} {
		require.Equal(t, want, spreadOf([]byte(body)), body)
	}
}

// Who waits for a leader that is gone asks the one that announces itself, at a moment
// of the time that this one says.
func TestWaitersAskANewLeaderWithinItsSpread(t *testing.T) {
	server := embed(t)
	client := NewClient(dialed(t, server.URL(), ConnectConfig{}), ClientConfig{})
	const waiters = 50
	asked := make(chan struct{}, waiters)
	stopped := make(chan struct{})
	stopOld := serve(t, dialed(t, server.URL(), ConnectConfig{}), ServeConfig{Lessor: &fake{
		acquire: func(context.Context, lease.Request) (lease.Answer, error) {
			select {
			case asked <- struct{}{}:
			default: // it hears what the new leader is asked, too
			}
			<-stopped
			return lease.Answer{}, errors.New("it leads no more")
		},
	}})
	answered := make(chan error, waiters)
	for n := range waiters {
		go func() {
			_, err := client.Acquire(bounded(t), request(uint64(n+1), "acme"))
			answered <- err
		}()
	}
	for range waiters {
		<-asked
	}
	serve(t, dialed(t, server.URL(), ConnectConfig{}), ServeConfig{Lessor: granting(), Spread: 100 * time.Millisecond})
	for range waiters {
		require.NoError(t, <-answered)
	}
	client.leads.mu.Lock()
	require.Equal(t, 100*time.Millisecond, client.leads.heard[0].spread)
	client.leads.mu.Unlock()
	close(stopped)
	stopOld()

	client.leads.heard[0].spread = time.Second
	over, cancel := context.WithCancel(t.Context())
	cancel()
	client.pause(over, 0) // and it ends with its caller
}
