package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"ration/cmd/internal/cli"
)

// A policy is checked before it is put to use.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "ration.yaml")
	_ = os.WriteFile(file, []byte("limits:\n  - key: demo\n    rules: [5/eon]\n"), 0o600)
	code := run(context.Background(), []string{"check", "--json", file}, cli.Streams{Out: discard{}, Err: os.Stdout})
	fmt.Println("exit code", code)
	// Output: exit code 1
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
