package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"ration"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	listen := flag.String("listen", "127.0.0.1:8000", "`address` to serve on")
	upstream := flag.String("upstream", "http://127.0.0.1:8080/", "`URL` to call for each request")
	key := flag.String("key", "acme/search", "`key` of the upstream's limit")
	flag.Parse()

	client, err := ration.Connect(os.Getenv("NATS_URL"))
	if err != nil {
		return err
	}
	limiter, err := client.Limiter(*key)
	if err != nil {
		return errors.Join(err, client.Close(ctx))
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return errors.Join(err, client.Close(ctx))
	}
	fmt.Fprintf(os.Stderr, "service: http://%s calls %s\n", listener.Addr(), *upstream)
	server := http.Server{Handler: newSearch(limiter, *upstream), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err = <-served:
	case <-ctx.Done():
	}

	// First the requests, then what they have left of their leases.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(clean), client.Close(clean))
}
