package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
)

// fixture gives a trial over the sources in testdata, and the mutants of them
// that are named.
func fixture(t *testing.T, names ...string) (trial, *bytes.Buffer, []mutant) {
	t.Helper()
	root, err := filepath.Abs("testdata/tree")
	require.NoError(t, err)
	var all []mutant
	for _, name := range names {
		text, err := os.ReadFile("testdata/patches/" + name + ".patch")
		require.NoError(t, err)
		m, err := parse(name, text)
		require.NoError(t, err)
		all = append(all, m)
	}
	var out bytes.Buffer
	return trial{root: root, dir: t.TempDir(), parallel: 2, limit: time.Minute, out: &out}, &out, all
}

func TestFailingTestsCatch(t *testing.T) {
	trial, out, all := fixture(t, "caught", "checks")
	require.NoError(t, trial.run(t.Context(), all))
	require.Regexp(t, `caught +it subtracts +[0-9.]+  TestSum/of_three\n`, out.String())
	require.Regexp(t, `checks +it finds out by itself +[0-9.]+  TestSum/of_three\n`, out.String())
	require.Contains(t, out.String(), "2 of 2 mutants caught, 0 by the simulation alone")
}

func TestSurvivorsAreNamedAndFailTheRun(t *testing.T) {
	trial, out, all := fixture(t, "survives", "caught")
	require.ErrorIs(t, trial.run(t.Context(), all), errSurvived)
	require.Contains(t, out.String(), "SURVIVED go test ./algo -run TestLittle\n")
	require.Contains(t, out.String(), "1 of 2 mutants caught", "the others are tried all the same")
}

func TestEachTestOfAMutantHasToCatchIt(t *testing.T) {
	trial, out, all := fixture(t, "caught")
	all[0].tests = append(all[0].tests, strings.Fields("go test ./algo -run TestLittle"))
	require.ErrorIs(t, trial.run(t.Context(), all), errSurvived)
	require.Contains(t, out.String(), "SURVIVED go test ./algo -run TestLittle\n")
}

// What is no catch stops the run, and says what to do.
func TestWhatIsNoCatchStopsTheRun(t *testing.T) {
	for name, says := range map[string]string{
		"unbuilt": "unbuilt, under go test ./algo -run TestSum, does not compile",
		"crashes": "crashes, under go test ./algo -run TestSum, crashed where nothing was checked",
		"unfit":   "unfit does not apply any more: make the same fault in today's algo/algo.go",
	} {
		t.Run(name, func(t *testing.T) {
			trial, _, all := fixture(t, name)
			require.ErrorContains(t, trial.run(t.Context(), all), says)
		})
	}
}

func TestATimeOutCatchesNothing(t *testing.T) {
	trial, _, all := fixture(t, "hangs")
	trial.limit = time.Second
	overlay, err := lay(t.Context(), trial.root, trial.dir, all[0])
	require.NoError(t, err)
	f := trial.try(t.Context(), all[0], overlay)
	require.ErrorContains(t, f.err, "hangs, under go test ./algo -run TestSum, did not end in time")
}

func TestTestsHaveToPassUnpatchedAndToRun(t *testing.T) {
	trial, _, all := fixture(t, "caught")
	all[0].tests = [][]string{strings.Fields("go test ./algo -run TestNowhere")}
	require.ErrorContains(t, trial.run(t.Context(), all), "go test ./algo -run TestNowhere runs no test")

	trial, _, all = fixture(t, "caught", "survives")
	broken, err := lay(t.Context(), trial.root, trial.dir, all[0])
	require.NoError(t, err)
	all[0].tests[0] = strings.Fields("go test -overlay=" + broken + " ./algo -run TestSum")
	require.ErrorContains(t, trial.run(t.Context(), all), "fails without any patch")
}

func TestSourcesAreLeftAsTheyAre(t *testing.T) {
	trial, _, all := fixture(t, "caught")
	path := filepath.Join(trial.root, "algo", "algo.go")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, trial.run(t.Context(), all))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

func TestAnEndedContextEndsTheRun(t *testing.T) {
	trial, _, all := fixture(t, "caught")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, trial.run(ctx, all))
}

// The patches of this very tree: each applies, and at least half are the
// simulation's.
func TestPatchesFitTheSources(t *testing.T) {
	root, err := harness.Root(t.Context())
	require.NoError(t, err)
	all, err := load("patches")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 22)
	require.NoError(t, half(all))
	for _, m := range all {
		_, err := lay(t.Context(), root, t.TempDir(), m)
		require.NoError(t, err)
	}
}

func TestListNamesWhatMatches(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, trial{out: &out}.main(t.Context(), regexp.MustCompile("^held-not"), true))
	require.Regexp(t, `^held-not-counted  .* +simulation\n$`, out.String())
	err := trial{out: &out}.main(t.Context(), regexp.MustCompile("no such name"), true)
	require.ErrorContains(t, err, "none has such a name")
}
