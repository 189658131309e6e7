package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"ration/cmd/internal/cli"
)

const (
	defaultHTTPHost = "127.0.0.1"
	defaultHTTPPort = 8422
	// httpPorts is how many ports are tried where no address is given.
	httpPorts = 100
	// ready is what /readyz answers where all is well.
	ready = "ready"
)

// web is the HTTP side of a coordinator: health and metrics.
type web struct {
	addr     string
	listener net.Listener
	server   http.Server
	done     chan struct{}
}

// listenHTTP listens on addr, or on the first free default port if addr is
// empty.
func listenHTTP(addr string, s *site) (*web, error) {
	l, err := listen(addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { answer(w, s.alive(r.Context()), "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.ready(), ready) })
	mux.Handle("GET /metrics", metricsHandler(s))
	return &web{
		addr:     l.Addr().String(),
		listener: l,
		server:   http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second},
		done:     make(chan struct{}),
	}, nil
}

func listen(addr string) (net.Listener, error) {
	if addr != "" {
		l, err := net.Listen("tcp", addr)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("HTTP address %s is in use; stop what listens there, or choose another with --http", addr)
		case err != nil:
			return nil, fmt.Errorf("listening for HTTP on %s: %w; give --http an address like 127.0.0.1:8422", addr, err)
		}
		return l, nil
	}
	for port := defaultHTTPPort; port < defaultHTTPPort+httpPorts; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort(defaultHTTPHost, strconv.Itoa(port)))
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("listening for HTTP: %w; choose another address with --http", err)
		}
	}
	return nil, fmt.Errorf("the ports %d to %d of %s are all in use; choose another address with --http",
		defaultHTTPPort, defaultHTTPPort+httpPorts-1, defaultHTTPHost)
}

// start serves until close.
func (w *web) start(voice *cli.Voice) {
	go func() {
		defer close(w.done)
		if err := w.server.Serve(w.listener); !errors.Is(err, http.ErrServerClosed) {
			voice.Complain(fmt.Errorf("HTTP on %s has ended: %w", w.addr, err))
		}
	}()
}

// close lets what is being answered finish, for a moment.
func (w *web) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if w.server.Shutdown(ctx) != nil {
		w.server.Close()
	}
	<-w.done
}

// answer writes 200 and a word, or 503 and what is wrong.
func answer(w http.ResponseWriter, err error, word string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, err)
		return
	}
	fmt.Fprintln(w, word)
}
