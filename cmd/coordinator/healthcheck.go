package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"ration/cmd/internal/cli"
)

type healthcheckCommand struct {
	HTTP string `name:"http" help:"HTTP address of the coordinator." default:"127.0.0.1:8422" placeholder:"ADDR"`
}

// Help is the part of the help below the flags' summary.
func (*healthcheckCommand) Help() string {
	return `Asks /readyz and prints the reason if it is not ready.

Example:

  coordinator healthcheck --http 127.0.0.1:8422

` + cli.Codes
}

func (c *healthcheckCommand) run(ctx context.Context, _ *cli.Invocation, s cli.Streams) error {
	at := strings.TrimSuffix(strings.TrimPrefix(c.HTTP, "http://"), "/") // as the start line has it
	if err := address("http", at, "127.0.0.1:8422"); err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(at)
	if host == "" || host == "0.0.0.0" || host == "::" { // what it listens on is not where to go
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	addr := net.JoinHostPort(host, port)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return cli.Misuse("--http %q: %w", c.HTTP, err)
	}
	log.SetOutput(io.Discard)                                                  // net/http says there what a stranger says first
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: it is this machine
	resp, err := client.Do(req)
	if err != nil {
		return unhealthy(addr, err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	reason := strings.TrimSpace(string(body))
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable:
		return fmt.Errorf("not ready: %s", cli.Printable(reason, 200))
	case resp.StatusCode != http.StatusOK || reason != ready:
		return stranger(addr)
	}
	_, err = fmt.Fprintln(s.Out, reason)
	return err
}

// unhealthy says what the failure of a question to addr means.
func unhealthy(addr string, err error) error {
	var operation *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("what listens at http://%s does not answer in time; see what it is doing, or restart it", addr)
	case errors.As(err, &operation) && operation.Op == "dial":
		return fmt.Errorf("nothing answers at http://%s/readyz (%w); start a coordinator, or name its address with --http", addr, operation.Err)
	}
	return stranger(addr)
}

// stranger is the error of an answer that no coordinator gives.
func stranger(addr string) error {
	return fmt.Errorf("what answers at %s is no coordinator's HTTP; its start line says where that is, name it with --http", addr)
}
