package system

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
)

// wild loses, delays and repeats messages between NATS and the leader.
type wild struct {
	lease.Lessor
	mu     sync.Mutex
	rnd    *rand.Rand
	faults atomic.Int64
	calm   atomic.Bool
}

func (w *wild) fault(kinds int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm.Load() || w.rnd.IntN(4) != 0 {
		return -1
	}
	w.faults.Add(1)
	return w.rnd.IntN(kinds)
}

// lost waits until nobody waits any more.
func lost(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (w *wild) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	switch w.fault(4) {
	case 0: // the request is lost
		return lease.Answer{}, lost(ctx)
	case 1: // the answer is
		if _, err := w.Lessor.Acquire(ctx, r); err != nil {
			return lease.Answer{}, err
		}
		return lease.Answer{}, lost(ctx)
	case 2: // the answer is late
		a, err := w.Lessor.Acquire(ctx, r)
		<-time.After(300 * time.Millisecond)
		return a, err
	case 3: // a second copy of the same message overtakes the answer
		go w.Lessor.Acquire(ctx, r)
	}
	return w.Lessor.Acquire(ctx, r)
}

func (w *wild) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	switch w.fault(3) {
	case 0:
		return lease.Reply{}, lost(ctx)
	case 1:
		if _, err := w.Lessor.Report(ctx, r); err != nil {
			return lease.Reply{}, err
		}
		return lease.Reply{}, lost(ctx)
	case 2:
		if _, err := w.Lessor.Report(ctx, r); err != nil {
			return lease.Reply{}, err
		}
	}
	return w.Lessor.Report(ctx, r)
}

// TestLossyNetworkBreaksNothing: workers over NATS to a coordinator that hears
// and answers badly keep the contract, and when it is calm again all comes back.
func TestLossyNetworkBreaksNothing(t *testing.T) {
	t.Parallel()
	const contract = "30/500ms, 80/2s, 4 concurrent"
	n := &wild{rnd: rand.New(rand.NewPCG(1, 2))}
	s := newSite(t, siteConfig{
		policy: "limits:\n  - key: k\n    rules: [" + contract + "]\n",
		lease:  quick,
		wrap: func(l lease.Lessor) lease.Lessor {
			n.Lessor = l
			return n
		},
	})
	var mu sync.Mutex
	var spends []oracle.Spend
	var callers sync.WaitGroup
	var workers []*worker.Worker
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for i := range 3 {
		config := worker.DefaultConfig()
		config.Name = fmt.Sprint("w", i)
		w, err := worker.New(newHand(t, s.url).client, config)
		require.NoError(t, err)
		workers = append(workers, w)
		for range 4 {
			callers.Go(func() {
				for ctx.Err() == nil {
					h, err := w.Limiter("k").Acquire(ctx, 1)
					if err != nil {
						continue
					}
					<-time.After(time.Millisecond)
					spend := spendOf(h, 1)
					spend.Done = time.Now().UnixNano()
					if h.Context().Err() != nil {
						spend.Done = spend.At // its slot was lost while it ran, and it stopped then
					}
					h.Finish()
					mu.Lock()
					spends = append(spends, spend)
					mu.Unlock()
				}
			})
		}
	}
	s.h.Until("enough spends under enough faults", func() error {
		mu.Lock()
		defer mu.Unlock()
		if want := scaled(150, 600); len(spends) < want || n.faults.Load() < int64(want)/4 {
			return fmt.Errorf("%d spends under %d faults", len(spends), n.faults.Load())
		}
		return nil
	})
	n.calm.Store(true)
	stop()
	callers.Wait()
	var b worker.Books
	for _, w := range workers {
		require.NoError(t, w.Close(context.Background()))
		b.Add(w.Stats())
	}
	require.Empty(t, oracle.Violations(spends, oracle.MustRules(contract)))
	require.Equal(t, b.Granted, b.Spent+b.Returned+b.Expired, "%+v", b)
	require.EqualValues(t, len(spends), b.Spent)
	s.until("all to be back", func(st lease.Status) bool { return st.Held.Zero() && st.Leases == 0 && st.Waiting == 0 })
	st := s.status().Stats
	require.Equal(t, st.Granted, st.Spent+st.Returned+st.Expired)
	t.Logf("%d spends under %d faults, 0 violations; %d grants answered again, %d given up, %d answers dropped by the workers",
		len(spends), n.faults.Load(), st.Replayed, st.GivenUpGranted, b.Dropped)
}
