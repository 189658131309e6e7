package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is a fault of the product and the tests that have to catch it.
type mutant struct {
	name  string
	what  string
	by    string
	tests [][]string // commands, from "go test" on
	first string     // the world that the simulation plays first; "" for no matter which
	patch []byte
	files []string // that the patch changes, Go or Lua, as paths from the module's root
}

const (
	simulation        = "simulation"
	simulationPackage = "./integration/sim"
)

// load reads all patches of a folder, by name.
func load(dir string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("mutants: there is no patch in %s", dir)
	}
	slices.Sort(paths)
	var all []mutant
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(filepath.Base(path), ".patch"), text)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// parse reads a patch and what it says of itself.
func parse(name string, text []byte) (mutant, error) {
	m := mutant{name: name, patch: text}
	fail := func(format string, args ...any) (mutant, error) {
		return m, fmt.Errorf("mutants: %s: "+format, append([]any{name}, args...)...)
	}
	header := true
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		header = header && !strings.HasPrefix(line, "--- ")
		if file, ok := strings.CutPrefix(line, "+++ b/"); ok {
			m.files = append(m.files, file)
		}
		if !header {
			continue
		}
		switch field, value, _ := strings.Cut(line, ": "); field {
		case "What":
			m.what = value
		case "By":
			m.by = value
		case "Test":
			m.tests = append(m.tests, strings.Fields(value))
		case "First":
			m.first = value
		}
	}
	switch {
	case m.what == "" || m.by == "" || len(m.tests) == 0:
		return fail("it has to say What it breaks, By what kind of test it is caught, and by which Test")
	case len(m.files) == 0:
		return fail("it changes no file; write it as git diff does, with lines --- a/FILE and +++ b/FILE")
	}
	for _, file := range m.files {
		if strings.HasSuffix(file, "_test.go") || !strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, ".lua") {
			return fail("it changes %s; a mutant is a fault of the product's sources", file)
		}
	}
	simulated := 0
	for _, t := range m.tests {
		if len(t) < 3 || t[0] != "go" || t[1] != "test" {
			return fail("%q is no go test command", strings.Join(t, " "))
		}
		if slices.Contains(t, simulationPackage) {
			simulated++
		}
	}
	if (m.by == simulation) != (simulated == len(m.tests)) {
		return fail("it is caught by %s, but %d of its %d tests are the simulation's", m.by, simulated, len(m.tests))
	}
	if _, err := strconv.ParseUint(m.first, 10, 64); m.first != "" && (err != nil || m.by != simulation) {
		return fail("First is %s; it is the number of the world that the simulation plays first", m.first)
	}
	return m, nil
}

// command is what tries the mutant by one of its tests.
func (m *mutant) command(test []string) []string {
	if m.first == "" {
		return test
	}
	return append(slices.Clone(test), "-first", m.first)
}

// script says that the fault is one of a script that Redis runs.
func (m *mutant) script() bool {
	return slices.ContainsFunc(m.files, func(f string) bool { return strings.HasSuffix(f, ".lua") })
}
