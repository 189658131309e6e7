package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
)

// TestNoMoreThanTheLimitIsGrantedAsLongAsTheLeaderLives plays a mirror that fails in all
// ways, slows down and forgets, at random, under one leader after another, each of which ends
// when the mirror has caught up: of no key is more granted than its limit. A successor that
// starts from a copy of the mirror, as if the leader had been killed then, knows the same.
func TestNoMoreThanTheLimitIsGrantedAsLongAsTheLeaderLives(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			c := newAbsences(t, seed, counts)
			for range 3 {
				lead(t, c.cfg, c.play)
			}
		})
	}
	for _, what := range []string{"granted", "refused", "unrecorded", "forgot", "restored", "copied", "another epoch"} {
		require.Positive(t, counts[what], "%s: %v", what, counts)
	}
}

type absences struct {
	*rand.Rand
	t       *testing.T
	seed    uint64
	cfg     coordinator.Config
	mirror  *absent
	seq     uint64
	granted map[lease.Key]int64
	counts  map[string]int
}

const each = 3 // of each key

func newAbsences(t *testing.T, seed uint64, counts map[string]int) *absences {
	cfg, mirror, _ := availably(t, fmt.Sprintf(`limits: [{key: "{k}", rules: [%d/1h]}]`, each), "fails")
	return &absences{
		Rand: rand.New(rand.NewPCG(seed, 11)), t: t, seed: seed, cfg: cfg, mirror: mirror,
		granted: map[lease.Key]int64{}, counts: counts,
	}
}

func (c *absences) play(ctx context.Context, t *testing.T, l *coordinator.Leader) {
	epoch := l.Epoch()
	for range 120 {
		switch c.IntN(12) {
		case 0:
			c.mirror.away.Store(false) // before it fails in another way
			synctest.Wait()
			c.mirror.how.Store(&ways[c.IntN(len(ways))])
			c.mirror.away.Store(true)
		case 1, 2:
			c.mirror.away.Store(false)
		case 3:
			c.mirror.slow.Store(c.Int64N(int64(50 * time.Millisecond)))
		case 4:
			c.mirror.slow.Store(0)
		case 5:
			if c.IntN(6) == 0 {
				c.mirror.Forget()
				c.counts["forgot"]++
			}
		case 6:
			if c.IntN(6) == 0 {
				older := c.mirror.Copy()
				c.ask(ctx, l)
				c.mirror.Restore(older)
				c.counts["restored"]++
			}
		case 7:
			time.Sleep(time.Duration(c.Int64N(int64(time.Second))))
		case 8:
			if c.IntN(4) == 0 {
				c.succeed(ctx, l)
			}
		default:
			c.ask(ctx, l)
		}
		if _, behind := l.Behind(); behind {
			c.counts["unrecorded"]++
		}
	}
	c.mirror.away.Store(false)
	c.mirror.slow.Store(0)
	c.ask(ctx, l) // what it has forgotten is noticed
	time.Sleep(3 * time.Second)
	caughtUp(t, l)
	if l.Epoch() != epoch {
		c.counts["another epoch"]++
	}
}

// ask asks for one token of some key.
func (c *absences) ask(ctx context.Context, l *coordinator.Leader) {
	c.seq++
	key := lease.Key(fmt.Sprint(c.IntN(40)))
	a, err := l.Acquire(ctx, of(key, c.seq))
	switch {
	case errors.Is(err, lease.ErrMirrorAway): // the leader has not read it yet
	case a.Outcome == lease.Granted:
		c.counts["granted"]++
		c.granted[key]++
	default:
		require.NoError(c.t, err)
		c.counts["refused"]++
	}
	require.LessOrEqual(c.t, c.granted[key], int64(each), "seed %d, %q", c.seed, key)
}

// succeed lets another lead that has what the mirror has now.
func (c *absences) succeed(ctx context.Context, l *coordinator.Leader) {
	c.ask(ctx, l) // what it has forgotten is noticed
	time.Sleep(time.Second)
	if _, behind := l.Behind(); behind {
		return
	}
	cfg := c.cfg
	copied := c.mirror.Copy()
	cfg.Mirror, cfg.Elector = copied, copied
	lead(c.t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
		for key, granted := range c.granted {
			for more := granted; ; more++ {
				c.seq++
				a, err := l.Acquire(ctx, of(key, c.seq))
				require.NoError(t, err)
				if a.Outcome != lease.Granted {
					break
				}
				require.Less(t, more, int64(each), "seed %d, %q", c.seed, key)
			}
		}
	})
	c.counts["copied"]++
}
