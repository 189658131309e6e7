package bus

import (
	"context"
	"net"
	"sync"
	"time"
)

// dialer dials for one connection to NATS. During first contact, until release,
// the end of its context cuts off whatever is under way: the look-up of a name, a
// handshake with a server that says nothing. Later on only the timeout bounds a
// dial.
type dialer struct {
	timeout time.Duration

	mu    sync.Mutex
	first context.Context
	kept  []func() bool // each takes a connection out of the context's reach
}

func newDialer(first context.Context, timeout time.Duration) *dialer {
	return &dialer{timeout: timeout, first: first}
}

// Dial connects to address, trying each of the addresses that its name has.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.mu.Lock()
	first := d.first
	d.mu.Unlock()
	dialing := net.Dialer{Timeout: d.timeout}
	c, err := dialing.DialContext(first, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.first == first {
		d.kept = append(d.kept, context.AfterFunc(first, func() { c.Close() }))
	}
	return c, nil
}

// release ends first contact. A connection whose context had ended before is lost.
func (d *dialer) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, keep := range d.kept {
		keep()
	}
	d.first, d.kept = context.Background(), nil
}
