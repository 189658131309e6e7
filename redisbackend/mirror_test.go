package redisbackend_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/internal/mirrortest"
	"ration/redisbackend"
)

// open opens a server that may be slow: what is tested is what it answers.
func open(t *testing.T, url string) *redisbackend.Server {
	t.Helper()
	config := redisbackend.DefaultConfig()
	config.Wait = harness.Patience / 2
	return openAs(t, url, config)
}

// openHasty opens one as coordinators do.
func openHasty(t *testing.T, url string) *redisbackend.Server {
	t.Helper()
	return openAs(t, url, redisbackend.DefaultConfig())
}

func openAs(t *testing.T, url string, config redisbackend.Config) *redisbackend.Server {
	t.Helper()
	s, err := redisbackend.Open(url, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// TestOneServerIsAMirror, each cell of it by itself.
func TestOneServerIsAMirror(t *testing.T) {
	server := open(t, harness.New(t).Redis().URL())
	require.NoError(t, server.Check(t.Context(), "cell1"))
	cells := 0
	mirrortest.Run(t, func(*testing.T) mirrortest.Mirror {
		cells++
		return server.Mirror(fmt.Sprintf("cell%d", cells), cells)
	})
}
