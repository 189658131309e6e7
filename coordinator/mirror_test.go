package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
)

// record is what a mirror has of a key under the leader's epoch.
func record(t *testing.T, m *coordinator.Memory, key lease.Key) lease.Record {
	t.Helper()
	seat, err := m.Look(t.Context())
	require.NoError(t, err)
	records, err := m.Load(t.Context(), seat.Epoch, []lease.Key{key})
	require.NoError(t, err)
	return records[0]
}

func of(key lease.Key, seq uint64) lease.Request {
	r := request(seq, 0)
	r.Keys = []lease.Key{key}
	return r
}

// TestMirrorThatForgotIsWrittenBack: under another epoch, all that the leader knows, also
// of keys that nobody asks for; and as it knows all there is, nothing is in doubt then.
func TestMirrorThatForgotIsWrittenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, `limits: [{key: "{k}", rules: [1/1h]}]`)
		memory := coordinator.NewMemory()
		cfg.Mirror, cfg.Elector = memory, memory
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			for seq, key := range []lease.Key{"a", "b", "c"} {
				a, err := l.Acquire(ctx, of(key, uint64(seq)))
				require.NoError(t, err)
				require.Equal(t, lease.Granted, a.Outcome)
			}
			before := l.Epoch()
			memory.Forget()
			a, err := l.Acquire(ctx, of("a", 10))
			require.NoError(t, err)
			require.Equal(t, lease.Refused, a.Outcome, "it knows what it granted")
			require.Greater(t, l.Epoch().Number, before.Number)
			require.Equal(t, l.Epoch(), a.Epoch)
			time.Sleep(time.Second)
			synctest.Wait()
			for _, key := range []lease.Key{"b", "c"} {
				r := record(t, memory, key)
				require.Len(t, r.Windows, 1, key)
				require.Equal(t, l.Epoch().Number, r.Written)
			}
			seat, err := memory.Look(ctx)
			require.NoError(t, err)
			require.Zero(t, seat.Lost)
			a, err = l.Acquire(ctx, of("new", 11))
			require.NoError(t, err)
			require.Equal(t, lease.Granted, a.Outcome)
		})
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			a, err := l.Acquire(ctx, of("b", 12))
			require.NoError(t, err)
			require.Equal(t, lease.Refused, a.Outcome, "its successor knows too")
		})
	})
}

// TestLedgerOfAnEarlierEpochIsNotWrittenBack: a mirror has forgotten all, and with it that
// another has led since. Who does not know what that one granted does not write back what it
// knows itself, nor does who cannot hear of it. When nobody else does, all counts as spent.
func TestLedgerOfAnEarlierEpochIsNotWrittenBack(t *testing.T) {
	for name, since := range map[string]func(own uint64) []coordinator.Heard{
		"another has seen a later epoch": func(own uint64) []coordinator.Heard { return []coordinator.Heard{{Connected: true, Number: own + 1}} },
		"another had": func(own uint64) []coordinator.Heard {
			return []coordinator.Heard{{Connected: true, Number: own + 1}, {Connected: true}}
		},
		"another leads": func(own uint64) []coordinator.Heard {
			return []coordinator.Heard{{Connected: true, Number: own, Led: own}}
		},
		"nothing is heard": func(uint64) []coordinator.Heard { return []coordinator.Heard{{}} },
	} {
		t.Run(name, func(t *testing.T) {
			hearing(t, `limits: [{key: k, rules: [5/1h]}]`, func(ctx context.Context, t *testing.T, c listening) {
				l := <-c.leaders
				own := l.Epoch().Number
				c.hears(coordinator.Heard{Connected: true, Number: own}) // others know this one
				granted(ctx, t, l, request(1, 0))
				c.memory.Forget()
				granted(ctx, t, l, request(2, 0))
				own = l.Epoch().Number
				for _, h := range since(own) {
					c.hears(h)
					time.Sleep(2 * c.RenewEvery)
				}
				c.memory.Forget()
				_, err := l.Acquire(ctx, request(3, time.Minute))
				require.ErrorIs(t, err, lease.ErrStopped)
				c.hears(coordinator.Heard{Connected: true, Number: own})
				l = <-c.leaders
				require.Greater(t, l.Epoch().Number, own)
				a, err := l.Acquire(ctx, request(4, 0))
				require.NoError(t, err)
				require.Equal(t, lease.Refused, a.Outcome)
			})
		})
	}
}

