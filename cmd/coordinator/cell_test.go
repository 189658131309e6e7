package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/coordinator"
	"ration/lease"
)

// shared is the mirrors of a cell of four partitions, of which some may fail.
type shared struct {
	mirrors [4]*coordinator.Memory
	fails   [4]atomic.Pointer[error]
}

func newShared() *shared {
	s := &shared{}
	for n := range s.mirrors {
		s.mirrors[n] = coordinator.NewMemory()
	}
	return s
}

// blinded is an elector whose looks fail with what stands there.
type blinded struct {
	*coordinator.Memory
	with *atomic.Pointer[error]
}

func (f blinded) Look(ctx context.Context) (lease.Seat, error) {
	if err := f.with.Load(); err != nil {
		return lease.Seat{}, *err
	}
	return f.Memory.Look(ctx)
}

func (s *shared) kept() *kept {
	return &kept{place: "state is shared", close: func() {}, config: func(c *coordinator.Config, n int) {
		c.Mirror, c.Elector = s.mirrors[n], blinded{s.mirrors[n], &s.fails[n]}
	}}
}

// running is a coordinator in this process.
type running struct {
	*cell
	told  *locked
	stop  context.CancelFunc
	ended chan error
}

// join starts a coordinator of a cell whose state is shared.
func join(t *testing.T, url, name string, s *shared) *running {
	t.Helper()
	r := &running{told: &locked{}, ended: make(chan error, 1)}
	voice := cli.Logging{}.Voice(name, cli.Streams{Out: r.told, Err: r.told})
	c := &serveCommand{Nats: url, Name: name}
	c.Cell, c.Redis, c.Partitions, c.SeatTTL = "default", "shared", len(s.mirrors), 2*time.Second
	ctx, stop := context.WithCancel(t.Context())
	l, err := c.connect(ctx, bus.ConnectConfig{Name: name, Wait: time.Minute})
	require.NoError(t, err)
	r.stop = stop
	r.cell, err = newCell(c, c.site(lease.Demo(), l), s.kept(), l, voice, 300*time.Millisecond)
	require.NoError(t, err)
	r.all = func(coordinator.InForce) string { return name + " leads all" }
	go func() { r.ended <- r.run(ctx) }()
	t.Cleanup(func() {
		stop()
		r.close()
		l.close()
	})
	return r
}

// leads is how many partitions it serves.
func (r *running) leads() (count int) {
	for _, p := range r.site.parts {
		if p.serving.Load() {
			count++
		}
	}
	return count
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, time.Minute, time.Millisecond, what)
}

// TestCoordinatorsShareACell: the first takes all, the second is given half, and whoever
// stops hands over what it has.
func TestCoordinatorsShareACell(t *testing.T) {
	server, err := bus.Embed("127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		s := newShared()
		a := join(t, server.URL(), "a", s)
		eventually(t, "a leads all", func() bool { return a.leads() == 4 })
		require.Contains(t, a.told.String(), "a leads all")
		b := join(t, server.URL(), "b", s)
		eventually(t, "b is given half", func() bool { return a.leads() == 2 && b.leads() == 2 })
		require.Contains(t, b.told.String(), "b leads partition")

		answer, err := b.site.document(t.Context(), "")
		require.NoError(t, err)
		leaders := map[string]int{}
		for n, p := range answer.(*document).Partitions {
			require.Equal(t, n, p.N)
			require.NotZero(t, p.Epoch)
			leaders[p.Leader]++
		}
		require.Equal(t, map[string]int{"a": 2, "b": 2}, leaders)

		a.stop()
		require.NoError(t, <-a.ended)
		require.Zero(t, a.leads())
		eventually(t, "b leads all", func() bool { return b.leads() == 4 })
		require.NotContains(t, b.told.String(), "lost the seat")
		b.stop()
		require.NoError(t, <-b.ended)
	})
}

