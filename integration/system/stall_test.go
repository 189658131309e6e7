package system

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/coordinator"
	"ration/integration/harness"
	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
)

// stalled is a mirror that a test can hold up.
type stalled struct {
	*coordinator.Memory
	mu      sync.Mutex
	waiting chan struct{} // closed when it goes on; nil if it does not stall
}

func (s *stalled) stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = make(chan struct{})
}

func (s *stalled) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.waiting)
	s.waiting = nil
}

func (s *stalled) Apply(ctx context.Context, t *lease.Turn) error {
	s.mu.Lock()
	waiting := s.waiting
	s.mu.Unlock()
	if waiting != nil {
		select {
		case <-waiting:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Memory.Apply(ctx, t)
}

// TestBacklogOfTheGoneIsDroppedUncharged is B160: a coordinator stands still for a
// minute while thousands ask, with a second's patience, and give up. When it goes
// on none of them is charged, and who asks then is answered in that instant.
func TestBacklogOfTheGoneIsDroppedUncharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := lease.ParsePolicy("policy", []byte("limits:\n  - {key: k, rules: [100000/1h]}\n"))
		require.NoError(t, err)
		mirror := &stalled{Memory: coordinator.NewMemory()}
		config := coordinator.DefaultConfig(p)
		config.Mirror, config.Elector = mirror, mirror
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
		leader := <-leaders
		defer func() {
			cancel()
			require.NoError(t, <-ended)
		}()

		began := time.Now()
		holder := lease.Holder{Name: "crowd", Incarnation: 1}
		ask := func(n int) (lease.Answer, error) {
			ctx, cancel := soon(time.Second)
			defer cancel()
			return leader.Acquire(ctx, lease.Request{
				ID: lease.ID{Holder: holder, Seq: uint64(n)}, Keys: []lease.Key{"k"},
				Want: lease.Amount{Tokens: 1}, Need: lease.Amount{Tokens: 1},
				Sent: time.Since(began), Patience: time.Second,
			})
		}
		a, err := ask(0)
		require.NoError(t, err)
		require.Equal(t, lease.Granted, a.Outcome)

		mirror.stall()
		var crowd sync.WaitGroup
		for n := range 10_000 {
			crowd.Go(func() {
				if _, err := ask(1 + n); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
			if n == 0 {
				synctest.Wait() // its turn stands still; the others lie before the next
			}
		}
		crowd.Wait()
		<-time.After(time.Minute)
		mirror.resume()
		resumed := time.Now()
		a, err = ask(10_001)
		require.NoError(t, err)
		require.Equal(t, lease.Granted, a.Outcome)
		require.Less(t, time.Since(resumed), 50*time.Millisecond)
		// What was taken up before it stood still is granted.
		require.LessOrEqual(t, look(t, leader).Stats.Granted, int64(3), "granted to nobody: %+v", look(t, leader).Stats)
	})
}

// unanswered notes which requests for a caller nobody was there to answer, and how many
// of those were answered when they were asked again. A refill is given up instead.
type unanswered struct {
	lease.Lessor
	mu       sync.Mutex
	waits    map[lease.ID]bool
	answered int
}

func (u *unanswered) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	a, err := u.Lessor.Acquire(ctx, r)
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case errors.Is(err, lease.ErrNoCoordinator) && r.Patience > worker.DefaultConfig().Pool.AskAgain:
		u.waits[r.ID] = true
	case err == nil && u.waits[r.ID]:
		delete(u.waits, r.ID)
		u.answered++
	}
	return a, err
}

