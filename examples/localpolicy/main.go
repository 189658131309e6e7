package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"ration"
)

//go:embed ration.yaml
var policy string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "localpolicy:", err)
		os.Exit(1)
	}
}

// run lets 20 callers call at once and writes when each was let go.
func run(ctx context.Context, out io.Writer) error {
	client, err := ration.Local(policy)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	search, err := client.Limiter("acme/search")
	if err != nil {
		return err
	}
	errs := make([]error, 20)
	turns := make(chan time.Time, len(errs))
	began := time.Now()
	var callers sync.WaitGroup
	for i := range errs {
		callers.Go(func() {
			if errs[i] = search.Wait(ctx); errs[i] == nil {
				turns <- time.Now() // here the call would be made
			}
		})
	}
	go func() {
		callers.Wait()
		close(turns)
	}()
	n := 0
	for at := range turns {
		n++
		fmt.Fprintf(out, "call %2d at %.1f s\n", n, at.Sub(began).Seconds())
	}
	return errors.Join(errs...)
}
