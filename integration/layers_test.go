package integration_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// layer says what the packages that its pattern matches may import, besides the
// standard library. A pattern is a path in the module, or one
// that ends in "/..." for all below it. The first that matches holds.
type layer struct {
	pattern string
	module  []string // patterns of the module's packages
	outside []string // prefixes of other modules' packages; "*" is any not kept to others
	never   []string // standard packages and folders of them that it must not import
}

// impure is what a package that is handed time and does no IO has no use for.
var impure = []string{"sync", "os", "net", "log", "math/rand", "runtime", "unsafe"}

// layers is the layering, from below. What no pattern matches has no place yet.
var layers = []layer{
	{pattern: "algo", never: append(impure, "context")},
	{pattern: "internal/recordtext", module: []string{"lease", "algo"}, never: impure},
	{pattern: "internal/mirrortest", module: []string{"lease", "algo"}, outside: []string{"github.com/stretchr/testify"}},
	{pattern: "internal/tsc", outside: []string{"golang.org/x/sys"}},
	{pattern: "internal/...", never: append(impure, "context")},
	{pattern: "lease", module: []string{"internal/table", "algo"}, outside: []string{"github.com/goccy/go-yaml", "github.com/google/btree"}, never: impure},
	{pattern: "coordinator", module: []string{"internal/table", "lease", "algo"}, outside: []string{"golang.org/x/sync"}},
	{pattern: "redisbackend", module: []string{"internal/recordtext", "lease", "algo"}, outside: []string{"github.com/redis/go-redis/v9"}},
	{pattern: "worker", module: []string{"internal/tsc", "lease", "algo"}, outside: []string{"golang.org/x/sync", "golang.org/x/sys"}},
	{pattern: "bus", module: []string{"lease", "algo"},
		outside: []string{"github.com/nats-io/nats.go", "github.com/nats-io/nats-server/v2"}},
	{pattern: "diskbackend", module: []string{"internal/recordtext", "lease", "algo"}, outside: []string{"go.etcd.io/bbolt"}},
	{pattern: "", module: []string{"worker", "bus", "coordinator", "lease", "algo"}},
	{pattern: "cmd/coordinator", module: []string{"cmd/internal/...", "coordinator", "bus", "redisbackend", "diskbackend", "lease", "algo"}, outside: []string{"*"}},
	{pattern: "cmd/worker", module: []string{"cmd/internal/...", "", "worker", "bus", "lease", "algo"}, outside: []string{"*"}},
	{pattern: "cmd/internal/...", module: []string{"cmd/internal/...", "bus", "lease", "algo"}, outside: []string{"*"}},
	{pattern: "integration/oracle"},
	{pattern: "integration/upstream/...", module: []string{"integration/oracle", "integration/upstream"}},
	{pattern: "integration/upstream", module: []string{"integration/oracle"}},
	{pattern: "integration/harness", module: []string{"integration/oracle", "integration/upstream"}},
	{pattern: "integration/demo", module: []string{"integration/oracle", "integration/upstream", "integration/harness"}},
	// The simulation runs the binaries' own code, and may use all of it.
	{pattern: "integration/...", module: []string{"...", "integration/..."}, outside: []string{"golang.org/x/time"}},
	{pattern: "integration", module: []string{}},
	{pattern: "examples/...", module: []string{""}},
}

// keepers are the only packages that may import these modules, also where their
// layer allows any. A module with none is for tests alone.
var keepers = []struct {
	module string
	kept   []string
}{
	{"github.com/nats-io", []string{"bus"}},
	{"github.com/redis/go-redis", []string{"redisbackend"}},
	{"go.etcd.io/bbolt", []string{"diskbackend"}},
	{"github.com/alecthomas/kong", []string{"cmd/..."}},
	{"github.com/stretchr/testify", []string{"internal/mirrortest"}},
	{"go.uber.org/goleak", nil},
	{"pgregory.net/rapid", nil},
	{"github.com/rogpeppe/go-internal", nil},
}

