package readme

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// block is a fenced block of a page.
type block struct {
	kind string // what follows the fence: sh, sh serve, text
	body string
	line int // of the page
}

var fenced = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

// blocks gives the blocks of a page of the tree.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../..", page))
	require.NoError(t, err)
	text := string(raw)
	var all []block
	for _, m := range fenced.FindAllStringSubmatchIndex(text, -1) {
		all = append(all, block{text[m[2]:m[3]], text[m[4]:m[5]], 1 + strings.Count(text[:m[0]], "\n")})
	}
	require.Equal(t, 2*len(all), len(regexp.MustCompile("(?m)^```").FindAllString(text, -1)), "a block of %s has no end", page)
	return all
}

// pages are the pages that tell people what to type or to write.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	docs, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	for _, d := range docs {
		all = append(all, "docs/"+filepath.Base(d))
	}
	return all
}

var spaces = regexp.MustCompile(`\s+`)

func flat(text string) string { return strings.TrimSpace(spaces.ReplaceAllString(text, " ")) }

// TestGoOnPagesIsInTheExamples: what compiles there compiles for the reader.
func TestGoOnPagesIsInTheExamples(t *testing.T) {
	var compiled strings.Builder
	files, err := filepath.Glob("../../examples/*/*.go")
	require.NoError(t, err)
	for _, name := range append(files, "../../example_test.go") {
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		compiled.WriteString(flat(string(raw)) + "\n")
	}
	seen := 0
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.kind == "go" {
				seen++
				require.Contains(t, compiled.String(), flat(b.body), "%s:%d", page, b.line)
			}
		}
	}
	require.Positive(t, seen)
}

// TestLinksLeadSomewhere looks at links within the tree.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	seen := 0
	for _, page := range pages(t) {
		raw, err := os.ReadFile(filepath.Join("../..", page))
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(raw), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			seen++
			target, _, _ := strings.Cut(m[1], "#")
			_, err := os.Stat(filepath.Join("../..", filepath.Dir(page), target))
			require.NoError(t, err, "%s links to %s", page, m[1])
		}
	}
	require.Positive(t, seen)
}

// TestPagesNameFilesAndTargetsThatAreThere looks at what stands in backquotes and
// is a path of the tree, and at make's targets.
func TestPagesNameFilesAndTargetsThatAreThere(t *testing.T) {
	quoted := regexp.MustCompile("`([^`\n]+)`")
	file := regexp.MustCompile(`^(?:algo|lease|worker|bus|coordinator|integration|docs|examples|cmd)/[\w./-]*$`)
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	seen := 0
	for _, page := range pages(t) {
		raw, err := os.ReadFile(filepath.Join("../..", page))
		require.NoError(t, err)
		for _, m := range quoted.FindAllStringSubmatch(fenced.ReplaceAllString(string(raw), ""), -1) {
			if target, ok := strings.CutPrefix(m[1], "make "); ok {
				seen++
				require.Contains(t, string(makefile), "\n"+target+":", "%s says %s", page, m[0])
			}
			if file.MatchString(m[1]) {
				seen++
				_, err := os.Stat(filepath.Join("../..", m[1]))
				require.NoError(t, err, "%s says %s", page, m[0])
			}
		}
	}
	require.Positive(t, seen)
}
