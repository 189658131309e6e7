package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

func TestMemoryHasABoundWhateverTheLimit(t *testing.T) {
	small, err := algo.ParseRule("10/1d")
	require.NoError(t, err)
	large, err := algo.ParseRule("1000000000/1d")
	require.NoError(t, err)
	require.Less(t, memory(small, 0), memory(large, 0))
	require.Less(t, memory(large, 0), int64(70_000))
}

func TestGuardCostsMemoryWherePeriodsAreInReach(t *testing.T) {
	pace, err := algo.ParseRule("10/1s pace")
	require.NoError(t, err)
	require.Equal(t, memory(pace, 0), memory(pace, time.Hour))
	for _, text := range []string{"1000/1s fixed", "1000/1s counter"} {
		r, err := algo.ParseRule(text)
		require.NoError(t, err)
		require.Less(t, memory(r, 0), memory(r, time.Millisecond))
		require.Less(t, memory(r, time.Millisecond), memory(r, 5*time.Second))
	}
}
