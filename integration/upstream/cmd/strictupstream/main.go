package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"ration/integration/upstream"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "strictupstream:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. Its first line on stderr tells the address, and
// that it accepts calls.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("strictupstream", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "strictupstream holds its callers to a contract, answers 429 when they break it, and tells at /report what it saw.\n\nFlags:\n")
		flags.PrintDefaults()
	}
	listen := flags.String("listen", "127.0.0.1:0", "`address` to serve on; port 0 takes a free one")
	delay := flags.Duration("delay", 0, "time until an answer, unless the call says ?delay=20ms itself")
	var contracts []upstream.Contract
	flags.Func("contract", "`rules` that callers must keep, as 5/1s, 12/3s or /search=4 concurrent; repeatable",
		func(text string) error {
			c, err := upstream.ParseContract(text)
			contracts = append(contracts, c)
			return err
		})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	in, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	strict := upstream.New(contracts, *delay)
	server := &http.Server{Handler: strict, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(in) }()
	fmt.Fprintf(stderr, "strictupstream: serving http://%s\n", in.Addr())

	select {
	case err = <-served:
		return err
	case <-ctx.Done():
	}
	quiet, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if server.Shutdown(quiet) != nil {
		server.Close() // a call that works on for longer is not waited for
	}
	<-served
	out := json.NewEncoder(stdout)
	out.SetIndent("", "  ")
	return out.Encode(strict.Report())
}