// TestGapOfTheCoordinatorIsBridged is B148: the coordinator goes and comes while
// callers wait. None of them sees an error, and what nobody answered is asked again under
// the same id.
func TestGapOfTheCoordinatorIsBridged(t *testing.T) {
	t.Parallel()
	const contract = "50/500ms"
	c := siteConfig{policy: "limits:\n  - key: k\n    rules: [" + contract + "]\n"}
	s := newSite(t, c)
	nc := newHand(t, s.url)
	ids := &unanswered{Lessor: nc.client, waits: map[lease.ID]bool{}}
	w, err := worker.New(ids, worker.DefaultConfig())
	require.NoError(t, err)
	var mu sync.Mutex
	var spends []oracle.Spend
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for ctx.Err() == nil {
				budget, cancel := context.WithTimeout(ctx, harness.Patience)
				h, err := w.Limiter("k").Acquire(budget, 1)
				cancel()
				if err == nil {
					h.Finish()
					mu.Lock()
					spends = append(spends, spendOf(h, 1))
					mu.Unlock()
				} else if ctx.Err() == nil {
					t.Errorf("a caller saw the gap: %v", err)
					return
				}
			}
		})
	}
	for round := range scaled(3, 10) {
		more := func(n int) {
			mu.Lock()
			have := len(spends)
			mu.Unlock()
			s.h.Until("spends", func() error {
				mu.Lock()
				defer mu.Unlock()
				if len(spends) < have+n {
					return fmt.Errorf("%d of %d", len(spends)-have, n)
				}
				return nil
			})
		}
		more(20)
		s.stop()
		s.h.Until("300 ms without a coordinator", passed(time.Now().Add(300*time.Millisecond)))
		s.h.Until("a request that nobody answers", func() error {
			ids.mu.Lock()
			defer ids.mu.Unlock()
			if len(ids.waits) == 0 {
				return errors.New("each was answered")
			}
			return nil
		})
		s.lead(c)
		more(20)
		s.h.Until("what nobody answered to be answered", func() error {
			ids.mu.Lock()
			defer ids.mu.Unlock()
			if ids.answered <= round {
				return fmt.Errorf("%d ids wait, %d were answered", len(ids.waits), ids.answered)
			}
			clear(ids.waits) // others may have served whom these were for
			return nil
		})
	}
	stop()
	callers.Wait()
	require.NoError(t, w.Close(context.Background()))
	b := w.Stats()
	require.Equal(t, b.Granted, b.Spent+b.Returned+b.Expired, "%+v", b)
	require.EqualValues(t, len(spends), b.Spent)
}

// TestCrowdComesBackAfterNATSWasAway is B157: many workers lose NATS at one moment
// and find it again; each of them gets its turn, and the limit holds.
func TestCrowdComesBackAfterNATSWasAway(t *testing.T) {
	t.Parallel()
	const contract = "100/1s"
	const policy = "limits:\n  - key: k\n    rules: [" + contract + "]\n"
	r := realSite(t, policy)
	n := scaled(20, 60)
	var workers []*worker.Worker
	for i := range n {
		nc, err := bus.Connect(r.NATS, bus.ConnectConfig{Wait: harness.Patience})
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		config := worker.DefaultConfig()
		config.Name = fmt.Sprint("w", i)
		w, err := worker.New(bus.NewClient(nc, bus.ClientConfig{}), config)
		require.NoError(t, err)
		workers = append(workers, w)
		h, err := w.Limiter("k").Acquire(context.Background(), 1)
		require.NoError(t, err)
		h.Finish()
	}
	r.until(t, "nothing to be held, which could be spent later", func(d document) bool { return d.Leases == 0 && d.Held.Tokens == 0 })
	require.NoError(t, r.Kill())
	var mu sync.Mutex
	var spends []oracle.Spend
	var callers sync.WaitGroup
	for _, w := range workers {
		for range 10 {
			callers.Go(func() {
				ctx, cancel := soon(harness.Patience)
				defer cancel()
				h, err := w.Limiter("k").Acquire(ctx, 1)
				if err != nil {
					t.Errorf("%s did not come back: %v", w.Name(), err)
					return
				}
				h.Finish()
				mu.Lock()
				defer mu.Unlock()
				spends = append(spends, spendOf(h, 1))
			})
		}
	}
	r.restart(policy)
	callers.Wait()
	require.Len(t, spends, 10*n)
	require.Empty(t, oracle.Violations(spends, oracle.MustRules(contract)), "the new coordinator granted all of them")
	for _, w := range workers {
		require.NoError(t, w.Close(context.Background()))
	}
	r.until(t, "all to be back", func(d document) bool { return d.Leases == 0 && d.Waiting == 0 })
}

// TestFirstContactThatFailsHasItsExitCode: first contact that fails is told at
// once, by an exit code of its own.
func TestFirstContactThatFailsHasItsExitCode(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	addr, err := harness.FreeAddr()
	require.NoError(t, err)
	log := filepath.Join(t.TempDir(), "log")
	p := h.Start(harness.Command{Path: h.Bin("worker").Path("worker"),
		Args: []string{"load", "--nats", "nats://" + addr, "--key", "k", "--count", "1", "--connect-wait", "100ms", "--log", log}})
	require.Equal(t, 5, h.Wait(p), p.Output())
	require.Zero(t, lines(log))
}
