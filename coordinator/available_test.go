package coordinator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
)

// log is what a coordinator has written.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func availably(t *testing.T, limits, how string) (coordinator.Config, *absent, *log) {
	t.Helper()
	cfg := config(t, "mirror: available\n"+limits)
	mirror, told := &absent{Memory: coordinator.NewMemory()}, &log{}
	mirror.how.Store(&how)
	cfg.Mirror, cfg.Elector = mirror, mirror
	cfg.Log = slog.New(slog.NewTextHandler(told, nil))
	return cfg, mirror, told
}

func granted(ctx context.Context, t *testing.T, l *coordinator.Leader, r lease.Request) {
	t.Helper()
	a, err := l.Acquire(ctx, r)
	require.NoError(t, err)
	require.Equal(t, lease.Granted, a.Outcome)
	require.Equal(t, l.Epoch(), a.Epoch)
}

func refused(ctx context.Context, t *testing.T, l *coordinator.Leader, r lease.Request) {
	t.Helper()
	a, err := l.Acquire(ctx, r)
	require.NoError(t, err)
	require.Equal(t, lease.Refused, a.Outcome)
}

// caughtUp waits until the mirror has all that was granted.
func caughtUp(t *testing.T, l *coordinator.Leader) {
	t.Helper()
	for range 10_000 {
		if _, behind := l.Behind(); !behind {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the mirror has not caught up in ten seconds")
}

// TestGrantsGoOnWithoutTheMirror, soon for the first and at once for the others, for as long
// as it is away, and within the limit; what the mirror lacks is told, and is written back.
func TestGrantsGoOnWithoutTheMirror(t *testing.T) {
	for _, how := range ways {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg, mirror, told := availably(t, `limits: [{key: "{k}", rules: [4/1h]}]`, how)
				lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
					granted(ctx, t, l, of("a", 1))
					_, behind := l.Behind()
					require.False(t, behind)
					mirror.away.Store(true)
					began := time.Now()
					granted(ctx, t, l, of("a", 2))
					require.Equal(t, 30*time.Millisecond, time.Since(began))
					granted(ctx, t, l, of("a", 3))
					granted(ctx, t, l, of("b", 4))
					require.Equal(t, 30*time.Millisecond, time.Since(began), "the others do not wait")
					time.Sleep(10 * cfg.Seat.TTL)
					granted(ctx, t, l, of("a", 5))
					refused(ctx, t, l, of("a", 6))
					b, behind := l.Behind()
					require.True(t, behind)
					require.Equal(t, coordinator.Behind{Since: began.Add(30 * time.Millisecond), Away: true, Leases: 4, Granted: lease.Amount{Tokens: 4}}, b)
					mirror.away.Store(false)
					caughtUp(t, l)
					require.Equal(t, int64(3), record(t, mirror.Memory, "a").Windows[0].State.Spent+record(t, mirror.Memory, "a").Windows[0].State.Held-1)
					require.Len(t, record(t, mirror.Memory, "b").Windows, 1)
					seat, err := mirror.Memory.Look(ctx)
					require.NoError(t, err)
					require.Zero(t, seat.Lost, "nothing is in doubt")
				})
				require.Equal(t, []uint64{1}, mirror.seqs[:1])
				for i, seq := range mirror.seqs[1:] {
					require.LessOrEqual(t, seq-mirror.seqs[i], uint64(1), "%v", mirror.seqs)
				}
				lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
					refused(ctx, t, l, of("a", 20))
				})
				for _, line := range []string{"the mirror does not answer; grants go on without it", "the mirror has caught up"} {
					require.Contains(t, told.String(), line)
				}
			})
		})
	}
}

