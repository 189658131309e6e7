package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root gives the folder of the module. On its way it looks at every folder in
// it: go test remembers what a test has looked at, and does not see what the
// commands that a test runs have read. So a test that builds or lists packages
// runs anew after any of them has changed.
func Root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("harness: finding the module: %w", err)
	}
	root := strings.TrimSpace(string(out))
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went away meanwhile
		}
		if err == nil && d.IsDir() && path != root && (d.Name() == "bin" || d.Name()[0] == '.') {
			return fs.SkipDir
		}
		return err
	})
	return root, err
}
