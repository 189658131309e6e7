package system

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration"
	"ration/bus"
	"ration/integration/harness"
	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
)

// restart starts the coordinator anew where it was.
func (r *outside) restart(policy string) {
	old := r.Coordinator
	r.Coordinator = r.h.Coordinator(harness.CoordinatorConfig{
		Policy: r.h.Policy(policy),
		Listen: strings.TrimPrefix(old.NATS, "nats://"),
		HTTP:   strings.TrimPrefix(old.HTTP, "http://"),
	})
}

// TestWorkersGoOnAfterTheCoordinatorWasKilled: kill -9 of the coordinator, with
// the NATS server in it; started anew at the same address, it has its workers
// again without anybody doing anything.
func TestWorkersGoOnAfterTheCoordinatorWasKilled(t *testing.T) {
	t.Parallel()
	const contract = "40/1s"
	const policy = "limits:\n  - key: k\n    rules: [" + contract + "]\n"
	r := realSite(t, policy)
	var workers []*harness.Process
	var logs []string
	for _, name := range []string{"one", "two", "three"} {
		log := filepath.Join(t.TempDir(), "log")
		logs = append(logs, log)
		workers = append(workers, startWorker(r.h, r.NATS, name, "load", "", "--key", "k", "-j", "8", "--log", log))
		hasLines(r.h, log, 5)
	}
	// What was held before may be spent until it expires.
	var from int64
	for range scaled(1, 5) {
		require.NoError(t, r.Kill())
		from = time.Now().Add(lease.DefaultConfig().TokenTTL).UnixNano()
		r.restart(policy)
		for _, log := range logs {
			r.h.Until("spends under the new coordinator", func() error {
				if n := len(since(r.h.Logs(log), from)); n < 10 {
					return fmt.Errorf("there are %d", n)
				}
				return nil
			})
		}
	}
	for _, w := range workers {
		require.Zero(t, r.h.Stop(w), w.Output())
	}
	// A coordinator in memory forgets what was spent, so the last one is judged by
	// what it alone has granted.
	require.Empty(t, oracle.Violations(since(r.h.Logs(logs...), from), oracle.MustRules(contract)))
	r.until(t, "all to be back", func(d document) bool { return d.Leases == 0 && d.Held.Tokens == 0 })
}

// since gives the spends from an instant on.
func since(spends []oracle.Spend, from int64) []oracle.Spend {
	return slices.DeleteFunc(spends, func(s oracle.Spend) bool { return s.At < from })
}

// TestNothingIsGrantedLate is B149: callers ask while NATS is away and give up. When it
// is back nothing of what they asked for has been granted.
func TestNothingIsGrantedLate(t *testing.T) {
	t.Parallel()
	const policy = "limits:\n  - key: k\n    rules: [1000/1h]\n"
	r := realSite(t, policy)
	client, err := ration.Connect(r.NATS, ration.WithConnectWait(harness.Patience))
	require.NoError(t, err)
	defer client.Close(context.Background())
	limiter, err := client.Limiter("k")
	require.NoError(t, err)
	require.NoError(t, client.Contact(context.Background(), "k"))
	require.NoError(t, r.Kill())

	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := limiter.Acquire(ctx, 1)
			if err == nil {
				t.Error("granted by nobody")
			}
		})
	}
	callers.Wait()
	r.restart(policy)
	proves(t, "contact again", func() error { return client.Contact(context.Background(), "k") })
	r.until(t, "an answer", func(document) bool { return true })
	d, err := r.status()
	require.NoError(t, err)
	require.Zero(t, d.Leases)
	require.Zero(t, d.Held.Tokens+d.spent())

	// Nobody has to do anything for those who ask now.
	h, err := limiter.Acquire(context.Background(), 1)
	require.NoError(t, err)
	h.Finish()
}

// TestWithoutNATSWhatIsHeldIsSpentAndNoMore: with NATS away a worker spends what
// it holds, until that expires or is used up, and then its callers wait.
func TestWithoutNATSWhatIsHeldIsSpentAndNoMore(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteConfig{
		policy: "limits:\n  - key: k\n    rules: [50/1h]\n",
		lease:  func(c *lease.Config) { c.TokenTTL = scaled(8*time.Second, 20*time.Second) },
	})
	nc, err := bus.Connect(s.url, bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	config := worker.DefaultConfig()
	config.Name = "cut-off"
	config.Pool.IdleAfter, config.Pool.AllowIdle = time.Hour, time.Hour // keep what comes
	w, err := worker.New(bus.NewClient(nc, bus.ClientConfig{}), config)
	require.NoError(t, err)
	l, spent := w.Limiter("k"), int64(0)
	allow := func() bool {
		ok := l.Allow()
		if ok {
			spent++
		}
		return ok
	}
	proves(t, "a lease of some tokens", func() error {
		if allow(); w.Stats().Held < 5 {
			return fmt.Errorf("its books are %+v", w.Stats())
		}
		return nil
	})
	s.stop()
	s.nats.Close()
	granted, before := w.Stats().Granted, spent
	for allow() {
	}
	var b worker.Books
	proves(t, "all spends to be dated", func() error {
		if b = w.Stats(); b.Held > 0 {
			return fmt.Errorf("its books are %+v", b)
		}
		return nil
	})
	require.Equal(t, granted, b.Granted, "nothing is granted without NATS")
	require.Equal(t, spent, b.Spent, "what Allow says is what was spent")
	require.Equal(t, b.Granted, b.Spent+b.Expired+b.Returned)
	if b.Expired == 0 { // else the machine was too slow for this to be seen
		require.Greater(t, spent, before, "what is held is spent without NATS")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	err = l.Wait(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, lease.ErrNoCoordinator, "and the error says why")
	ctx, cancel = context.WithCancel(context.Background())
	cancel()
	require.Error(t, w.Close(ctx), "nobody hears the goodbye")
}
