package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	if err := address("http", c.HTTP, "127.0.0.1:8422"); err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(c.HTTP)
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
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: it is this machine
	resp, err := client.Do(req)
	if err != nil {
		var operation *net.OpError
		if errors.As(err, &operation) {
			err = operation.Err
		}
		return fmt.Errorf("nothing answers at http://%s/readyz (%w); start a coordinator, or name its address with --http", addr, err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	reason := strings.TrimSpace(string(body))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", reason)
	}
	_, err = fmt.Fprintln(s.Out, reason)
	return err
}
