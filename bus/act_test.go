package bus

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
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
	require.ErrorContains(t, err, "what was done cannot be written")
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
		"":                               "bad_request",
		"{}":                             "bad_request",
		`{"v":1}`:                        "bad_request",
		`{"v":1,"clock":false}`:          "bad_request",
		`{"v":1,"clock":"please"}`:       "bad_request",
		`{"v":9,"clock":true}`:           "format",
		`{"v":1,"clock":true,"key":"k"}`: "bad_request",
		`{"v":1,"key":"k"}`:              "bad_request",
	} {
		m, err := nc.RequestWithContext(bounded(t), "ration.v1.default.admin.reset.0", []byte(body))
		require.NoError(t, err)
		require.Equal(t, want, lease.Code(told(m.Data)), "%s: %s", body, m.Data)
	}
	_, clock, err := decodeAct(lease.VerbReset, encodeClockReset())
	require.NoError(t, err)
	require.True(t, clock)
}

// TestActReachesTheLeaderOfItsKey: as it was meant, whatever number of partitions its sender
// took the cell to have.
func TestActReachesTheLeaderOfItsKey(t *testing.T) {
	e := embed(t)
	nc := dialed(t, e.URL(), ConnectConfig{})
	var got []lease.Act
	for n := range 2 {
		serve(t, nc, ServeConfig{Lessor: granting(), Partitions: 2, Partition: n, Act: func(_ context.Context, a lease.Act) (any, error) {
			require.Equal(t, n, Partition(Token(a.Key.Tenant()), 2))
			got = append(got, a)
			return map[string]int{"v": Format}, nil
		}})
	}
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	want := []lease.Act{
		{Verb: lease.VerbPause, Key: "acme/prod", Reason: "\"so\" ä", By: "alice", For: 1500 * time.Millisecond},
		{Verb: lease.VerbPause, Key: "\xff/a"},
		{Verb: lease.VerbResume, Key: "b", Reason: "done"},
		{Verb: lease.VerbReset, Key: "c/d/e"},
		{Verb: lease.VerbCharge, Key: "d", ID: "a-1", N: algo.MaxLimit, Unit: "tokens", Age: 1},
	}
	for _, a := range want {
		_, err := c.Act(bounded(t), a)
		require.NoError(t, err)
	}
	require.Equal(t, want, got)
	_, err := c.Act(bounded(t), lease.Act{Verb: lease.VerbCharge, Key: "d", ID: "a", N: -1})
	require.ErrorIs(t, err, lease.ErrBadRequest)
	for verb, bodies := range map[string]map[string]string{
		"pause":  {`{"v":1}`: "bad_request", `{"v":1,"clock":true}`: "bad_request", `{"v":1,"key":"a//b"}`: "bad_key", `{"v":1,"key":"d","for":"-1s"}`: "bad_request", `{"v":1,"key":"d","n":1}`: "bad_request"},
		"charge": {`{"v":1,"key":"d","n":1}`: "bad_request", `{"v":1,"key":"d","n":-1,"id":"a"}`: "bad_request", `{"v":1,"key":"d","n":1,"id":"a b"}`: "bad_request"},
		"resume": {`{"v":1,"key":"d","reason":"a\nb"}`: "bad_request", `{"v":1,"key":"d","by":"` + strings.Repeat("b", lease.MaxName+1) + `"}`: "bad_request"},
	} {
		for body, want := range bodies {
			n := strconv.Itoa(Partition(Token("d"), 2))
			m, err := nc.RequestWithContext(bounded(t), "ration.v1.default.admin."+verb+"."+n, []byte(body))
			require.NoError(t, err)
			require.Equal(t, want, lease.Code(told(m.Data)), "%s: %s", body, m.Data)
		}
	}
	require.Len(t, got, len(want), "nothing else was done")
}

func TestResetIsNotServedWhereThereIsNone(t *testing.T) {
	e := embed(t)
	nc := dialed(t, e.URL(), ConnectConfig{})
	serve(t, nc, ServeConfig{Lessor: granting()})
	_, err := NewClient(nc, ClientConfig{}).ResetClock(bounded(t), 0)
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
}
