package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/cmd/internal/cli"
	"ration/lease"
)

// written is a policy file, and the looks at it.
type written struct {
	*policyFile
	t     *testing.T
	now   time.Time
	taken []string
	wrong []error
}

func policyText(limit string) string { return "limits: [{key: k, rules: [" + limit + "]}]\n" }

func newWritten(t *testing.T, name string) *written {
	p, err := readPolicy(name)
	if !errors.Is(err, errMissing) {
		require.NoError(t, err)
	}
	return &written{policyFile: newPolicyFile(name, p), t: t, now: time.Now()}
}

// pass lets the file be looked at for some time.
func (w *written) pass(d time.Duration) {
	for until := w.now.Add(d); w.now.Before(until); w.now = w.now.Add(lookEvery) {
		p, err := w.look(w.now)
		if p != nil {
			w.taken = append(w.taken, p.Limits[0].Rules[0].String())
		}
		if err != nil {
			w.wrong = append(w.wrong, err)
		}
	}
}

func (w *written) write(text string) {
	require.NoError(w.t, os.WriteFile(w.name, []byte(text), 0o600))
}

// TestFileCountsWhenItChanges (B106): not as it is at first, not while it is written, not
// when it is missing, empty or wrong, and then as it is in the end.
func TestFileCountsWhenItChanges(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ration.yaml")
	require.NoError(t, os.WriteFile(name, []byte(policyText("1/1s")), 0o600))
	w := newWritten(t, name)
	w.pass(5 * time.Second)
	require.Empty(t, w.taken)
	next := policyText("2/1s") + policyText("3/1s")[len("limits: "):]
	w.write("limits:\n  - {key: k, rules: [2/1s]}\n")
	w.pass(300 * time.Millisecond)
	w.write("limits:\n  - {key: k, rules: [2/1s]}\n  - {key: j, rules: [2/1s]}\n")
	w.pass(5 * time.Second)
	require.Equal(t, []string{"2/1s"}, w.taken)
	for _, bad := range []string{"", "limits: [", next, policyText("4/1s") + "\x00", "limits:\n\t- x"} {
		w.write(bad)
		w.pass(3 * time.Second)
	}
	require.Len(t, w.wrong, 5, "each is told once")
	require.ErrorContains(t, w.wrong[1], name+":1:")
	require.NotEmpty(t, w.problem())
	require.NoError(t, os.Remove(name))
	w.pass(3 * time.Second)
	require.ErrorIs(t, w.wrong[5], errMissing)
	require.Equal(t, []string{"2/1s"}, w.taken)
	w.write(policyText("5/1s"))
	w.pass(3 * time.Second)
	w.write(policyText("5/1s"))
	w.pass(3 * time.Second)
	require.Equal(t, []string{"2/1s", "5/1s"}, w.taken, "the same file again changes nothing")
	require.Empty(t, w.problem())
	for i := range 100 {
		w.write(policyText([]string{"6/1s", "7/1s"}[i%2]))
		w.pass(10 * time.Millisecond)
	}
	w.pass(3 * time.Second)
	require.Equal(t, []string{"2/1s", "5/1s", "7/1s"}, w.taken)
	require.Len(t, w.wrong, 6)
}

// TestFileIsWhatItsNameLeadsTo (B104): a file renamed over it, and a link turned elsewhere
// as kubernetes does, change it once.
func TestFileIsWhatItsNameLeadsTo(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"1", "2", "3"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, "..2025_"+version), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "..2025_"+version, "ration.yaml"), []byte(policyText(version+"/1s")), 0o600))
	}
	turn := func(version string) {
		require.NoError(t, os.Symlink("..2025_"+version, filepath.Join(dir, "..tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	}
	turn("1")
	name := filepath.Join(dir, "ration.yaml")
	require.NoError(t, os.Symlink("..data/ration.yaml", name))
	w := newWritten(t, name)
	w.pass(time.Second)
	turn("2")
	w.pass(time.Second)
	turn("3")
	w.pass(time.Second)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), []byte(policyText("4/1s")), 0o600))
	require.NoError(t, os.Rename(filepath.Join(dir, "new"), name))
	w.pass(time.Second)
	require.Equal(t, []string{"2/1s", "3/1s", "4/1s"}, w.taken)
	require.Empty(t, w.wrong)
}

