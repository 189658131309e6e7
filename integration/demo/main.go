package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"ration/integration/harness"
)

func main() {
	bin := flag.String("bin", "bin", "`folder` of the binaries to run")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: %q is no flag\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Printf("%d workers share one contract, %s, and have %d calls to make: about %.0f seconds.\n\n",
		len(shares), contract, total(), ideal(0).Seconds())
	seen, err := run(ctx, harness.Bin(*bin))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	seen.write(os.Stdout)
	if !seen.good() {
		os.Exit(1)
	}
}
