package system

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
)

// storm is callers who wait, most of whom will be cancelled.
type storm struct {
	mu      sync.Mutex
	rnd     *rand.Rand     // under mu, as all below
	waiting []*stormCaller // in the order of asking
	spends  []oracle.Spend

	gone    int // cancelled before they were served
	handed  int // cancelled with the handle in their hands
	atGrant int // cancelled while their grant was under way
}

type stormCaller struct {
	n      int
	doomed bool
	cancel context.CancelFunc
}

// crossed stands between worker and coordinator: with each grant that comes by,
// some of the doomed who stand first in line are cancelled before it is handed on.
type crossed struct {
	lease.Lessor
	storm *storm
}

func (c crossed) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	a, err := c.Lessor.Acquire(ctx, r)
	if err != nil || a.Outcome != lease.Granted {
		return a, err
	}
	s := c.storm
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.rnd.IntN(int(a.Granted.Tokens) + 1)
	for _, w := range s.waiting {
		if left == 0 {
			break
		}
		if w.doomed {
			w.cancel()
			s.atGrant++
			left--
		}
	}
	return a, err
}

// TestCancelStorm: a thousand callers wait on 10/1s and nine hundred are
// cancelled, at random instants and in the instant of their grant. The books
// balance on both sides, the hundred are served at the contract's pace, and
// nothing is held for the cancelled.
func TestCancelStorm(t *testing.T) {
	for seed := range scaled(uint64(4), 40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			within(t, "  - {key: k, rules: [10/1s]}\n", func(w *world) { playStorm(w, seed) })
		})
	}
}

func playStorm(w *world, seed uint64) {
	t := w.t
	rnd := rand.New(rand.NewPCG(seed, 1))
	s := &storm{rnd: rand.New(rand.NewPCG(seed, 2))}
	l := w.joinBy(crossed{w.leader, s}, "stormy").Limiter("k")
	var callers sync.WaitGroup
	for n, place := range rnd.Perm(1000) {
		c := &stormCaller{n: n, doomed: place >= 100}
		var ctx context.Context
		ctx, c.cancel = context.WithCancel(context.Background())
		if c.doomed {
			after := time.Duration(rnd.Int64N(int64(8 * time.Second)))
			if rnd.IntN(4) == 0 { // or just when some come back, by the clock allowance
				after = time.Duration(1+rnd.IntN(7)) * (time.Second + time.Second/5000)
			}
			callers.Go(func() {
				select {
				case <-time.After(after):
					c.cancel()
				case <-ctx.Done():
				}
			})
		}
		s.mu.Lock()
		s.waiting = append(s.waiting, c)
		s.mu.Unlock()
		callers.Go(func() { s.call(t, l, ctx, c) })
	}
	callers.Wait()

	slices.SortFunc(s.spends, func(a, b oracle.Spend) int { return int(a.At - b.At) })
	require.Len(t, s.spends, 100, "all who stayed are served")
	require.Equal(t, 900, s.gone+s.handed)
	rules := oracle.MustRules("10/1s")
	require.Empty(t, oracle.Violations(s.spends, rules))
	// The clock allowance makes the window 1/5,000 longer. In virtual time only
	// what is waited for takes time, so all else would be a wait too many.
	ideal := oracle.Schedule{Rules: oracle.Wider(rules, time.Second/5000), From: s.spends[0].At}.First(len(s.spends))
	for i, spend := range s.spends {
		require.LessOrEqual(t, spend.At-ideal[i], int64(10*time.Millisecond), "spend %d of %d is behind the contract's pace", i+1, len(s.spends))
	}
	b := w.books()
	require.EqualValues(t, len(s.spends), b.Spent)
	proves(t, "nothing to be held", func() error {
		if held := w.status().Held; !held.Zero() {
			return fmt.Errorf("%+v is", held)
		}
		return nil
	})
	require.Zero(t, w.status().Stats.Expired, "nothing is held for the cancelled until it expires")
	require.EqualValues(t, len(s.spends), w.status().Stats.Spent)
	require.Positive(t, s.atGrant)
	require.Positive(t, s.handed)
	t.Logf("%d served, %d cancelled, %d of them while their grant was under way and %d with it in hand; the last one served after %.4f s, ideal %.4f s; books %+v",
		len(s.spends), s.gone+s.handed, s.atGrant, s.handed, float64(s.spends[len(s.spends)-1].At-s.spends[0].At)/1e9,
		float64(ideal[len(ideal)-1]-ideal[0])/1e9, w.books())
}

func (s *storm) call(t *testing.T, l *worker.Limiter, ctx context.Context, c *stormCaller) {
	defer c.cancel()
	h, err := l.Acquire(ctx, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(o *stormCaller) bool { return o == c })
	switch {
	case err == nil && c.doomed: // cancelled as the call was about to leave
		s.handed++
		h.Cancel()
	case err == nil:
		s.spends = append(s.spends, spendOf(h, 1))
		h.Finish()
	case c.doomed && ctx.Err() != nil:
		s.gone++
	default:
		t.Errorf("caller %d, who was not cancelled: %v", c.n, err)
	}
}
