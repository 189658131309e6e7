package diskbackend_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/diskbackend"
	"ration/lease"
)

// lead runs f with the leader of a coordinator over a mirror.
func lead(t *testing.T, m *diskbackend.Mirror, f func(ctx context.Context, l *coordinator.Leader)) {
	t.Helper()
	p, err := lease.ParsePolicy("test.yaml", []byte(`limits: [{key: k, rules: [2/1h]}]`))
	require.NoError(t, err)
	cfg := coordinator.DefaultConfig(p)
	cfg.Mirror, cfg.Elector = m, m
	c, err := coordinator.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
		f(ctx, l)
		cancel()
		return nil
	}))
}

func request(seq uint64) lease.Request {
	return lease.Request{
		ID:   lease.ID{Holder: lease.Holder{Name: "w", Incarnation: 1}, Seq: seq},
		Keys: []lease.Key{"k"},
		Want: lease.Amount{Tokens: 1},
		Need: lease.Amount{Tokens: 1},
	}
}

// TestSuccessorKnowsWhatWasPromised: what one process granted is held in the next,
// whether it gave the seat up or not; and the next leads at once.
func TestSuccessorKnowsWhatWasPromised(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir)
	var first lease.Answer
	lead(t, m, func(ctx context.Context, l *coordinator.Leader) {
		var err error
		first, err = l.Acquire(ctx, request(1))
		require.NoError(t, err)
		require.Equal(t, lease.Granted, first.Outcome)
	})
	require.NoError(t, m.Close())
	m = open(t, dir)
	lead(t, m, func(ctx context.Context, l *coordinator.Leader) {
		require.NotEqual(t, first.Epoch, l.Epoch())
		a, err := l.Acquire(ctx, request(1))
		require.NoError(t, err)
		require.Equal(t, lease.Granted, a.Outcome, "the same request has the same grant")
		a, err = l.Acquire(ctx, request(2))
		require.NoError(t, err)
		require.Equal(t, lease.Granted, a.Outcome)
		require.NoError(t, m.Close(), "before it can resign")
	})
	began := time.Now()
	m = open(t, dir)
	lead(t, m, func(ctx context.Context, l *coordinator.Leader) {
		require.Less(t, time.Since(began), 2*time.Second, "no seat TTL is waited for")
		a, err := l.Acquire(ctx, request(3))
		require.NoError(t, err)
		require.Equal(t, lease.Refused, a.Outcome, "both are held")
		a, err = l.Acquire(ctx, request(2))
		require.NoError(t, err)
		require.Equal(t, lease.Granted, a.Outcome)
	})
}
