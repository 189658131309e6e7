package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

// lead runs do with a site that leads under the demo policy.
func lead(t *testing.T, do func(ctx context.Context, s *site, l *coordinator.Leader)) {
	t.Helper()
	defer goleak.VerifyNone(t)
	s := (&site{name: "one", cell: "default", connected: func() bool { return true }}).divide(1)
	c, err := coordinator.New(coordinator.DefaultConfig(lease.Demo()))
	require.NoError(t, err)
	err = c.Run(t.Context(), func(ctx context.Context, l *coordinator.Leader) error {
		defer s.parts[0].lead(l)()
		s.parts[0].serving.Store(true)
		do(ctx, s, l)
		return nil
	})
	require.NoError(t, err)
}

func get(h http.Handler, path string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// As many series as there are, however many keys; none is named.
func TestMetricsCountTokensAndNeverNameKeys(t *testing.T) {
	lead(t, func(ctx context.Context, s *site, l *coordinator.Leader) {
		for i := range 600 {
			key := lease.Key(fmt.Sprintf("secret-%d", i))
			id := lease.ID{Holder: lease.Holder{Name: "w"}, Seq: uint64(i + 1)}
			two := lease.Amount{Tokens: 2, Units: lease.Units{{Unit: "v", N: 1}, {Unit: "w", N: 3}}}
			a, err := l.Acquire(ctx, lease.Request{ID: id, Keys: []lease.Key{key}, Want: two, Need: two})
			require.NoError(t, err)
			require.Equal(t, lease.Granted, a.Outcome)
		}
		a, err := l.Acquire(ctx, lease.Request{
			ID: lease.ID{Holder: lease.Holder{Name: "w"}, Seq: 1000}, Keys: []lease.Key{"demo"},
			Want: lease.Amount{Tokens: 100}, Need: lease.Amount{Tokens: 100},
		})
		require.NoError(t, err)
		require.Equal(t, lease.Refused, a.Outcome)

		over := lease.Count{ID: lease.ID{Holder: lease.Holder{Name: "w"}, Seq: 1}, Keys: []lease.Key{"secret-0"}, Over: 4, OverUnits: lease.Units{{Unit: "w", N: 5}}}
		for range 2 { // counts are cumulative
			_, err = l.Report(ctx, lease.Report{Holder: lease.Holder{Name: "w"}, Counts: []lease.Count{over}})
			require.NoError(t, err)
		}

		code, body := get(metricsHandler(s), "/metrics")
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, body, `ration_tokens_overspent_total{partition="0"} 4`+"\n")
		require.Contains(t, body, `ration_units_overspent_total{partition="0"} 5`+"\n")
		require.Contains(t, body, `ration_tokens_granted_total{partition="0"} 1200`+"\n")
		require.Contains(t, body, `ration_tokens_held{partition="0"} 1200`+"\n")
		require.Contains(t, body, `ration_units_held{partition="0"} 2400`+"\n")
		require.Contains(t, body, `ration_leases{partition="0"} 600`+"\n")
		require.Contains(t, body, `ration_requests_refused_total{partition="0",reason="never"} 1`)
		require.NotContains(t, body, "secret")
		require.Less(t, strings.Count(body, "\n"), 500)
	})
}

func TestReadinessSaysWhatIsMissing(t *testing.T) {
	there := false
	s := (&site{connected: func() bool { return there }}).divide(1)
	require.ErrorContains(t, s.ready(), "not connected to NATS")
	there = true
	require.ErrorIs(t, s.ready(), errNotLeading)
	require.NoError(t, s.alive(t.Context()), "a coordinator that does not lead is alive")
	code, _ := get(metricsHandler(s), "/metrics")
	require.Equal(t, http.StatusOK, code)
	lead(t, func(ctx context.Context, s *site, _ *coordinator.Leader) {
		require.NoError(t, s.ready())
		require.NoError(t, s.alive(ctx))
		s.parts[0].serving.Store(false)
		require.ErrorContains(t, s.ready(), "not subscribed yet")
		s.stopping.Store(true)
		require.ErrorContains(t, s.ready(), "stopping")
	})
}

func TestStuckTurnLoopIsNotAlive(t *testing.T) {
	lead(t, func(ctx context.Context, s *site, l *coordinator.Leader) {
		stuck, freed := make(chan struct{}), make(chan struct{})
		go func() {
			_ = l.Look(ctx, func(algo.Instant, *lease.Ledger) { close(stuck); <-freed })
		}()
		<-stuck
		require.ErrorContains(t, s.alive(ctx), "the turn loop does not answer")
		close(freed)
		require.NoError(t, s.alive(ctx))
	})
}
