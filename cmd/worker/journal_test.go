package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLogGoesOnAfterATornLine: a full disk may have left a line half written;
// what comes next is whole.
func TestLogGoesOnAfterATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte(`{"key":"k","cost":1,"se`), 0o644))
	for range 2 {
		j, err := openJournal(path)
		require.NoError(t, err)
		require.NoError(t, j.write(entry{keys: []string{"k"}, Cost: 1, Sent: 2, Done: 3}))
		require.NoError(t, j.close())
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	whole := `{"key":"k","cost":1,"sent":2,"done":3}` + "\n"
	require.Equal(t, `{"key":"k","cost":1,"se`+"\n"+whole+whole, string(text))
}