// TestEpochOfAnotherMirrorIsNotRemembered: somebody was there for a moment whose mirror is
// another, and has seen many epochs. That is no reason to give up what one knows when one's
// own mirror forgets, long after.
func TestEpochOfAnotherMirrorIsNotRemembered(t *testing.T) {
	hearing(t, `limits: [{key: k, rules: [2/1h]}]`, func(ctx context.Context, t *testing.T, c listening) {
		l := <-c.leaders
		granted(ctx, t, l, request(1, 0))
		c.hears(coordinator.Heard{Connected: true, Number: 50, Rivals: []coordinator.Rival{{Name: "coordinator b", Mirror: 0xab}}})
		time.Sleep(2 * c.RenewEvery)
		c.hears(coordinator.Heard{Connected: true})
		c.memory.Forget()
		granted(ctx, t, l, request(2, time.Minute))
		a, err := l.Acquire(ctx, request(3, 0))
		require.NoError(t, err)
		require.Equal(t, lease.Refused, a.Outcome, "it knows of both")
	})
}

// TestWhatNobodyRemembersCountsAsSpent: a mirror forgets while only a standby lives that
// has seen it. Every key is full until its window has passed, also in the mirror.
func TestWhatNobodyRemembersCountsAsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, `limits: [{key: "{k}", rules: [5/1m, 2 concurrent]}]`)
		memory := coordinator.NewMemory()
		cfg.Mirror, cfg.Elector = memory, memory
		standby, err := coordinator.New(cfg)
		require.NoError(t, err)
		leads := make(chan *coordinator.Leader, 1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		other := lease.Seat{Epoch: lease.Epoch{Number: 7, Mark: 1}, Name: "other", Partitions: 1, Pulse: lease.Pulse{Instant: 5}}
		require.NoError(t, memory.Campaign(ctx, lease.Seat{}, other))
		go func() {
			ended <- standby.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
				leads <- l
				<-ctx.Done()
				return nil
			})
		}()
		time.Sleep(time.Second) // it looks
		memory.Forget()
		l := <-leads
		asks := of("a", 1)
		asks.Need.Slots, asks.Want.Slots = 1, 1
		a, err := l.Acquire(ctx, asks)
		require.NoError(t, err)
		require.Equal(t, lease.Refused, a.Outcome)
		require.ErrorIs(t, a.Refusal.Reason, lease.ErrLimit)
		synctest.Wait()
		require.Equal(t, int64(5), record(t, memory, "a").Windows[0].State.Spent)
		time.Sleep(2 * time.Minute)
		asks.ID.Seq = 2
		asks.Sent += 2 * time.Minute
		a, err = l.Acquire(ctx, asks)
		require.NoError(t, err)
		require.Equal(t, lease.Granted, a.Outcome)
		seat, err := memory.Look(ctx)
		require.NoError(t, err)
		require.Zero(t, seat.Lost, "nothing is in doubt any more")
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestWhoDoesNotWaitIsToldThatTheMirrorIsAway, soon and without a lease; who waits is
// answered when it is back. After a seat TTL nobody is served until then.
func TestWhoDoesNotWaitIsToldThatTheMirrorIsAway(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		whoDoesNotWaitIsTold(t, hangs)
	}
}