// TestMirrorThatComesBackEmptyIsCaughtUp: all that the leader knows is written to it under
// another epoch, also of keys that nobody asked for while it was away.
func TestMirrorThatComesBackEmptyIsCaughtUp(t *testing.T) {
	for _, how := range ways {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg, mirror, _ := availably(t, `limits: [{key: "{k}", rules: [2/1h]}]`, how)
				lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
					granted(ctx, t, l, of("before", 1))
					epoch := l.Epoch()
					mirror.away.Store(true)
					granted(ctx, t, l, of("a", 2))
					granted(ctx, t, l, of("b", 3))
					mirror.Forget()
					mirror.away.Store(false)
					caughtUp(t, l)
					require.Greater(t, l.Epoch().Number, epoch.Number)
					for _, key := range []lease.Key{"before", "a", "b"} {
						require.Len(t, record(t, mirror.Memory, key).Windows, 1, key)
					}
					seat, err := mirror.Memory.Look(ctx)
					require.NoError(t, err)
					require.Zero(t, seat.Lost, "the leader knew all")
				})
			})
		})
	}
}

// TestMirrorThatComesBackOlderIsCaughtUp: a turn that it had, and one of which nobody knew
// whether it had it, are written back.
func TestMirrorThatComesBackOlderIsCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, mirror, _ := availably(t, `limits: [{key: "{k}", rules: [2/1h]}]`, "loses the answer")
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			granted(ctx, t, l, of("a", 1))
			older := mirror.Copy()
			granted(ctx, t, l, of("b", 2))
			mirror.away.Store(true)
			granted(ctx, t, l, of("c", 3))
			mirror.Restore(older)
			mirror.away.Store(false)
			caughtUp(t, l)
			for _, key := range []lease.Key{"a", "b", "c"} {
				require.Len(t, record(t, mirror.Memory, key).Windows, 1, key)
			}
		})
	})
}

// TestLeaderThatWasReplacedWhileItsMirrorWasAwayGrantsNothing more, once it learns of that.
func TestLeaderThatWasReplacedWhileItsMirrorWasAwayGrantsNothing(t *testing.T) {
	for _, how := range ways {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg, mirror, told := availably(t, `limits: [{key: k, rules: [9/1h]}]`, how)
				heard := atomic.Pointer[coordinator.Heard]{}
				heard.Store(&coordinator.Heard{Connected: true})
				cfg.Hear = func(lease.Seat) coordinator.Heard { return *heard.Load() }
				lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
					granted(ctx, t, l, request(1, 0))
					mirror.away.Store(true)
					granted(ctx, t, l, request(2, 0))
					seen, err := mirror.Memory.Look(ctx)
					require.NoError(t, err)
					next := seen
					next.Epoch = lease.Epoch{Number: seen.Epoch.Number + 1, Mark: 5}
					require.NoError(t, mirror.Memory.Campaign(ctx, seen, next))
					granted(ctx, t, l, request(3, 0))
					heard.Store(&coordinator.Heard{Connected: true, Served: true}) // the other lives
					mirror.away.Store(false)
					time.Sleep(time.Second + cfg.Seat.TTL)
					_, err = l.Acquire(ctx, request(4, 0))
					require.ErrorIs(t, err, lease.ErrStopped)
					seat, err := mirror.Memory.Look(ctx)
					require.NoError(t, err)
					require.Equal(t, next.Epoch, seat.Epoch)
				})
				require.Contains(t, told.String(), "lost the seat")
			})
		})
	}
}

