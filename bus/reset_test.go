package bus

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestResetIsAskedOfOnePartition: of its leader, which says what it changed, or its error.
func TestResetIsAskedOfOnePartition(t *testing.T) {
	e := embed(t)
	nc := dialed(t, e.URL(), ConnectConfig{})
	resets := 0
	var told any = map[string]int{"v": Format, "moved": 5}
	var failure error
	stop := serve(t, nc, ServeConfig{Lessor: granting(), Partitions: 2, Partition: 1, ResetClock: func(context.Context) (any, error) {
		resets++
		return told, failure
	}})
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	ctx := bounded(t)
	body, err := c.ResetClock(ctx, 1)
	require.NoError(t, err)
	require.JSONEq(t, `{"v": 1, "moved": 5}`, string(body))
	require.Equal(t, 1, resets)
	told = func() {}
	_, err = c.ResetClock(ctx, 1)
	require.ErrorContains(t, err, "the reset cannot be written")
	failure = lease.ErrStopped
	_, err = c.ResetClock(ctx, 1)
	require.ErrorIs(t, err, lease.ErrStopped)
	_, err = c.ResetClock(ctx, 0)
	require.ErrorIs(t, err, lease.ErrNoCoordinator, "another partition")
	stop()
	_, err = c.ResetClock(ctx, 1)
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
	require.Equal(t, 3, resets)
}

// TestResetSaysWhatItResets: nothing is reset by a message that does not say so.
func TestResetSaysWhatItResets(t *testing.T) {
	e := embed(t)
	nc := dialed(t, e.URL(), ConnectConfig{})
	serve(t, nc, ServeConfig{Lessor: granting(), ResetClock: func(context.Context) (any, error) {
		t.Error("it is reset")
		return nil, nil
	}})
	for body, want := range map[string]string{
		"":                         "bad_request",
		"{}":                       "bad_request",
		`{"v":1}`:                  "bad_request",
		`{"v":1,"clock":false}`:    "bad_request",
		`{"v":1,"clock":"please"}`: "bad_request",
		`{"v":9,"clock":true}`:     "format",
	} {
		m, err := nc.RequestWithContext(bounded(t), "ration.v1.default.admin.reset.0", []byte(body))
		require.NoError(t, err)
		require.Equal(t, want, lease.Code(told(m.Data)), "%s: %s", body, m.Data)
	}
	require.NoError(t, decodeReset(encodeReset()))
}

func TestResetIsNotServedWhereThereIsNone(t *testing.T) {
	e := embed(t)
	nc := dialed(t, e.URL(), ConnectConfig{})
	serve(t, nc, ServeConfig{Lessor: granting()})
	_, err := NewClient(nc, ClientConfig{}).ResetClock(bounded(t), 0)
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
}
