package harness

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Patience bounds what is waited for in tests. It is far above what anything
// takes on a loaded machine.
const Patience = time.Minute

// every is how often a condition is looked at.
const every = 10 * time.Millisecond

// Until looks at a condition until holds gives nil, or ctx ends: then the error
// says what was waited for and why it did not hold the last time.
func Until(ctx context.Context, what string, holds func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		// Looked at once more after ctx has ended, so that what came true in the
		// last moment counts.
		last := ctx.Err() != nil
		err := holds()
		switch {
		case err == nil:
			return nil
		case last:
			return fmt.Errorf("harness: waiting for %s: %w: %w", what, context.Cause(ctx), err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// FreeAddr gives an address on the loopback, "127.0.0.1:41234", on which nobody
// listened a moment ago.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("harness: finding a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// get gives the body of a page whose status is 200.
func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %.200s", url, resp.Status, body)
	}
	return body, err
}
