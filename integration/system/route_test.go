package system

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/coordinator"
	"ration/integration/harness"
	"ration/lease"
	"ration/worker"
)

// hiccup is a seat whose renewals fail at times.
type hiccup struct {
	*coordinator.Memory
	fails, failed atomic.Int64
}

func (h *hiccup) Renew(ctx context.Context, e lease.Epoch, p lease.Pulse) error {
	if h.fails.Add(-1) >= 0 {
		h.failed.Add(1)
		return errors.New("the mirror does not answer just now")
	}
	return h.Memory.Renew(ctx, e, p)
}

// side is a coordinator on a NATS node of its own.
type side struct {
	coord *coordinator.Coordinator
	ears  *bus.Ears
	leads atomic.Bool
}

// standBy starts a coordinator that campaigns, until the test ends.
func standBy(t *testing.T, name, url string, seat *hiccup) *side {
	t.Helper()
	p, err := lease.ParsePolicy("policy", []byte("limits:\n  - {key: k, rules: [1000/1s]}\n"))
	require.NoError(t, err)
	nc, err := bus.Connect(url, bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(t, err)
	s := &side{}
	config := coordinator.DefaultConfig(p)
	config.Mirror, config.Elector = seat.Memory, seat
	// Longer than the machine stands still for now and then, shorter than the test waits.
	config.Seat.Name, config.Seat.Early, config.Seat.TTL = name, 2*time.Second, 20*time.Second
	heard := func(epoch lease.Epoch) coordinator.Heard {
		h := s.ears.Hear(epoch)
		return coordinator.Heard{Connected: h.Connected, Silent: h.Silent, Served: h.Served, Mute: !h.Silent && !h.Served}
	}
	config.Hear = func(seat lease.Seat) coordinator.Heard { return heard(seat.Epoch) }
	s.coord, err = coordinator.New(config)
	require.NoError(t, err)
	s.ears, err = bus.Listen(nc, bus.EarsConfig{Name: name, Every: config.LookEvery, Known: func() bus.Known {
		number, mirror, leads := s.coord.Known()
		return bus.Known{Number: number, Mirror: mirror, Leads: leads}
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- s.coord.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			defer s.leads.Store(false)
			return bus.Serve(ctx, nc, bus.ServeConfig{Lessor: l, Epoch: l.Epoch, Recalls: l.AllRecalls, Ready: func() { s.leads.Store(true) }})
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s ended: %v", name, err)
		}
		s.ears.Close()
		nc.Close()
	})
	return s
}

// TestALostRouteFlipsNoLeadership is B145, as far as NATS goes: leader and standby are on
// two nodes that lose their route. The standby hears that nobody leads, and sees that the
// seat is renewed, so it stays where it is; who asks at its node is told that nobody
// answers, and is served as before when the route is back. Nor does a renewal that fails
// now and then end the leadership.
func TestALostRouteFlipsNoLeadership(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	at := free(t, 4)
	const cluster = "listen: %s\nserver_name: %s\ncluster { name: fleet, listen: %s, no_advertise: true%s }\n"
	one := newNode(t, fmt.Sprintf(cluster, at[0], "one", at[1], ""))
	route := h.Wire(at[1])
	two := newNode(t, fmt.Sprintf(cluster, at[2], "two", at[3], `, routes: [ "nats-route://`+route.Addr()+`" ]`))

	seat := &hiccup{Memory: coordinator.NewMemory()}
	leader := standBy(t, "leader", one.url(), seat)
	until := func(what string, holds func() bool) {
		t.Helper()
		h.Until(what, func() error {
			if holds() {
				return nil
			}
			return errors.New("not yet")
		})
	}
	until("a leader", leader.leads.Load)
	standby := standBy(t, "standby", two.url(), seat)
	near, err := worker.New(newHand(t, one.url()).client, worker.DefaultConfig())
	require.NoError(t, err)
	far, err := worker.New(newHand(t, two.url()).client, worker.DefaultConfig())
	require.NoError(t, err)
	served := func(w *worker.Worker) {
		t.Helper()
		ctx, cancel := soon(harness.Patience)
		defer cancel()
		handle, err := w.Limiter("k").Acquire(ctx, 1)
		require.NoError(t, err)
		handle.Finish()
	}
	look := func() lease.Epoch {
		t.Helper()
		s, err := seat.Look(t.Context())
		require.NoError(t, err)
		require.Equal(t, "leader", s.Name)
		return s.Epoch
	}
	epoch := look()
	until("the standby to hear the leader", func() bool { return standby.ears.Hear(epoch).Served })
	served(near)
	served(far)
	until("nothing to be held, which could be spent later", func() bool { return far.Stats().Held == 0 })

	route.Cut()
	until("the standby to hear nobody", func() bool { return standby.ears.Hear(epoch).Silent })
	until("who asks there to be told why it takes too long", func() bool {
		ctx, cancel := soon(200 * time.Millisecond)
		defer cancel()
		_, err := far.Limiter("k").Acquire(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return errors.Is(err, lease.ErrNoCoordinator)
	})
	silent := time.Now()
	until("twice what a standby waits for", func() bool { return time.Since(silent) > 4*time.Second })
	served(near)
	require.Equal(t, epoch, look())
	require.False(t, standby.leads.Load())

	route.Mend()
	served(far)
	until("the standby to hear the leader again", func() bool { return standby.ears.Hear(epoch).Served })
	seat.fails.Store(3)
	until("renewals to have failed", func() bool { return seat.failed.Load() == 3 })
	served(near)
	served(far)
	require.Equal(t, epoch, look())
	for _, w := range []*worker.Worker{near, far} {
		require.NoError(t, w.Close(context.Background()))
	}
}
