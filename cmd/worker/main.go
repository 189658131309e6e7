package main

import (
	"context"
	"os"

	"ration/cmd/internal/cli"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], cli.Process()))
}
