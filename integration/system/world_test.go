package system

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
)

// world is a coordinator and workers in a bubble of virtual time: the shells and
// cores of the binaries, with nothing between them.
type world struct {
	t       *testing.T
	leader  *coordinator.Leader
	workers []*worker.Worker
}

// within plays in a world, and looks at its end whether all has come back.
func within(t *testing.T, policy string, play func(w *world)) {
	t.Helper()
	withinBounds(t, policy, func(*lease.Config) {}, play)
}

func withinBounds(t *testing.T, policy string, change func(*lease.Config), play func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p, err := lease.ParsePolicy("policy", []byte("limits:\n"+policy))
		require.NoError(t, err)
		config := coordinator.DefaultConfig(p)
		change(&config.Lease)
		c, err := coordinator.New(config)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		leaders, ended := make(chan *coordinator.Leader, 1), make(chan error, 1)
		go func() {
			ended <- c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
				leaders <- l
				<-ctx.Done()
				return nil
			})
		}()
		w := &world{t: t, leader: <-leaders}
		defer func() {
			for _, w := range w.workers { // those that play left behind, if it failed
				w.Close(context.Background())
			}
			cancel()
			require.NoError(t, <-ended)
		}()
		play(w)
		w.rest()
	})
}

// join adds a worker.
func (w *world) join(name string, change ...func(*worker.Config)) *worker.Worker {
	w.t.Helper()
	return w.joinBy(w.leader, name, change...)
}

func (w *world) joinBy(l lease.Lessor, name string, change ...func(*worker.Config)) *worker.Worker {
	w.t.Helper()
	config := worker.DefaultConfig()
	config.Name, config.MonotonicOnly, config.Seed = name, true, uint64(len(w.workers))+1
	for _, c := range change {
		c(&config)
	}
	joined, err := worker.New(l, config)
	require.NoError(w.t, err)
	w.workers = append(w.workers, joined)
	return joined
}

func (w *world) status() lease.Status {
	w.t.Helper()
	return look(w.t, w.leader)
}

// rest closes the workers: then nothing is held, nobody waits, and the books of
// both sides balance.
func (w *world) rest() {
	w.t.Helper()
	for _, joined := range w.workers {
		require.NoError(w.t, joined.Close(context.Background()))
		b := joined.Stats()
		require.Zero(w.t, b.Held, "%s: %+v", joined.Name(), b)
		require.Equal(w.t, b.Granted, b.Spent+b.Returned+b.Expired, "%s: granted = spent + returned + expired: %+v", joined.Name(), b)
	}
	s := w.status()
	require.Equal(w.t, lease.Amount{}, s.Held)
	require.Zero(w.t, s.Leases)
	require.Zero(w.t, s.Waiting)
	require.Equal(w.t, s.Stats.UnitsGranted, s.Stats.UnitsSpent+s.Stats.UnitsReturned+s.Stats.UnitsExpired, "units: %+v", s.Stats)
	require.Equal(w.t, s.Stats.Granted, s.Stats.Spent+s.Stats.Returned+s.Stats.Expired, "granted = spent + returned + expired: %+v", s.Stats)
	require.Equal(w.t, s.Stats.SlotsGranted, s.Stats.SlotsFreed+s.Stats.SlotsCut+s.Stats.SlotsExpired, "%+v", s.Stats)
	for _, k := range s.Keys {
		for _, win := range k.Windows {
			require.Equal(w.t, win.Limit, win.Free+win.Held+win.Spent, "free + held + spent of %s of %s", win.Rule, k.Key)
			require.Zero(w.t, win.Held)
		}
	}
}

// spent is the sum of what the workers' books have as spent.
func (w *world) books() (b worker.Books) {
	for _, joined := range w.workers {
		b.Add(joined.Stats())
	}
	return b
}

// spendOf is the spend of a handle.
func spendOf(h *worker.Handle, cost int64) oracle.Spend {
	return oracle.Spend{At: h.Sent().UnixNano(), Cost: cost}
}

// soon is a context that ends so much virtual time later.
func soon(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
