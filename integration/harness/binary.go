package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// packages are the binaries that can be built, by name.
var packages = map[string]string{
	"coordinator":    "ration/cmd/coordinator",
	"worker":         "ration/cmd/worker",
	"strictupstream": "ration/integration/upstream/cmd/strictupstream",
}

// Bin is a folder of built binaries.
type Bin string

// Path is where the binary of that name is.
func (b Bin) Path(name string) string { return filepath.Join(string(b), name) }

// Build builds the named binaries (coordinator, worker, strictupstream) into
// dir, with the race detector if the caller has it. It has to be called from a
// folder of the module.
func Build(ctx context.Context, dir string, names ...string) (Bin, error) {
	bin := Bin(dir)
	for _, name := range names {
		pkg, ok := packages[name]
		if !ok {
			return bin, fmt.Errorf("harness: there is no binary %q", name)
		}
		args := []string{"build", "-o", bin.Path(name)}
		if raceDetector {
			args = append(args, "-race")
		}
		out, err := exec.CommandContext(ctx, "go", append(args, pkg)...).CombinedOutput()
		if err != nil {
			return bin, fmt.Errorf("harness: building %s: %w\n%s", name, err, out)
		}
	}
	return bin, nil
}

// built is what the tests of one process share, so that each binary is built
// once.
var built struct {
	sync.Mutex
	dir    string
	failed map[string]error // by name; nil for one that is there
}

// binaries gives the shared folder with the named binaries in it. With
// RATION_BIN in the environment that folder is taken as it is and nothing built.
func binaries(ctx context.Context, names ...string) (Bin, error) {
	if dir := os.Getenv("RATION_BIN"); dir != "" {
		return Bin(dir), nil
	}
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "ration-bin-")
		if err != nil {
			return "", err
		}
		built.dir, built.failed = dir, map[string]error{}
		if _, err := Root(ctx); err != nil {
			return "", err
		}
	}
	for _, name := range names {
		err, tried := built.failed[name]
		if !tried {
			_, err = Build(ctx, built.dir, name)
			built.failed[name] = err
		}
		if err != nil {
			return "", err
		}
	}
	return Bin(built.dir), nil
}

// Main runs a package's tests and removes the binaries that they had built. Its
// result is for os.Exit; a TestMain that uses New ends with os.Exit(Main(m)).
func Main(m interface{ Run() int }) int {
	code := m.Run()
	built.Lock()
	defer built.Unlock()
	if built.dir != "" {
		os.RemoveAll(built.dir)
		built.dir = ""
	}
	return code
}
