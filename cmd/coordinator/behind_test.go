package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
)

func TestStatusTellsThatPromise1IsOff(t *testing.T) {
	since := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	one := &behindState{Since: since, For: int64(90 * time.Second), Away: true, Leases: 3, Granted: amount{Tokens: 5, Units: map[string]int64{"u": 1}}}
	other := &behindState{Since: since.Add(-time.Hour), For: int64(time.Hour + 90*time.Second), Leases: 1, Granted: amount{Tokens: 1, Slots: 1, Units: map[string]int64{"u": 2}}}
	for name, c := range map[string]struct {
		partitions []partition
		want       string
	}{
		"none": {[]partition{{N: 0}}, ""},
		"away": {[]partition{{N: 0, Behind: one}}, `promise 1 is off since 05:06:07Z, for 1m30s: the mirror is away;
granted without a record: 5 tokens and 1 unit=u in 3 leases
`},
		"being caught up": {[]partition{{N: 0, Behind: other}}, `promise 1 is off since 04:06:07Z, for 1h1m30s: the mirror is being caught up;
granted without a record: 1 token and 1 slot and 2 unit=u in 1 lease
`},
		"of two": {[]partition{{N: 0, Behind: one}, {N: 1}, {N: 2, Behind: other}}, `promise 1 is off since 04:06:07Z, for 1h1m30s: the mirror is away;
granted without a record: 6 tokens and 1 slot and 3 unit=u in 4 leases
`},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDocument(lease.Status{})
			d.Leader, d.Cell, d.Partitions = "one", "default", c.partitions
			require.Equal(t, "one leads cell default, epoch 0\n0 leases hold 0 tokens; 0 requests wait\n"+c.want+"nothing is held, spent or waited for\n",
				string(drawing{width: 80}.draw(d, "")))
		})
	}
	require.Equal(t, int64(1), one.Granted.Units["u"], "drawing changes nothing")
	told, err := json.Marshal(partition{Leader: "one", Behind: other})
	require.NoError(t, err)
	require.JSONEq(t, `{"n": 0, "leader": "one", "epoch": 0, "behind":
		{"since": "2026-03-04T04:06:07Z", "for": 3690000000000, "away": false, "leases": 1, "granted": {"tokens": 1, "slots": 1, "units": {"u": 2}}}}`, string(told))
}

// failing is a mirror that can be away.
type failing struct {
	*coordinator.Memory
	away atomic.Bool
}

func (f *failing) Apply(ctx context.Context, t *lease.Turn) error {
	if f.away.Load() {
		return errors.New("away")
	}
	return f.Memory.Apply(ctx, t)
}

// TestStatusAndMetricsFollowTheMirror: while it is away, and when it has caught up.
func TestStatusAndMetricsFollowTheMirror(t *testing.T) {
	policy, err := lease.ParsePolicy("test.yaml", []byte("mirror: available\nlimits: [{key: k, rules: [9/1h]}]\n"))
	require.NoError(t, err)
	s := (&site{name: "one", cell: "default", policy: policy, connected: func() bool { return true }}).divide(1)
	config := coordinator.DefaultConfig(policy)
	mirror := &failing{Memory: coordinator.NewMemory()}
	config.Mirror, config.Elector = mirror, mirror
	c, err := coordinator.New(config)
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context(), func(ctx context.Context, l *coordinator.Leader) error {
		defer s.parts[0].lead(l)()
		tells := func(metrics ...string) *behindState {
			_, body := get(metricsHandler(s), "/metrics")
			for _, m := range metrics {
				require.Contains(t, body, m+"\n")
			}
			d, err := s.document(ctx, "k")
			require.NoError(t, err)
			return d.(*document).Partitions[0].Behind
		}
		require.Nil(t, tells(`ration_mirror_behind{partition="0"} 0`, `ration_mirror_behind_seconds{partition="0"} 0`, `ration_mirror_behind_tokens{partition="0"} 0`))
		mirror.away.Store(true)
		two := lease.Amount{Tokens: 2}
		a, err := l.Acquire(ctx, lease.Request{ID: lease.ID{Holder: lease.Holder{Name: "w"}, Seq: 1}, Keys: []lease.Key{"k"}, Want: two, Need: two})
		require.NoError(t, err)
		require.Equal(t, lease.Granted, a.Outcome)
		b := tells(`ration_mirror_behind{partition="0"} 1`, `ration_mirror_behind_tokens{partition="0"} 2`)
		require.NotNil(t, b)
		require.True(t, b.Away)
		require.Equal(t, int64(1), b.Leases)
		require.Equal(t, int64(2), b.Granted.Tokens)
		require.Positive(t, b.For)
		code, _ := get(metricsHandler(s), "/metrics")
		require.Equal(t, http.StatusOK, code)
		mirror.away.Store(false)
		require.Eventually(t, func() bool { _, behind := l.Behind(); return !behind }, time.Minute, time.Millisecond)
		require.Nil(t, tells(`ration_mirror_behind{partition="0"} 0`))
		return nil
	}))
}
