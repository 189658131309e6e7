package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/integration/oracle"
)

// testCommand is the README's second command. It runs this test, so this test
// does not run it.
const testCommand = "make test"

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// TestPagesAreTrue types all that the pages say, as they say it: the README's
// commands in a tree in which nothing was built, and then the others'.
func TestPagesAreTrue(t *testing.T) {
	dir := copied(t, "../..")
	clone := files(t, dir)
	for _, page := range pages(t) {
		typed := false
		for _, b := range blocks(t, page) {
			typed = typed || strings.HasPrefix(b.kind, "sh")
		}
		if !typed {
			continue
		}
		ok := t.Run(page, func(t *testing.T) {
			d := newDesk(t, dir)
			d.follow(page)
			if page == "README.md" {
				fourShells(t, d)
			}
		})
		require.True(t, ok, page)
	}
	require.Equal(t, clone, files(t, dir), "what a page writes stands in .gitignore")
}

// fourShells looks at the logs of the README's shells: they share the built-in
// policy's contract, and nothing is run twice or lost.
func fourShells(t *testing.T, d *desk) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(d.dir, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, logs, 3)
	spends := d.test.Logs(logs...)
	require.Len(t, oracle.Under(spends, "demo"), 30)
	require.Empty(t, oracle.Violations(spends, oracle.MustRules("5/1s, 12/3s")))
}

// TestFirstTwoCommandsAreRunAndTest: the first shows it at work, the second
// runs all tests, this one among them.
func TestFirstTwoCommandsAreRunAndTest(t *testing.T) {
	var commands []string
	for _, b := range blocks(t, "README.md") {
		if b.kind == "sh" {
			commands = append(commands, strings.TrimSpace(b.body))
		}
	}
	require.Equal(t, []string{"make run", testCommand}, commands[:2])
	make := exec.Command("make", "-n", "test")
	make.Dir = "../.."
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "MAKE") && !strings.HasPrefix(e, "MFLAGS") && !strings.HasPrefix(e, "TESTFLAGS=") {
			make.Env = append(make.Env, e)
		}
	}
	out, err := make.Output()
	require.NoError(t, err)
	require.Equal(t, "go test ./...", flat(string(out)))
	ci, err := os.ReadFile("../../.ci/run")
	require.NoError(t, err)
	require.Contains(t, string(ci), "\nstep tests counted "+testCommand+" ", "the checks begin with what the README says")
}

// TestPagesSayOfOutputWhatHelpSays: in one sentence, in all places.
func TestPagesSayOfOutputWhatHelpSays(t *testing.T) {
	const said = "output comes in the order in which commands write it, in whole lines."
	for _, file := range []string{"cmd/worker/exec.go", "README.md", "docs/operations.md"} {
		text, err := os.ReadFile(filepath.Join("../..", file))
		require.NoError(t, err)
		require.Contains(t, flat(string(text)), said, file)
	}
}

// TestShapeForgetsFiguresOnly is so that the pages can be wrong.
func TestShapeForgetsFiguresOnly(t *testing.T) {
	require.Equal(t, shape("took  7.20 s\n\n"), shape("took 11 s\n"))
	require.NotEqual(t, shape("took 7.20 s"), shape("takes 7.20 s"))
	require.NotEqual(t, shape("a\nb"), shape("a"))
}

// TestCounterCounts: what .ci/run counts is what go test said.
func TestCounterCounts(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{
			`{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: \"1\" \u003c 2\n"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`, "    b_test.go:3: \"1\" < 2\nFAIL\tp\t0.1s\n1 passed, 1 failed, 1 skipped\n",
		},
		{
			`{"ImportPath":"q","Action":"build-output","Output":"q.go:1: no\n"}
{"Action":"fail","Package":"q","FailedBuild":"q"}
make: Error 1
`, "q.go:1: no\nmake: Error 1\n0 passed, 1 failed, 0 skipped\n",
		},
	} {
		awk := exec.Command("awk", "-f", "../../.ci/count.awk")
		awk.Stdin = strings.NewReader(c.in)
		out, err := awk.Output()
		require.NoError(t, err)
		require.Equal(t, c.out, string(out))
	}
}
