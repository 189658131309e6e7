package diskbackend_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ration/diskbackend"
	"ration/internal/mirrortest"
	"ration/lease"
)

// The test binary also plays the coordinator that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("RATION_TEST_STATE"); dir != "" {
		fmt.Fprintln(os.Stderr, play(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

var proof = os.Getenv("RATION_PROOF") == "1"

// play takes turns, and shows that it lives, until it is killed. It says the number of
// each turn when that is recorded.
func play(dir string) error {
	ctx := context.Background()
	m, err := diskbackend.Open(dir)
	if err != nil {
		return err
	}
	seen, err := m.Look(ctx)
	if err != nil {
		return err
	}
	next := mirrortest.Seat(seen.Epoch.Number + 1)
	if err := m.Campaign(ctx, seen, next); err != nil {
		return err
	}
	fmt.Println(0)
	go func() {
		for beat := uint64(1); ; beat++ {
			if err := m.Renew(ctx, next.Epoch, lease.Pulse{Beat: beat}); err != nil {
				panic(err)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	for seq := uint64(1); ; seq++ {
		if err := m.Apply(ctx, numbered(next.Epoch, seq)); err != nil {
			return err
		}
		fmt.Println(seq)
	}
}

// TestKilledProcessForgetsNothing: a process that is killed in the middle of turns
// leaves whole turns, among them all that it was told are recorded.
func TestKilledProcessForgetsNothing(t *testing.T) {
	dir, turns := t.TempDir(), uint64(0)
	rounds := 6
	if proof {
		rounds = 200
	}
	for range rounds {
		said, took := kill(t, dir)
		m, err := diskbackend.Open(dir)
		require.NoError(t, err)
		seq := hasTurn(t, m)
		require.GreaterOrEqual(t, seq, said)
		require.LessOrEqual(t, seq, said+1)
		require.NoError(t, m.Close())
		turns += took
	}
	require.Positive(t, turns)
	t.Logf("%d turns, killed %d times", turns, rounds)
}

// kill starts a process on the directory, kills it somewhere, and gives the last turn
// that it has said, and how many.
func kill(t *testing.T, dir string) (said, turns uint64) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "RATION_TEST_STATE="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "it leads")
	if rand.IntN(3) == 0 {
		_, err := diskbackend.Open(dir)
		require.ErrorIs(t, err, diskbackend.ErrInUse)
	}
	timer := time.AfterFunc(time.Duration(rand.Int64N(int64(300*time.Millisecond))), func() { _ = child.Process.Kill() })
	defer timer.Stop()
	for lines.Scan() {
		said, err = strconv.ParseUint(strings.TrimSpace(lines.Text()), 10, 64)
		require.NoError(t, err)
		turns++
	}
	var exit *exec.ExitError
	require.True(t, errors.As(child.Wait(), &exit))
	require.Equal(t, -1, exit.ExitCode(), "killed, and not failed")
	return said, turns
}
