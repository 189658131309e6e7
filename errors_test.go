package ration_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration"
)

// TestErrorsNameThisPackageOnce and none of those within.
func TestErrorsNameThisPackageOnce(t *testing.T) {
	client, l := local(t, "limits: [{key: k, rules: [5/1h]}]", "k")
	defer client.Close(context.Background())
	_, badKey := client.Limiter("a//b")
	_, badPolicy := ration.Local("limits: 3")
	_, badURL := ration.Connect("nats://")
	_, nobody := ration.Connect("nats://127.0.0.1:1", ration.WithConnectWait(50*time.Millisecond))
	handle, err := l.Acquire(t.Context(), 1)
	require.NoError(t, err)
	for want, err := range map[string]error{
		`^ration: bad key: segment 2 of "a//b" is empty`:    badKey,
		`^ration: policy:1:9: `:                             badPolicy,
		`^ration: .* is no NATS URL`:                        badURL,
		`^ration: no coordinator answers: no NATS server`:   nobody,
		`^ration: a cost of 0; the least is 1$`:             l.WaitN(t.Context(), 0),
		`^ration: settled -2 of a call that asked for 1`:    handle.Settle(-2),
		`^ration: refused: the cost is above what the rule`: l.WaitN(t.Context(), 6),
	} {
		require.Error(t, err, want)
		require.Regexp(t, want, err.Error())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, context.Canceled, l.Wait(ctx), "the caller's own end is said as the caller knows it")
}