// TestFileThatHasChangedSinceItWasReadCounts: the start may have waited for NATS meanwhile.
func TestFileThatHasChangedSinceItWasReadCounts(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ration.yaml")
	read, err := lease.ParsePolicy(name, []byte(policyText("1/1s")))
	require.NoError(t, err)
	for text, want := range map[string]string{policyText("1/1s"): "", policyText("2/1s"): "2/1s", "limits: [": name + ":1:"} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		w := &written{policyFile: newPolicyFile(name, read), t: t, now: time.Now()}
		w.pass(stableFor)
		require.Empty(t, w.taken)
		w.pass(5 * time.Second)
		switch {
		case len(w.wrong) == 1:
			require.ErrorContains(t, w.wrong[0], want)
		default:
			require.Equal(t, want, strings.Join(w.taken, ", "))
		}
	}
}

// TestPipeIsReadOnce: who reads it again waits for ever; one that a file takes the place of
// has changed.
func TestPipeIsReadOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ration.yaml")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	read, err := lease.ParsePolicy(name, []byte(policyText("1/1s")))
	require.NoError(t, err)
	w := &written{policyFile: newPolicyFile(name, read), t: t, now: time.Now()}
	w.pass(5 * time.Second)
	require.Empty(t, w.wrong)
	require.False(t, w.differs(read))
	_, err = w.take()
	require.ErrorContains(t, err, "it is no file that can be read again; change the policy with coordinator apply")
	require.NoError(t, os.Remove(name))
	w.write(policyText("2/1s"))
	w.pass(5 * time.Second)
	require.Equal(t, []string{"2/1s"}, w.taken)
	require.Empty(t, w.wrong)
}

// TestMissingDefaultFileIsNoProblem: who starts with the demo policy may write one later.
func TestMissingDefaultFileIsNoProblem(t *testing.T) {
	w := newWritten(t, filepath.Join(t.TempDir(), "ration.yaml"))
	w.pass(3 * time.Second)
	require.Empty(t, w.wrong)
	w.write(policyText("1/1s"))
	w.pass(3 * time.Second)
	require.Equal(t, []string{"1/1s"}, w.taken)
}

// TestTakenAtOnceWhenAsked: as with SIGHUP, also what was refused or counted before.
func TestTakenAtOnceWhenAsked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ration.yaml")
	require.NoError(t, os.WriteFile(name, []byte(policyText("1/1s")), 0o600))
	f := newWritten(t, name)
	p, err := f.take()
	require.NoError(t, err)
	require.Equal(t, lease.RefuseUnknown, p.Unknown)
	require.NoError(t, os.WriteFile(name, []byte("limits: 5"), 0o600))
	for range 2 {
		_, err = f.take()
		require.ErrorContains(t, err, "is refused")
	}
}

// TestFileDiffersFromWhatIsInForce: as it was at the start, unless it has changed to that meanwhile.
func TestFileDiffersFromWhatIsInForce(t *testing.T) {
	force, err := lease.ParsePolicy("p", []byte(policyText("2/1s")))
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "ration.yaml")
	w := newWritten(t, name)
	require.False(t, w.differs(force), "there is none")
	w.write(policyText("1/1s"))
	require.False(t, w.differs(force), "it is taken")
	w = newWritten(t, name)
	require.True(t, w.differs(force))
	w.write("# the same\n" + policyText("2/1s"))
	require.False(t, w.differs(force))
	w = newWritten(t, name)
	require.False(t, w.differs(force))
}

// TestLaterFileEndsWhatAnEarlierOneBegan: that may wait for somebody to lead.
func TestLaterFileEndsWhatAnEarlierOneBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWritten(t, filepath.Join(t.TempDir(), "ration.yaml"))
		w.write(policyText("1/1s"))
		ctx, end := context.WithCancel(t.Context())
		now, ended := make(chan os.Signal), make(chan struct{})
		var began, over []string
		go func() {
			defer close(ended)
			w.watch(ctx, now, cli.Logging{}.Voice(name, cli.Streams{Out: io.Discard, Err: io.Discard}), func(ctx context.Context, p *lease.Policy) {
				began = append(began, p.Limits[0].Rules[0].String())
				<-ctx.Done()
				over = append(over, p.Limits[0].Rules[0].String())
			})
		}()
		now <- syscall.SIGHUP
		synctest.Wait()
		require.Equal(t, []string{"1/1s"}, began)
		w.write(policyText("2/1s"))
		now <- syscall.SIGHUP
		synctest.Wait()
		require.Equal(t, []string{"1/1s", "2/1s"}, began)
		require.Equal(t, []string{"1/1s"}, over)
		end()
		<-ended
		require.Equal(t, began, over)
	})
}