func whoDoesNotWaitIsTold(t *testing.T, hangs bool) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, `limits: [{key: k, rules: [2/1h]}]`)
		cfg.Lease.TokenTTL = 20 * time.Second // longer than the mirror is away here
		mirror := &failing{Memory: coordinator.NewMemory(), hangs: hangs}
		cfg.Mirror, cfg.Elector = mirror, mirror
		c, err := coordinator.New(cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		served, ended := make(chan context.Context, 8), make(chan error)
		var leader *coordinator.Leader
		go func() {
			ended <- c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
				leader = l
				served <- ctx
				<-ctx.Done()
				return nil
			})
		}()
		first := <-served
		synctest.Wait()
		mirror.away.Store(true)
		waits := make(chan lease.Answer, 1)
		go func() {
			if a, err := leader.Acquire(ctx, request(1, time.Minute)); err == nil {
				waits <- a
			}
		}()
		time.Sleep(10 * time.Millisecond)
		began := time.Now()
		_, err = leader.Acquire(ctx, request(2, 0))
		require.ErrorIs(t, err, lease.ErrMirrorAway)
		require.LessOrEqual(t, time.Since(began), 50*time.Millisecond)
		require.NoError(t, first.Err())
		time.Sleep(cfg.Seat.TTL + 100*time.Millisecond)
		require.Error(t, first.Err(), "nobody is served")
		require.Empty(t, waits)
		mirror.away.Store(false)
		again := <-served
		require.NoError(t, again.Err())
		require.Equal(t, lease.Granted, (<-waits).Outcome)
		cancel()
		require.NoError(t, <-ended)
	})
}

// failing is a mirror that can be away.
type failing struct {
	*coordinator.Memory
	hangs bool // where it fails, it does so late
	away  atomic.Bool
}

func (f *failing) Apply(ctx context.Context, t *lease.Turn) error {
	if f.away.Load() && f.hangs {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond): // as long as a client waits for an answer
		}
	}
	if f.away.Load() {
		return errors.New("away")
	}
	return f.Memory.Apply(ctx, t)
}

// TestNobodyWaitsForWhatIsLoadedInTheBackground, but for a few keys of it: a new leader
// has many to load, from a mirror that takes its time.
func TestNobodyWaitsForWhatIsLoadedInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 2000
		cfg := config(t, `limits: [{key: "{k}", rules: [5/1h]}]`)
		mirror := &slow{Memory: coordinator.NewMemory()}
		cfg.Mirror, cfg.Elector = mirror, mirror
		named := func(i int) lease.Key { return lease.Key(fmt.Sprintf("k%d", i)) }
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			for i := range keys {
				_, err := l.Acquire(ctx, of(named(i), uint64(i)))
				require.NoError(t, err)
			}
		})
		mirror.perKey.Store(int64(10 * time.Microsecond))
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			for i := range 10 {
				began := mirror.loaded.Load()
				a, err := l.Acquire(ctx, of(named(keys-1-i), uint64(keys+i)))
				require.NoError(t, err)
				require.Equal(t, lease.Granted, a.Outcome)
				require.Less(t, mirror.loaded.Load()-began, int64(300), "what is loaded before it is answered")
				time.Sleep(time.Millisecond)
			}
			require.Eventually(t, func() bool { return mirror.loaded.Load() == keys }, time.Minute, 10*time.Millisecond, "each is loaded, and once")
			synctest.Wait()
			require.EqualValues(t, keys, mirror.loaded.Load())
		})
	})
}

// slow is a mirror that takes time for each key that it loads.
type slow struct {
	*coordinator.Memory
	perKey atomic.Int64
	loaded atomic.Int64 // since it has been slow
}

func (s *slow) Load(ctx context.Context, e lease.Epoch, keys []lease.Key) ([]lease.Record, error) {
	if each := s.perKey.Load(); each > 0 {
		time.Sleep(time.Duration(each) * time.Duration(len(keys)))
		s.loaded.Add(int64(len(keys)))
	}
	return s.Memory.Load(ctx, e, keys)
}
