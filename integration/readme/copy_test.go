package readme

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// copied gives a copy of a tree as a fresh clone would be: without its history,
// and without what .gitignore names, which is what builds and pages write.
func copied(t *testing.T, from string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "ration")
	require.NoError(t, os.Mkdir(root, 0o755))
	for _, name := range files(t, from) {
		to := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.NoError(t, copyFile(to, filepath.Join(from, name)))
	}
	return root
}

// files are the files of a tree that a clone has, or would have when they are
// committed.
func files(t *testing.T, root string) []string {
	t.Helper()
	ignored := ignores(t)
	var all []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case (name == ".git" || ignored(name, d.IsDir())) && d.IsDir():
			return fs.SkipDir
		case d.Type().IsRegular() && name != ".git" && !ignored(name, false): // a work tree has a file of that name
			all = append(all, name)
		}
		return nil
	}))
	return all
}

// ignores reads the project's .gitignore, as much of the form as is used there:
// a pattern with a slash before its end is for paths from the root, and one with
// a slash at its end for folders.
func ignores(t *testing.T) func(name string, folder bool) bool {
	t.Helper()
	raw, err := os.ReadFile("../../.gitignore")
	require.NoError(t, err)
	patterns := strings.Fields(string(raw))
	require.NotEmpty(t, patterns)
	return func(name string, folder bool) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			pattern, folders := strings.CutSuffix(pattern, "/")
			subject := filepath.Base(name)
			if strings.Contains(pattern, "/") {
				pattern, subject = strings.TrimPrefix(pattern, "/"), name
			}
			match, err := filepath.Match(pattern, subject)
			require.NoError(t, err, ".gitignore: %s", pattern)
			return match && (folder || !folders)
		})
	}
}

// TestACopyHasNothingOfWhatPagesWrite: who has followed them in a clone has their
// files there, and the tests of the clone are those of a fresh one.
func TestACopyHasNothingOfWhatPagesWrite(t *testing.T) {
	from := t.TempDir()
	for _, name := range []string{"main.go", "examples/service/ration.yaml", ".ci/run",
		"ration.yaml", "run.jsonl", "0.jsonl", "part-0", "bin/worker", ".git/HEAD", "algo/algo.test", "cpu.out"} {
		require.NoError(t, os.MkdirAll(filepath.Join(from, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(from, name), nil, 0o600))
	}
	require.Equal(t, []string{".ci/run", "examples/service/ration.yaml", "main.go"}, files(t, copied(t, from)))
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if bad := out.Close(); err == nil {
		err = bad
	}
	return err
}
