package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
)

// leaving is a mirror and a seat that fail while they are away.
type leaving struct {
	*coordinator.Memory
	away atomic.Bool
}

func (m *leaving) fail() error {
	if m.away.Load() {
		return errors.New("connection refused")
	}
	return nil
}

func (m *leaving) Look(ctx context.Context) (lease.Seat, error) {
	seat, err := m.Memory.Look(ctx)
	return seat, errors.Join(err, m.fail())
}

func (m *leaving) Renew(ctx context.Context, e lease.Epoch, p lease.Pulse) error {
	if err := m.fail(); err != nil {
		return err
	}
	return m.Memory.Renew(ctx, e, p)
}

func (m *leaving) Apply(ctx context.Context, t *lease.Turn) error {
	if err := m.fail(); err != nil {
		return err
	}
	return m.Memory.Apply(ctx, t)
}

// stand runs a coordinator that is connected to NATS and shares a mirror, until the test
// ends.
func stand(t *testing.T, m *leaving) *site {
	t.Helper()
	s := (&site{standsBy: true, connected: func() bool { return true }}).divide(1)
	p := s.parts[0]
	config := coordinator.DefaultConfig(lease.Demo())
	config.Mirror, config.Elector = m, m
	require.EqualError(t, s.ready(), "no answer from Redis", "its state is not open")
	coord, err := coordinator.New(config)
	require.NoError(t, err)
	p.coord.Store(coord)
	require.EqualError(t, s.ready(), "no answer from Redis", "it has not looked")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- coord.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			defer p.lead(l)()
			p.serving.Store(true)
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	time.Sleep(time.Second)
	synctest.Wait()
	return s
}

// TestWhoCouldNotLeadIsNotReady: a standby that cannot read the seat, and a leader that
// serves nobody since its mirror is away. Both are alive, from the first moment on: what
// the leader has in memory is all that remembers what it granted.
func TestWhoCouldNotLeadIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordinator.NewMemory()
		leads, stands := &leaving{Memory: memory}, &leaving{Memory: memory}
		leader := stand(t, leads)
		standby := stand(t, stands)
		p := leader.parts[0]
		require.True(t, p.serving.Load())
		require.NoError(t, leader.ready())
		require.NoError(t, standby.ready())
		require.False(t, p.waits())

		stands.away.Store(true)
		time.Sleep(time.Second)
		require.EqualError(t, standby.ready(), "no answer from Redis")
		require.NoError(t, standby.alive(t.Context()))

		leads.away.Store(true)
		require.NoError(t, leader.alive(t.Context()), "it waits for its mirror")
		require.True(t, p.waits())
		require.NoError(t, leader.alive(t.Context()))
		require.NoError(t, leader.ready(), "for a seat TTL")
		time.Sleep(3 * time.Second)
		require.Nil(t, p.leader.Load())
		require.EqualError(t, leader.ready(), "it has the seat, and serves nobody until Redis answers")
		leader.standsBy = false
		require.EqualError(t, leader.ready(), "it has the seat, and serves nobody until its state can be written")
		leader.standsBy = true
		require.NoError(t, leader.alive(t.Context()))

		leads.away.Store(false)
		stands.away.Store(false)
		time.Sleep(time.Second)
		require.NoError(t, leader.ready())
		require.NoError(t, standby.ready())
		require.False(t, p.waits())
		require.NoError(t, leader.alive(t.Context()))
	})
}