// TestStandbyLeavesTheSeatToALeaderThatGoesOn: while that is heard on the network; once it is
// not, the seat is taken, and what was granted without the mirror is forgotten.
func TestStandbyLeavesTheSeatToALeaderThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, mirror, told := availably(t, `limits: [{key: k, rules: [1/1h]}]`, "fails")
		standing := cfg
		var lives atomic.Bool
		lives.Store(true)
		standing.Mirror, standing.Elector = mirror.Memory, mirror.Memory // cut off is only the leader
		standing.Hear = func(lease.Seat) coordinator.Heard {
			return coordinator.Heard{Connected: true, Served: lives.Load(), Silent: !lives.Load()}
		}
		standby, err := coordinator.New(standing)
		require.NoError(t, err)
		led := make(chan *coordinator.Leader, 1)
		ended := make(chan error, 1)
		running, stop := context.WithCancel(t.Context())
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			mirror.away.Store(true)
			granted(ctx, t, l, request(1, 0))
			go func() {
				ended <- standby.Run(running, func(ctx context.Context, l *coordinator.Leader) error {
					led <- l
					<-ctx.Done()
					return nil
				})
			}()
			time.Sleep(10 * cfg.Seat.TTL)
			require.Empty(t, led)
			refused(ctx, t, l, request(2, 0))
		})
		require.Contains(t, told.String(), "the mirror has not caught up; what it lacks is forgotten")
		lives.Store(false)
		granted(running, t, <-led, request(3, 0))
		stop()
		require.NoError(t, <-ended)
	})
}

// TestKeysThatNobodyKnowsWaitForTheMirror: of a key that the leader has not loaded it knows
// not what is spent, so it does not grant of it.
func TestKeysThatNobodyKnowsWaitForTheMirror(t *testing.T) {
	for _, how := range []string{"fails", "hangs"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg, mirror, _ := availably(t, `limits: [{key: "{k}", rules: [2/1h]}]`, how)
				lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
					granted(ctx, t, l, of("a", 1))
					granted(ctx, t, l, of("b", 2))
				})
				pages := &unpaged{absent: mirror}
				cfg.Mirror = pages
				lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
					granted(ctx, t, l, of("a", 3))
					mirror.away.Store(true)
					_, err := l.Acquire(ctx, of("b", 4))
					require.ErrorIs(t, err, lease.ErrMirrorAway)
					refused(ctx, t, l, of("a", 5)) // of what it knows
					reply, err := l.Report(ctx, lease.Report{Holder: request(1, 0).ID.Holder, Counts: []lease.Count{{ID: of("b", 2).ID, Keys: []lease.Key{"b"}, Returned: 1}}})
					require.ErrorIs(t, err, lease.ErrMirrorAway, "%+v", reply)
					mirror.away.Store(false)
					caughtUp(t, l)
					granted(ctx, t, l, of("b", 6))
					refused(ctx, t, l, of("b", 7))
				})
			})
		})
	}
}

// unpaged is a mirror that lists no keys.
type unpaged struct{ *absent }

func (*unpaged) Keys(context.Context, lease.Epoch, string) ([]lease.Key, string, error) {
	return nil, "more", nil
}

// TestKeysThatCouldNotBeLoadedAreLoadedLater: those that a page has listed are not forgotten
// where the mirror does not give their records.
func TestKeysThatCouldNotBeLoadedAreLoadedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, mirror, _ := availably(t, `limits: [{key: "{k}", rules: [1/1h]}]`, "fails")
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			granted(ctx, t, l, of("a", 1))
			granted(ctx, t, l, of("b", 2))
		})
		unread := &unread{absent: mirror}
		unread.is.Store(true)
		cfg.Mirror = unread
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			time.Sleep(time.Second)
			b, _ := l.Behind()
			require.True(t, b.Away)
			unread.is.Store(false)
			caughtUp(t, l)
			time.Sleep(time.Second)
			mirror.away.Store(true)
			refused(ctx, t, l, of("a", 3)) // which it knows
			refused(ctx, t, l, of("b", 4))
		})
	})
}

// unread is a mirror that lists its keys one by one, and may not give their records.
type unread struct {
	*absent
	is atomic.Bool
}

func (u *unread) Keys(ctx context.Context, e lease.Epoch, from string) ([]lease.Key, string, error) {
	all, _, err := u.absent.Keys(ctx, e, "")
	i, _ := strconv.Atoi(from)
	switch {
	case err != nil || i >= len(all):
		return nil, "", err
	case i == len(all)-1:
		return all[i:], "", nil
	}
	return all[i : i+1], strconv.Itoa(i + 1), nil
}

