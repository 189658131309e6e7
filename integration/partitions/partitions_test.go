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
	t.Parallel()
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

// TestNumberOfPartitionsIsChanged as docs/operations.md has it: workers go on meanwhile, and
// learn of fewer and of more.
func TestNumberOfPartitionsIsChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, err := ration.Connect(w.nats)
	require.NoError(t, err)
	var limiters []*ration.Limiter
	for i := range 8 {
		l, err := client.Limiter(fmt.Sprintf("t%d", i))
		require.NoError(t, err)
		limiters = append(limiters, l)
	}
	for _, count := range []int{4, 2, 8, 1} {
		c := w.h.Coordinator(harness.CoordinatorConfig{Policy: w.policy, NATS: w.nats, Args: w.args("a", count)})
		w.h.Line(c.Process, "a leads cell default")
		for i, l := range limiters {
			ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
			// More than it can have at hand of the coordinator before.
			require.NoError(t, l.WaitN(ctx, 900), "tenant %d of %d partitions\n%s", i, count, c.Output())
			cancel()
		}
		require.Zero(t, w.h.Stop(c.Process))
		w.redis.Kill()
		w.redis.Start()
	}
	_ = client.Close(t.Context()) // nobody is left to say goodbye to
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
	t.Parallel()
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

// TestOneNumberOfPartitionsWins: of two coordinators that start on an empty Redis at one
// instant and count otherwise, one leads all of its own partitions, and the other ends,
// before it led any.
func TestOneNumberOfPartitionsWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	started := map[int]*harness.Process{}
	for _, count := range []int{4, 8} {
		addr, err := harness.FreeAddr()
		require.NoError(t, err)
		started[count] = w.h.Start(harness.Command{
			Path: w.h.Bin("coordinator").Path("coordinator"),
			Args: append([]string{"--policy", w.policy, "--nats", w.nats, "--http", addr}, w.args(fmt.Sprintf("of-%d", count), count)...),
		})
	}
	lost, won := 4, 8
	select {
	case <-started[4].Ended():
	case <-started[8].Ended():
		lost, won = 8, 4
	case <-time.After(harness.Patience):
		t.Fatal("both go on")
	}
	require.Equal(t, 1, w.h.Wait(started[lost]), started[lost].Output())
	require.Contains(t, started[lost].Stderr(), fmt.Sprintf("start it with --partitions %d", won))
	require.NotContains(t, started[lost].Output(), fmt.Sprintf("of-%d leads", lost))
	w.h.Line(started[won], fmt.Sprintf("of-%d leads cell default, all %d partitions", won, won))
}
