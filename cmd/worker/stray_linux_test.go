package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWardenKillsWhatItWasNeverToldOf: a worker may be killed between the start
// of a command and the telling; the mark finds the command, and what it started.
func TestWardenKillsWhatItWasNeverToldOf(t *testing.T) {
	mark := markName + "=test-" + t.Name()
	cmd := exec.Command("sh", "-c", "sleep 600 & wait")
	cmd.Env = append(os.Environ(), mark)
	other := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	require.NoError(t, other.Start())
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	})
	killStrays(mark)
	require.Error(t, cmd.Wait(), "it was killed")
	require.False(t, killMarked(mark), "nothing bears the mark any more")
	require.Nil(t, other.ProcessState, "others live on")
}