func (u *unread) Load(ctx context.Context, e lease.Epoch, keys []lease.Key) ([]lease.Record, error) {
	if u.is.Load() {
		return nil, errors.New("away")
	}
	return u.absent.Load(ctx, e, keys)
}

// TestMirrorIsCaughtUpInParts, while requests are answered; and when a leader ends, before
// it gives up its seat.
func TestMirrorIsCaughtUpInParts(t *testing.T) {
	const keys = 1000
	forgotten := func(t *testing.T, then func(ctx context.Context, t *testing.T, l *coordinator.Leader)) string {
		cfg, mirror, told := availably(t, `limits: [{key: "{k}", rules: [1/1h]}]`, "fails")
		mirror.slow.Store(int64(5 * time.Millisecond))
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			mirror.away.Store(true)
			for seq := range uint64(keys) {
				granted(ctx, t, l, of(lease.Key(fmt.Sprint(seq)), seq))
			}
			mirror.away.Store(false)
			for b, _ := l.Behind(); b.Away; b, _ = l.Behind() {
				time.Sleep(time.Millisecond)
			}
			then(ctx, t, l)
		})
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			for seq := range uint64(keys) {
				refused(ctx, t, l, of(lease.Key(fmt.Sprint(seq)), keys+seq))
			}
		})
		return told.String()
	}
	synctest.Test(t, func(t *testing.T) {
		turns := 0
		told := forgotten(t, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			for {
				if _, behind := l.Behind(); !behind {
					break
				}
				refused(ctx, t, l, of("0", uint64(2*keys+turns)))
				turns++
			}
		})
		require.Positive(t, turns)
		require.NotContains(t, told, "is forgotten")
	})
	synctest.Test(t, func(t *testing.T) {
		told := forgotten(t, func(_ context.Context, t *testing.T, l *coordinator.Leader) {
			_, behind := l.Behind()
			require.True(t, behind)
		})
		require.NotContains(t, told, "is forgotten")
		require.Contains(t, told, "has caught up")
	})
}

// TestMirrorThatIsSlowAgainAndAgain is not said to be away each time, and has all in the end.
func TestMirrorThatIsSlowAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, mirror, told := availably(t, `limits: [{key: "{k}", rules: [1/1h]}]`, "fails")
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			const asks = 400
			for seq := range uint64(asks) {
				mirror.slow.Store(int64(time.Duration(seq%2) * 35 * time.Millisecond))
				began := time.Now()
				granted(ctx, t, l, of(lease.Key(fmt.Sprint(seq)), seq))
				require.LessOrEqual(t, time.Since(began), 100*time.Millisecond)
				time.Sleep(50 * time.Millisecond)
			}
			mirror.slow.Store(0)
			caughtUp(t, l)
			said := func(text string) int { return strings.Count(told.String(), text) }
			before := said("mirror does not answer")
			require.Positive(t, before)
			require.LessOrEqual(t, before, 6)
			mirror.away.Store(true)
			granted(ctx, t, l, of("lasts", asks))
			time.Sleep(3 * time.Second)
			require.Equal(t, before+1, said("mirror does not answer"), "it is said of one that lasts")
			mirror.away.Store(false)
			caughtUp(t, l)
			require.Equal(t, before+1, said("mirror has caught up"))
			for seq := range asks {
				require.Len(t, record(t, mirror.Memory, lease.Key(fmt.Sprint(seq))).Windows, 1)
			}
		})
	})
}

// TestMirrorThatComesBackAfterTheEndHasAll: a leader that ends while its mirror is away waits
// for it, as long as a seat TTL.
func TestMirrorThatComesBackAfterTheEndHasAll(t *testing.T) {
	for _, how := range ways {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg, mirror, told := availably(t, `limits: [{key: "{k}", rules: [1/1h]}]`, how)
				cfg.Seat.TTL = time.Minute
				later := time.AfterFunc(time.Hour, func() { mirror.away.Store(false) })
				defer later.Stop()
				lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
					mirror.away.Store(true)
					granted(ctx, t, l, of("a", 1))
					granted(ctx, t, l, of("b", 2))
					later.Reset(time.Second)
				})
				require.NotContains(t, told.String(), "is forgotten")
				lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
					refused(ctx, t, l, of("a", 3))
					refused(ctx, t, l, of("b", 4))
				})
			})
		})
	}
}