// TestWhoStopsClaimsNothing: nor does who is not well, since what it is handed nobody
// would take up.
func TestWhoStopsClaimsNothing(t *testing.T) {
	server, err := bus.Embed("127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	s, unwell := newShared(), newShared()
	a := join(t, server.URL(), "a", s)
	eventually(t, "a leads all", func() bool { return a.leads() == 4 })
	away := errors.New("the mirror is away")
	for n := range unwell.mirrors {
		unwell.mirrors[n] = s.mirrors[n]
	}
	unwell.fails[3].Store(&away)
	b := join(t, server.URL(), "b", unwell)
	claims := func() (claims bool) {
		for _, p := range b.site.parts {
			claims = claims || b.known(p).Claims
		}
		return claims
	}
	<-b.site.parts[2].coord.Load().Agreed()
	for range 10 { // looks, of which each is a third of what it would have to be well for
		time.Sleep(balanceEvery)
		require.False(t, claims())
	}
	unwell.fails[3].Store(nil)
	eventually(t, "b is given half", func() bool { return a.leads() == 2 && b.leads() == 2 })
	b.stop()
	require.NoError(t, <-b.ended)
	require.False(t, claims())
	b.mu.Lock()
	b.watch()
	b.mu.Unlock()
	require.False(t, claims(), "however often it looks")
}

// TestLostSeatDisturbsNoOther: of one partition another coordinator takes the seat by
// force, and of one the mirror fails for good; and what no waiting helps ends all in order.
func TestLostSeatDisturbsNoOther(t *testing.T) {
	server, err := bus.Embed("127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	s := newShared()
	a := join(t, server.URL(), "a", s)
	eventually(t, "a leads all", func() bool { return a.leads() == 4 })
	epochs := func() (list []uint64) {
		for _, m := range s.mirrors {
			seat, err := m.Look(t.Context())
			require.NoError(t, err)
			list = append(list, seat.Epoch.Number)
		}
		return list
	}
	before := epochs()
	seen, err := s.mirrors[1].Look(t.Context())
	require.NoError(t, err)
	for err = lease.ErrMoved; errors.Is(err, lease.ErrMoved); {
		if seen, err = s.mirrors[1].Look(t.Context()); err == nil {
			next := seen
			next.Epoch = lease.Epoch{Number: seen.Epoch.Number + 1, Mark: 7}
			err = s.mirrors[1].Campaign(t.Context(), seen, next)
		}
	}
	require.NoError(t, err)
	eventually(t, "a has lost one", func() bool { return strings.Contains(a.told.String(), "lost the seat") })
	eventually(t, "and wins it back from nobody", func() bool { return a.leads() == 4 && epochs()[1] > before[1]+1 })
	for _, n := range []int{0, 2, 3} {
		require.Equal(t, before[n], epochs()[n], "partition %d was never lost", n)
	}

	fatal := fmt.Errorf("%w: it has 7", lease.ErrFormat)
	s.fails[2].Store(&fatal)
	seat, err := s.mirrors[2].Look(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.mirrors[2].Resign(t.Context(), seat.Epoch)) // so that it campaigns
	require.ErrorIs(t, <-a.ended, lease.ErrFormat)
	require.Zero(t, a.leads())
	for n, m := range s.mirrors {
		seat, err := m.Look(t.Context())
		require.NoError(t, err)
		require.True(t, seat.Vacant, "partition %d is handed over", n)
	}
}

// clogged is a writer that takes nothing before it is freed.
type clogged struct{ wants, freed chan struct{} }

func (c clogged) Write(p []byte) (int, error) {
	c.wants <- struct{}{}
	<-c.freed
	return len(p), nil
}

// TestWhatIsSaidHoldsNobodyUp: a full pipe would freeze all renewals, which need the lock.
func TestWhatIsSaidHoldsNobodyUp(t *testing.T) {
	err := clogged{make(chan struct{}), make(chan struct{})}
	s := divided(nil)
	c := &cell{site: s, voice: cli.Logging{}.Voice("a", cli.Streams{Out: err, Err: err})}
	said := make(chan struct{})
	go func() {
		c.count(s.parts[0], 1)
		close(said)
	}()
	<-err.wants
	free := c.mu.TryLock()
	close(err.freed)
	<-said
	require.True(t, free, "the lock is held while it is written")
	require.Equal(t, 1, c.led)
}

// TestFileIsInForceWhereverSomebodyLeadsInTheEnd, unless a later policy is: what comes late
// does not undo that.
func TestFileIsInForceWhereverSomebodyLeadsInTheEnd(t *testing.T) {
	server, err := bus.Embed("127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	s := newShared()
	away := errors.New("away")
	s.fails[3].Store(&away)
	r := join(t, server.URL(), "a", s)
	eventually(t, "a leads three", func() bool { return r.leads() == 3 })
	parse := func(limit string) *lease.Policy {
		p, err := lease.ParsePolicy("p", []byte(policyText(limit)))
		require.NoError(t, err)
		return p
	}
	reform := func(p *lease.Policy) chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.reform(t.Context(), p)
		}()
		return done
	}
	in := func(p *lease.Policy, parts ...*part) func() bool {
		return func() bool {
			for _, part := range parts {
				if part.inForce().Policy.String() != p.String() {
					return false
				}
			}
			return true
		}
	}
	first, second := parse("1/1s"), parse("2/1s")
	one := reform(first)
	eventually(t, "the first is in force where a leads", in(first, r.site.parts[:3]...))
	two := reform(second)
	eventually(t, "the second is", in(second, r.site.parts[:3]...))
	<-one
	require.Contains(t, r.told.String(), "a later policy is in force")
	s.fails[3].Store(nil)
	<-two
	eventually(t, "the second is in force everywhere", in(second, r.site.parts...))
	require.Equal(t, uint64(3), r.site.revision())
}
