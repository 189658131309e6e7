package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const sound = `What: it breaks
By: law
Test: go test ./algo -run ^TestOne$
Test: go test ./lease

Further words are for readers.
--- a/algo/window.go
+++ b/algo/window.go
@@ -1,1 +1,1 @@
-What: this is a line of the sources
+Test: and so is this
`

func TestHeaderIsReadUpToThePatch(t *testing.T) {
	m, err := parse("sound", []byte(sound))
	require.NoError(t, err)
	require.Equal(t, "it breaks", m.what)
	require.Equal(t, "law", m.by)
	require.Equal(t, [][]string{{"go", "test", "./algo", "-run", "^TestOne$"}, {"go", "test", "./lease"}}, m.tests)
	require.Equal(t, []string{"algo/window.go"}, m.files)
}

func TestScriptsAreSourcesToo(t *testing.T) {
	m, err := parse("script", []byte("What: w\nBy: law\nTest: go test ./redisbackend\n--- a/x/y.lua\n+++ b/x/y.lua\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"x/y.lua"}, m.files)
}

func TestWorldThatCaughtItIsPlayedFirst(t *testing.T) {
	m, err := parse("first", []byte("What: w\nBy: simulation\nFirst: 17\nTest: go test ./integration/sim -seeds 80\n--- a/algo/x.go\n+++ b/algo/x.go\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"go", "test", "./integration/sim", "-seeds", "80", "-first", "17"}, m.command(m.tests[0]))
	require.Equal(t, [][]string{{"go", "test", "./integration/sim", "-seeds", "80"}}, m.tests, "what passes without the patch is the same for all")
}

func TestUnsoundPatchesAreRefused(t *testing.T) {
	const change = "--- a/algo/x.go\n+++ b/algo/x.go\n"
	for text, says := range map[string]string{
		"By: law\nTest: go test ./algo\n" + change:                                      "What it breaks",
		"What: w\nTest: go test ./algo\n" + change:                                      "By what",
		"What: w\nBy: law\n" + change:                                                   "by which Test",
		"What: w\nBy: law\nTest: go vet ./algo\n" + change:                              `"go vet ./algo" is no go test command`,
		"What: w\nBy: law\nTest: go test ./algo\n":                                      "it changes no file",
		"What: w\nBy: law\nTest: go test ./algo\n+++ b/algo/x_test.go\n":                "x_test.go; a mutant is a fault of the product's sources",
		"What: w\nBy: simulation\nTest: go test ./algo\n" + change:                      "0 of its 1 tests are the simulation's",
		"What: w\nBy: law\nTest: go test ./integration/sim\n" + change:                  "1 of its 1 tests are the simulation's",
		"What: w\nBy: simulation\nTest: go test ./integration/sim\n" + "+++ b/y.md":     "y.md",
		"What: w\nBy: law\nFirst: 1\nTest: go test ./algo\n" + change:                   "First is 1; it is the number of the world",
		"What: w\nBy: simulation\nFirst: x\nTest: go test ./integration/sim\n" + change: "First is x; it is the number of the world",
	} {
		_, err := parse("unsound", []byte(text))
		require.ErrorContains(t, err, "mutants: unsound: ", text)
		require.ErrorContains(t, err, says, text)
	}
	_, err := load(t.TempDir())
	require.ErrorContains(t, err, "there is no patch")
}

func TestHalfHaveToBeTheSimulations(t *testing.T) {
	law, sim := mutant{by: "law"}, mutant{by: simulation}
	require.NoError(t, half([]mutant{law, sim}))
	require.ErrorContains(t, half([]mutant{law, sim, law}), "1 of 3 are caught by the simulation alone")
}
