package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"stubborn": stubborn})
}

// stubborn is a command that does not end by a first signal.
func stubborn() {
	soft, hard, _ := Catch(context.Background())
	DieOn(hard)
	fmt.Println("ready")
	<-soft.Done()
	fmt.Println("draining")
	select {}
}

func TestSecondSignalEndsTheProcessAtOnce(t *testing.T) {
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		cmd := exec.Command("stubborn")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan())
		require.Equal(t, "ready", lines.Text())
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.True(t, lines.Scan())
		require.Equal(t, "draining", lines.Text())
		require.NoError(t, cmd.Process.Signal(signal))
		var exit *exec.ExitError
		require.True(t, errors.As(cmd.Wait(), &exit))
		require.Equal(t, want, exit.ExitCode())
	}
}
