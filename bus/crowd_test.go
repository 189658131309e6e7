package bus

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// door lets everybody in who comes to an address, shows them out, and notes when.
type door struct {
	listener net.Listener
	mu       sync.Mutex
	came     []time.Time
	open     sync.WaitGroup
}

func newDoor(t *testing.T, addr string) *door {
	t.Helper()
	d := &door{}
	require.Eventually(t, func() (ok bool) {
		var err error
		d.listener, err = net.Listen("tcp", addr)
		return err == nil
	}, 30*time.Second, time.Millisecond)
	d.open.Go(func() {
		for {
			c, err := d.listener.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			d.came = append(d.came, time.Now())
			d.mu.Unlock()
			c.Close()
		}
	})
	return d
}

func (d *door) close() {
	d.listener.Close()
	d.open.Wait()
}

// spread is in how many of the hundred hundredths of a second somebody came, at most, over
// the seconds since the door was opened.
func (d *door) spread() (most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seconds := map[int64]map[int64]bool{}
	for _, at := range d.came {
		second := at.Unix()
		if seconds[second] == nil {
			seconds[second] = map[int64]bool{}
		}
		seconds[second][at.UnixMilli()/10] = true
		most = max(most, len(seconds[second]))
	}
	return most
}

// TestACrowdLooksForNATSAtMomentsOfItsOwn is B157: two hundred connections lose NATS in
// one moment. While it is away they do not come together but all over the second, and when
// it is back each finds it.
func TestACrowdLooksForNATSAtMomentsOfItsOwn(t *testing.T) {
	e, err := Embed("-1")
	require.NoError(t, err)
	u, err := url.Parse(e.URL())
	require.NoError(t, err)
	crowd := make([]*nats.Conn, 200)
	for i := range crowd {
		crowd[i] = dialed(t, e.URL(), ConnectConfig{})
		require.Equal(t, 400*time.Millisecond, crowd[i].Opts.ReconnectJitter)
		require.Equal(t, 100*time.Millisecond, crowd[i].Opts.ReconnectWait)
	}
	e.Close()
	d := newDoor(t, u.Host)
	require.Eventually(t, func() bool { return d.spread() >= 80 }, 60*time.Second, 10*time.Millisecond)
	d.close()

	e, err = Embed(u.Host)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: granting()})
	for i, nc := range crowd {
		c := NewClient(nc, ClientConfig{})
		require.Eventually(t, func() bool {
			_, err := c.Acquire(bounded(t), request(uint64(i), "acme"))
			return err == nil
		}, 60*time.Second, 10*time.Millisecond)
	}
}