// TestWhyTheMirrorIsAwayIsSaid, as soon as that is known, and now and then while it lasts.
func TestWhyTheMirrorIsAwayIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, mirror, told := availably(t, `limits: [{key: k, rules: [9/1h]}]`, "hangs")
		lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
			granted(ctx, t, l, request(1, 0))
			mirror.away.Store(true)
			granted(ctx, t, l, request(2, 0))
			require.Contains(t, told.String(), "the mirror does not answer")
			require.NotContains(t, told.String(), "error=", "it is not known yet")
			time.Sleep(cfg.Seat.TTL + 20*time.Millisecond)
			require.Contains(t, told.String(), context.DeadlineExceeded.Error())
			time.Sleep(20 * time.Second)
			require.InDelta(t, 4, strings.Count(told.String(), "still does not answer"), 1)
			mirror.away.Store(false)
			caughtUp(t, l)
		})
	})
}

// pausing is a log in which whoever says something is put aside for as long, once.
type pausing struct {
	text  string
	pause func()
	once  sync.Once
}

func (p *pausing) Write(b []byte) (int, error) {
	if strings.Contains(string(b), p.text) {
		p.once.Do(p.pause)
	}
	return len(b), nil
}

// TestLeaderThatWasPutAsideWaitsForTheMirrorAgain: all its patience went by while it stood
// still, and another has led since. Its mirror answers at once, and tells it that.
func TestLeaderThatWasPutAsideWaitsForTheMirrorAgain(t *testing.T) {
	for range 20 { // what is ready together comes in any order
		synctest.Test(t, func(t *testing.T) {
			cfg, mirror, _ := availably(t, `limits: [{key: k, rules: [9/1h]}]`, "fails")
			next := lease.Seat{Epoch: lease.Epoch{Number: 7, Mark: 7}, Partitions: 1, Mirror: 1}
			cfg.Log = slog.New(slog.NewTextHandler(&pausing{text: "the mirror has lost what it had", pause: func() {
				require.NoError(t, mirror.Memory.Campaign(t.Context(), lease.Seat{}, next))
				time.Sleep(time.Second)
			}}, nil))
			lead(t, cfg, func(ctx context.Context, t *testing.T, l *coordinator.Leader) {
				granted(ctx, t, l, request(1, 0))
				mirror.Forget()
				_, err := l.Acquire(ctx, request(2, 0))
				require.ErrorIs(t, err, lease.ErrStopped)
			})
		})
	}
}

// TestDeafLeaderTakesNoEmptiedMirror: grants go on without the mirror, which has lost all.
// While nobody can be heard another may have led since, so the seat is not taken.
func TestDeafLeaderTakesNoEmptiedMirror(t *testing.T) {
	hearing(t, "mirror: available\nlimits: [{key: k, rules: [5/1h]}]", func(ctx context.Context, t *testing.T, c listening) {
		l := <-c.leaders
		before := l.Epoch()
		granted(ctx, t, l, request(1, 0))
		c.hears(coordinator.Heard{})
		c.memory.Forget()
		a, err := l.Acquire(ctx, request(2, time.Second))
		require.NoError(t, err)
		require.Equal(t, lease.Granted, a.Outcome)
		time.Sleep(c.Seat.TTL / 8)
		seat, err := c.memory.Look(ctx)
		require.NoError(t, err)
		require.Zero(t, seat.Epoch, "nobody is heard")
		c.hears(coordinator.Heard{Connected: true})
		time.Sleep(c.Seat.TTL / 8)
		seat, err = c.memory.Look(ctx)
		require.NoError(t, err)
		require.Greater(t, seat.Epoch.Number, before.Number)
	})
}
