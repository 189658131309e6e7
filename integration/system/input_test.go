package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"ration/integration/harness"
)

// TestBadInputIsToldWithPlaceAndRemedy runs the binaries on what makes no sense, as
// testdata/input has it: a case is the command line, and what comes of it word by
// word: the exit code, then stderr, and stdout if there is any. A word in quotes is
// one argument, with the escapes of Go; NAME=value at the front is for the
// environment. What changes from run to run has names in braces; see place.
func TestBadInputIsToldWithPlaceAndRemedy(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	p.files()
	p.servers()
	commands := 0
	datadriven.Walk(t, "testdata/input", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			require.Equal(t, "run", d.Cmd, d.Pos)
			commands++
			return p.run(t, d.Input)
		})
	})
	t.Logf("%d commands", commands)
}

// places are files and servers that commands are pointed at, by name.
type places struct {
	t     *testing.T
	h     *harness.Test
	dir   string
	names []string // "{name}", what it stands for, and so on
}

func newPlaces(t *testing.T) *places {
	p := &places{t: t, h: harness.New(t), dir: t.TempDir()}
	p.place("long", strings.Repeat("k", 1025))
	p.place("dir", p.dir)
	return p
}

// place gives a name to what a command line has and its answer shows.
func (p *places) place(name, what string) { p.names = append(p.names, "{"+name+"}", what) }

// shown replaces what has a name by the name.
func (p *places) shown(text string) string {
	var pairs []string
	for i := 0; i < len(p.names); i += 2 {
		pairs = append(pairs, p.names[i+1], p.names[i])
	}
	return logged.ReplaceAllString(strings.NewReplacer(pairs...).Replace(text), "${1}{time} ")
}

// logged finds the time at which something was logged.
var logged = regexp.MustCompile(`(?m)^(stdout: )?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} `)

// run runs one command line, and gives its exit code and all that it writes.
func (p *places) run(t *testing.T, line string) string {
	t.Helper()
	words := split(t, strings.NewReplacer(p.names...).Replace(line))
	var env []string
	for len(words) > 0 && strings.Contains(words[0], "=") {
		env, words = append(env, words[0]), words[1:]
	}
	require.NotEmpty(t, words, line)
	began := time.Now()
	c, err := harness.Start(harness.Command{
		Path: p.h.Bin("coordinator", "worker").Path(words[0]), Args: words[1:], Env: env, Dir: p.dir,
	})
	require.NoError(t, err)
	defer c.Close()
	code := p.h.Wait(c)
	told := c.Stderr()
	require.NotContains(t, told, "panic", line)
	require.NotContains(t, told, "goroutine ", line)
	t.Logf("%s: %v", line, time.Since(began).Round(time.Millisecond))
	answer := fmt.Sprintf("%d\n%s", code, told)
	for out := range strings.Lines(c.Stdout()) {
		answer += "stdout: " + out
	}
	return p.shown(varies.ReplaceAllStringFunc(strings.TrimSuffix(answer, "\n")+"\n", func(found string) string {
		if strings.HasSuffix(found, "/s)") {
			return "({rate})"
		}
		return "{seconds}"
	}))
}

// varies is what differs from run to run and has no name: rates, times.
var varies = regexp.MustCompile(`\(\d+\.\d/s\)|\b\d+\.\d s\b`)

// split gives the words of a command line.
func split(t *testing.T, line string) (words []string) {
	t.Helper()
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimSpace(rest) {
		if rest[0] == '"' {
			quoted, err := strconv.QuotedPrefix(rest)
			require.NoError(t, err, line)
			word, err := strconv.Unquote(quoted)
			require.NoError(t, err, line)
			words, rest = append(words, word), rest[len(quoted):]
			continue
		}
		word, after, _ := strings.Cut(rest, " ")
		words, rest = append(words, word), after
	}
	return words
}

