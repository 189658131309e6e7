package readme

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// copied gives a copy of the tree as a fresh clone would be: without what was
// built, and without its history.
func copied(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "ration")
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel("../..", path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || name == "bin"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(root, name), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		return copyFile(filepath.Join(root, name), path)
	}))
	return root
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
