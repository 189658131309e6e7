package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"ration/cmd/internal/cli"
)

// getTimeout is how long an upstream may take to answer.
const getTimeout = 30 * time.Second

// errNeverSent says that a call failed before any of it left.
var errNeverSent = errors.New("never sent")

// getter gets one URL, each time with one attempt on the wire.
//
// net/http sends a GET again by itself if a connection that was used before
// breaks without an answer, and that would be a spend without a token. So no
// connection is used twice, HTTP/2, which may resend too, is off, and a redirect
// is an answer.
type getter struct {
	url    string
	client http.Client
}

func newGetter(raw string) (*getter, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, cli.Misuse("--get %q is no URL; give one like http://127.0.0.1:8080/", raw)
	}
	return &getter{raw, http.Client{
		Transport: &http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			DisableKeepAlives: true,
			TLSNextProto:      map[string]func(string, *tls.Conn) http.RoundTripper{},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// do gets the URL and gives the status, once the answer has been read. It stops
// when one of the contexts ends. An error wraps errNeverSent if there was no
// connection to send on.
func (g *getter) do(lease, hard context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(hard, getTimeout)
	defer cancel()
	defer context.AfterFunc(lease, cancel)()
	var left atomic.Bool
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { left.Store(true) }, // from here on it may have
	}), http.MethodGet, g.url, nil)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNeverSent, err)
	}
	resp, err := g.client.Do(req)
	if err != nil {
		if !left.Load() {
			return 0, fmt.Errorf("%w: %w", errNeverSent, err)
		}
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, fmt.Errorf("reading the answer: %w", err)
	}
	return resp.StatusCode, nil
}