// unrelated are the packages whose tests, too, must know nothing of what they
// judge.
var unrelated = []string{"integration/oracle", "integration/upstream", "integration/upstream/..."}

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath   string
	Name         string
	Dir          string
	Standard     bool
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// inModule gives the path in the module, "" for its root.
func inModule(importPath string) (string, bool) {
	if importPath == "ration" {
		return "", true
	}
	return strings.CutPrefix(importPath, "ration/")
}

// matches says whether a package of the module is meant by a pattern. "..." is
// every package that is the product.
func matches(pattern, name string) bool {
	if pattern == "..." {
		return !below("cmd", name) && !below("integration", name) && !below("examples", name)
	}
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(name, folder+"/")
	}
	return pattern == name
}

func anyMatches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// below says whether a path is folder or in it.
func below(folder, name string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// badEdges gives a sentence for each import that breaks the layering.
func badEdges(pkgs []pkg) []string {
	var bad []string
	for _, p := range pkgs {
		name, _ := inModule(p.ImportPath)
		at := slices.IndexFunc(layers, func(l layer) bool { return matches(l.pattern, name) })
		if at < 0 {
			bad = append(bad, fmt.Sprintf("%s has no place in the layering; give it one in layers", p.ImportPath))
			continue
		}
		for _, imported := range p.Imports {
			if why := layers[at].forbids(name, imported); why != "" {
				bad = append(bad, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imported, why))
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if why := testForbids(name, imported); why != "" {
				bad = append(bad, fmt.Sprintf("a test of %s imports %s: %s", p.ImportPath, imported, why))
			}
		}
	}
	return bad
}

// forbids tells why a package of the layer must not import something, or "".
func (l layer) forbids(name, imported string) string {
	if target, ok := inModule(imported); ok {
		if !anyMatches(l.module, target) {
			return "imports run downwards only, and this one does not"
		}
		return ""
	}
	if isStandard(imported) {
		for _, n := range l.never {
			if below(n, imported) {
				return "it is pure: no clock, goroutine, lock or IO"
			}
		}
		return ""
	}
	for _, k := range keepers {
		if below(k.module, imported) && !anyMatches(k.kept, name) {
			if k.kept == nil {
				return "it is for tests alone"
			}
			return "only " + strings.Join(k.kept, " and ") + " may"
		}
	}
	for _, o := range l.outside {
		if o == "*" || below(o, imported) {
			return ""
		}
	}
	return "it may import of other modules only: " + strings.Join(l.outside, ", ")
}

// testForbids tells why a test must not import something, or "". Tests may use
// the judges and what is for tests, but the judges' own stay apart from the
// product, and NATS stays in the bus.
func testForbids(name, imported string) string {
	target, ok := inModule(imported)
	switch {
	case ok && anyMatches(unrelated, name) && !anyMatches([]string{"integration/..."}, target):
		return "a judge shares no code with what it judges"
	case ok && below("cmd", target) && !below("cmd", name):
		return "commands are run, not imported"
	case below("github.com/nats-io", imported) && name != "bus" && !below("integration", name) && !below("cmd", name):
		return "only bus may"
	}
	return ""
}

// isStandard: the first element of a module that is no part of Go has a dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// undescribed gives a sentence for each package without its doc.go, or without
// an example_test.go though it exports something. A command's examples are the
// scripts that run it.
func undescribed(p pkg, exports bool) []string {
	var lacks []string
	if !slices.Contains(p.GoFiles, "doc.go") {
		lacks = append(lacks, p.ImportPath+" has no doc.go")
	}
	tests := slices.Concat(p.TestGoFiles, p.XTestGoFiles)
	if p.Name != "main" && exports && !slices.Contains(tests, "example_test.go") {
		lacks = append(lacks, p.ImportPath+" has no example_test.go")
	}
	return lacks
}

// internal says that a package is for its neighbours alone: its users are its
// examples.
func internal(importPath string) bool {
	for dir := importPath; dir != "."; dir = path.Dir(dir) {
		if path.Base(dir) == "internal" {
			return true
		}
	}
	return false
}
