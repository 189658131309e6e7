package coordinator_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
)

// gate is a mirror that can be held, and then records nothing; it can also fail
// once.
type gate struct {
	*coordinator.Memory
	fail chan error

	mu   sync.Mutex
	open chan struct{} // closed while it is not held
	seqs []uint64      // of the turns it was given, again and again
}

func newGate(m *coordinator.Memory) *gate {
	g := &gate{Memory: m, fail: make(chan error, 1), open: make(chan struct{})}
	close(g.open)
	return g
}

// hold holds it until the function that it gives is called.
func (g *gate) hold() (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
	return sync.OnceFunc(func() { close(g.open) })
}

func (g *gate) given() []uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seqs
}

func (g *gate) Apply(ctx context.Context, t *lease.Turn) error {
	g.mu.Lock()
	open := g.open
	g.seqs = append(g.seqs, t.Seq)
	g.mu.Unlock()
	select {
	case err := <-g.fail: // also where it is not held
		return err
	default:
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-g.fail:
		return err
	case <-open:
		return g.Memory.Apply(ctx, t)
	}
}

// TestNoAnswerLeavesBeforeItIsRecorded: neither a grant, a refusal, an answer
// said again, nor the renewal of a slot leaves while the mirror has not recorded
// its turn; when the mirror fails, the same turn goes again first.
func TestNoAnswerLeavesBeforeItIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, `limits: [{key: k, rules: [2/1h, 2 concurrent]}]`)
		mirror := newGate(coordinator.NewMemory())
		cfg.Mirror, cfg.Elector = mirror, mirror
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			slotted := func(seq uint64) lease.Request {
				r := request(seq, 0)
				r.Want.Slots, r.Need.Slots = 1, 1
				r.Patience = time.Minute // who does not wait is told that the mirror is away
				return r
			}
			first, err := l.Acquire(ctx, slotted(1))
			require.NoError(t, err)
			require.Equal(t, lease.Granted, first.Outcome)

			synctest.Wait() // its turn is over: the mirror holds none but those that follow
			release := mirror.hold()
			defer release()
			said := make(chan string, 4)
			for name, seq := range map[string]uint64{"said again": 1, "granted": 2} {
				go func() {
					if a, err := l.Acquire(ctx, slotted(seq)); err == nil && a.Outcome == lease.Granted {
						said <- name
					}
				}()
			}
			synctest.Wait()
			go func() {
				waits := slotted(3)
				waits.Keys = []lease.Key{"unknown"}
				if a, err := l.Acquire(ctx, waits); err == nil && a.Outcome == lease.Refused {
					said <- "refused"
				}
			}()
			go func() {
				r, err := l.Report(ctx, lease.Report{
					Holder: first.ID.Holder, Heartbeat: true,
					Counts: []lease.Count{{ID: first.ID, Keys: []lease.Key{"k"}}},
				})
				if err == nil && len(r.Renewed) == 1 {
					said <- "renewed"
				}
			}()
			synctest.Wait()
			require.Empty(t, said, "nothing of it is recorded")

			tried := mirror.given()
			mirror.fail <- errors.New("away")
			time.Sleep(time.Second)
			synctest.Wait()
			require.Empty(t, said, "the mirror failed")
			again := mirror.given()
			require.Greater(t, len(again), len(tried))
			require.Equal(t, tried[len(tried)-1], again[len(tried)], "the same turn goes again")

			release()
			synctest.Wait()
			close(said)
			var all []string
			for s := range said {
				all = append(all, s)
			}
			require.ElementsMatch(t, []string{"said again", "granted", "refused", "renewed"}, all)
			records, err := mirror.Load(ctx, l.Epoch(), []lease.Key{"k"})
			require.NoError(t, err)
			require.Len(t, records[0].Batches, 2)
		})
	})
}

// TestFencedTurnIsNeverAnswered: who asked a leader that has lost its seat hears
// that it has been stopped, and no grant.
func TestFencedTurnIsNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, `limits: [{key: k, rules: [1/1h]}]`)
		mirror := newGate(coordinator.NewMemory())
		cfg.Mirror, cfg.Elector = mirror, mirror
		c, err := coordinator.New(cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		leaders, done := make(chan *coordinator.Leader, 2), make(chan error)
		go func() {
			done <- c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
				leaders <- l
				<-ctx.Done()
				return nil
			})
		}()
		old := <-leaders
		synctest.Wait()
		mirror.fail <- lease.ErrFenced
		_, err = old.Acquire(ctx, request(1, 0))
		require.ErrorIs(t, err, lease.ErrStopped)
		a, err := (<-leaders).Acquire(ctx, request(2, 0))
		require.NoError(t, err)
		require.Equal(t, lease.Granted, a.Outcome, "what was not recorded was not taken")
		cancel()
		require.NoError(t, <-done)
	})
}
