package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"ration/integration/harness"

	"github.com/stretchr/testify/require"
)

// list asks go, once, for every package of the module. One that does not
// compile is listed too, as long as its imports can be read.
func list(t *testing.T) []pkg {
	t.Helper()
	pkgs, err := listed()
	require.NoError(t, err)
	require.NotEmpty(t, pkgs)
	return pkgs
}

var listed = sync.OnceValues(func() ([]pkg, error) {
	ctx := context.Background()
	if _, err := harness.Root(ctx); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-e", "-json", "ration/...").Output()
	if err != nil {
		return nil, err
	}
	var pkgs []pkg
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
})

// parse reads the sources of a package, without its tests.
func parse(t *testing.T, p pkg) []*ast.File {
	t.Helper()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, f)
	}
	return files
}

func TestImportsRunDownwardsOnly(t *testing.T) {
	for _, edge := range badEdges(list(t)) {
		t.Error(edge)
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range list(t) {
		files := parse(t, p)
		exports := false
		for _, f := range files {
			exports = exports || ast.FileExports(f)
		}
		for _, lack := range undescribed(p, exports && !internal(p.ImportPath)) {
			t.Error(lack)
		}
	}
}

func TestCoreReadsNoClockAndStartsNothing(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath != "ration/algo" && p.ImportPath != "ration/lease" {
			continue
		}
		for i, f := range parse(t, p) {
			for _, what := range impurities(f) {
				t.Errorf("%s/%s has %s", p.ImportPath, p.GoFiles[i], what)
			}
		}
	}
}

// impurities gives what in a file reads a clock, waits or starts a goroutine.
func impurities(f *ast.File) []string {
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, "a go statement")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
				found = append(found, "time."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// The tests above must be able to fail.
func TestBadEdgesAreFound(t *testing.T) {
	for _, c := range []struct{ from, imports, tests string }{
		{"ration/algo", "ration/lease", ""},
		{"ration/algo", "github.com/goccy/go-yaml", ""},
		{"ration/algo", "sync/atomic", ""},
		{"ration/lease", "ration/bus", ""},
		{"ration/lease", "net/http", ""},
		{"ration/coordinator", "ration/worker", ""},
		{"ration/diskbackend", "ration/coordinator", ""},
		{"ration/coordinator", "go.etcd.io/bbolt", ""},
		{"ration/cmd/coordinator", "go.etcd.io/bbolt", ""},
		{"ration/coordinator", "github.com/nats-io/nats.go", ""},
		{"ration/worker", "ration", ""},
		{"ration/bus", "ration/coordinator", ""},
		{"ration/bus", "github.com/alecthomas/kong", ""},
		{"ration", "ration/cmd/worker", ""},
		{"ration", "ration/integration/oracle", ""},
		{"ration/cmd/coordinator", "github.com/nats-io/nats-server/v2/server", ""},
		{"ration/cmd/coordinator", "github.com/stretchr/testify/require", ""},
		{"ration/cmd/coordinator", "ration/worker", ""},
		{"ration/integration/oracle", "ration/algo", ""},
		{"ration/integration/upstream", "ration/lease", ""},
		{"ration/integration/upstream/cmd/strictupstream", "ration", ""},
		{"ration/integration/harness", "github.com/stretchr/testify/require", ""},
		{"ration/integration/sim", "ration/cmd/worker", ""},
		{"ration/integration/oracle", "", "ration/algo"},
		{"ration/lease", "", "github.com/nats-io/nats.go"},
		{"ration/lease", "", "ration/cmd/internal/cli"},
		{"ration/novelty", "", ""},
	} {
		p := pkg{ImportPath: c.from}
		if c.imports != "" {
			p.Imports = []string{"errors", c.imports}
		}
		if c.tests != "" {
			p.XTestImports = []string{"testing", c.tests}
		}
		require.Len(t, badEdges([]pkg{p}), 1, "%+v", c)
	}
	require.Equal(t, []string{"ration/algo imports ration/lease: imports run downwards only, and this one does not"},
		badEdges([]pkg{{ImportPath: "ration/algo", Imports: []string{"ration/lease"}}}))
}

func TestGoodEdgesAreNone(t *testing.T) {
	require.Empty(t, badEdges([]pkg{
		{ImportPath: "ration/algo", Imports: []string{"math/bits", "time"}, TestImports: []string{"github.com/stretchr/testify/require"}},
		{ImportPath: "ration/lease", Imports: []string{"ration/algo", "context", "github.com/goccy/go-yaml/ast"}, XTestImports: []string{"ration/integration/oracle"}},
		{ImportPath: "ration", Imports: []string{"ration/worker", "ration/bus", "ration/coordinator"}},
		{ImportPath: "ration/bus", Imports: []string{"github.com/nats-io/nats.go/micro", "ration/lease"}},
		{ImportPath: "ration/cmd/worker", Imports: []string{"ration", "github.com/alecthomas/kong", "ration/cmd/internal/cli"}},
		{ImportPath: "ration/integration/sim", Imports: []string{"ration/worker", "ration/lease", "ration/integration/oracle"}},
	}))
}

func TestLackingFilesAndImpuritiesAreFound(t *testing.T) {
	require.Len(t, undescribed(pkg{ImportPath: "a", Name: "a"}, true), 2)
	require.Len(t, undescribed(pkg{ImportPath: "a", Name: "a", GoFiles: []string{"doc.go"}}, false), 0)
	require.Len(t, undescribed(pkg{ImportPath: "a", Name: "main"}, true), 1)
	require.Len(t, undescribed(pkg{ImportPath: "a", Name: "a", GoFiles: []string{"doc.go"}, XTestGoFiles: []string{"example_test.go"}}, true), 0)
	require.True(t, internal("ration/cmd/internal/cli"))
	require.False(t, internal("ration/cmd/worker"))
	for text, want := range map[string]int{
		"go f()": 1, "time.Now()": 1, "_ = time.Second": 0, "time.Sleep(time.Second)": 1, "f := time.Since; _ = f": 1,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", fmt.Sprintf("package x\nimport \"time\"\nfunc g() { %s }", text), 0)
		require.NoError(t, err)
		require.Len(t, impurities(f), want, text)
	}
}
