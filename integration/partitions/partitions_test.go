package partitions

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration"
	"ration/integration/harness"
)

// TestPartitionsAreSharedAndTakenOver is a life of a cell of four partitions. (Attack 12
// is the coordinator that counts otherwise, B145 the leader that is stopped or killed.)
func TestPartitionsAreSharedAndTakenOver(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	w.led("who comes first leads all", map[string]int{"a": 4})
	w.served()

	// A fleet goes on taking tokens of every partition, whatever becomes of their leaders.
	stop := w.load()
	defer stop()

	b := w.start("b")
	w.refused(8, 4)
	w.refused(1, 4)
	w.led("a newcomer gets half", map[string]int{"a": 2, "b": 2})
	w.served()
	if !strings.Contains(a.Output()+b.Output(), "lost the seat") { // as on a machine that stands still at times
		require.Equal(t, 2, strings.Count(a.Output(), "handed over"), "no more than it takes:\n%s", a.Output())
		require.NotContains(t, b.Output(), "handed over")
	}

	require.NoError(t, a.Kill())
	w.led("who lives takes all", map[string]int{"b": 4})
	w.served()

	a = w.start("a")
	require.Zero(t, w.h.Stop(b.Process), "SIGTERM hands over all")
	w.led("the other leads all", map[string]int{"a": 4})
	w.served()

	require.NoError(t, stop())
	require.Zero(t, w.h.Stop(a.Process))
	_, err := w.status()
	require.ErrorContains(t, err, "exit code 5")
}

// refused starts a coordinator that takes the cell for one of so many partitions: it says
// how many there are, and what to do.
func (w *world) refused(counts, has int) {
	w.t.Helper()
	addr, err := harness.FreeAddr()
	require.NoError(w.t, err)
	p := w.h.Start(harness.Command{
		Path: w.h.Bin("coordinator").Path("coordinator"),
		Args: append([]string{"--policy", w.policy, "--nats", w.nats, "--http", addr}, w.args("other", counts)...),
	})
	require.Equal(w.t, 1, w.h.Wait(p), p.Output())
	require.Contains(w.t, p.Stderr(), fmt.Sprintf("has %d, this coordinator %d; start it with --partitions %d", has, counts, has))
	require.NotContains(w.t, p.Output(), "other leads")
}

// load takes tokens of each partition, over and over, until stop is called, which gives
// the first error, if there was any. Each has been granted some by then, and after that too.
func (w *world) load() (stop func() error) {
	w.t.Helper()
	client, err := ration.Connect(w.nats)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var failed error
	var done sync.WaitGroup
	for n := range partitions {
		limiter, err := client.Limiter(tenant(n))
		require.NoError(w.t, err)
		done.Go(func() {
			for ctx.Err() == nil {
				if err := limiter.Wait(ctx); err != nil && ctx.Err() == nil {
					mu.Lock()
					failed = fmt.Errorf("partition %d: %w", n, err)
					mu.Unlock()
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	return sync.OnceValue(func() error {
		cancel()
		done.Wait()
		closing, cancel := context.WithTimeout(context.Background(), harness.Patience)
		defer cancel()
		if err := client.Close(closing); err != nil {
			return err
		}
		return failed
	})
}

// TestLeaderThatIsStoppedLosesAllAndClaimsLater: who wakes may write nothing, and is as
// new.
func TestLeaderThatIsStoppedLosesAllAndClaimsLater(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	w.led("who comes first leads all", map[string]int{"a": 4})
	w.start("b")
	require.NoError(t, a.Signal(syscall.SIGSTOP))
	w.led("the other leads all", map[string]int{"b": 4})
	w.served()
	require.NoError(t, a.Signal(syscall.SIGCONT))
	w.led("it gets half again, as a newcomer does", map[string]int{"a": 2, "b": 2})
	w.served()
}