const goodPolicy = "limits:\n  - key: k\n    rules: [5/1s]\n  - key: closed\n    rules: [0/1s]\n  - key: free\n    rules: [unlimited]\n"

// files writes policies of all kinds. Those that a text can show stand in the
// tests of package lease, which reads them.
func (p *places) files() {
	write := func(name, text string) {
		require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	}
	rules := func(list string) string { return "limits:\n  - key: k\n    rules: [" + list + "]\n" }
	for name, text := range map[string]string{
		"good.yaml":      goodPolicy,
		"bom.yaml":       "\xef\xbb\xbf" + goodPolicy,
		"crlf.yaml":      strings.ReplaceAll(goodPolicy, "\n", "\r\n"),
		"half.yaml":      goodPolicy[:30],
		"cut.yaml":       rules("5/1s")[:len(rules("5/1s"))-3],
		"empty.yaml":     "",
		"binary.yaml":    "\x7fELF\x02\x01\x00\xff",
		"nul.yaml":       goodPolicy[:20] + "\x00" + goodPolicy[20:],
		"latin.yaml":     "limits:\n  - key: caf\xe9\n    rules: [5/1s]\n",
		"tab.yaml":       "limits:\n\t- key: k\n",
		"twice.yaml":     rules("5/1s") + "    rules: [6/1s]\n",
		"keytwice.yaml":  rules("5/1s") + "  - key: k\n    rules: [6/1s]\n",
		"unknown.yaml":   "limits:\n  - key: k\n    limt: 10\n    rules: [5/1s]\n",
		"types.yaml":     "limits:\n  - key: 10\n    rules: yes\n    guard: [1s]\n",
		"anchors.yaml":   "a: &a [5/1s]\nlimits:\n  - <<: *a\n    key: k\n",
		"bomb.yaml":      "a: &a [x]\n" + strings.Repeat("b: [*a, *a, *a, *a]\n", 500_000),
		"numbers.yaml":   rules("1e3/1s, 0x10/1s, 5.5/1s, -1/1s, NaN/1s, .inf/1s, 99999999999999999999/1s, 0.2/1s"),
		"read.yaml":      rules("1_000/1s") + "  - key: octal\n    rules: [010/1s]\n",
		"periods.yaml":   rules("5/0s, 5/-1s, 5/1000000h, 5/300y, 5/10000000000s, 5/1x"),
		"words.yaml":     rules("5/1s slidng, 5/1d fixed tz=Nowhere/At, 5/1s burst=3, 5 concurrent 1s"),
		"none.yaml":      "limits:\n  - key: a\n    rules: null\n  - key: b\n    rules: [null]\n  - key: c\n",
		"twoplaces.yaml": "limits: [{key: a, rules: [5/1s]}]\n---\nlimits: [{key: b, rules: [5/1s]}]\n",
	} {
		write(name, text)
	}
	require.NoError(p.t, os.Mkdir(filepath.Join(p.dir, "folder"), 0o700))
}

func TestAPolicyThatMayNotBeReadIsTold(t *testing.T) {
	p := newPlaces(t)
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "closed.yaml"), []byte(goodPolicy), 0))
	path, args := p.h.Bin("coordinator").Path("coordinator"), []string{"check", "closed.yaml"}
	if os.Geteuid() == 0 { // root may read everything, unless it has given that up
		setpriv, err := exec.LookPath("setpriv")
		if err != nil && os.Getenv("CI") == "true" {
			t.Fatal("root may read everything, and setpriv is not here to give that up; install util-linux")
		}
		if err != nil {
			t.Skip("root may read everything, and setpriv is not here to give that up")
		}
		path, args = setpriv, append([]string{"--bounding-set=-dac_override,-dac_read_search", path}, args...)
	}
	c, err := harness.Start(harness.Command{Path: path, Args: args, Dir: p.dir})
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, 1, p.h.Wait(c))
	require.Equal(t, "coordinator: policy closed.yaml: reading it is not permitted; allow it, or run as who may\n", c.Stderr())
}
