package harness_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ration/integration/harness"
)

// The test binary also plays the processes that the tests start: a link to it
// plays what its name says.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "coordinator":
		playCoordinator(os.Args[1:])
	case "worker":
		fmt.Println(strings.Join(os.Args[1:], " "))
	case "parent":
		playParent(os.Args[1])
	default:
		os.Exit(harness.Main(m))
	}
}

// playCoordinator is ready only when it has been asked three times.
func playCoordinator(args []string) {
	fmt.Println(strings.Join(args, " "))
	if slices.Contains(args, "--broken") {
		fmt.Fprintln(os.Stderr, "coordinator: the policy is bad")
		os.Exit(2)
	}
	var asked atomic.Int64
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	})
	l, err := net.Listen("tcp", args[slices.Index(args, "--http")+1])
	if err != nil {
		panic(err)
	}
	panic(http.Serve(l, nil))
}

// playParent starts an upstream and never ends by itself.
func playParent(bin string) {
	u, err := harness.Bin(bin).Upstream(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println("serving", u.URL)
	select {}
}

// stage gives a folder in which the test binary stands under these names.
func stage(t *testing.T, names ...string) harness.Bin {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return harness.Bin(dir)
}
