package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/bus"
)

// TestSplitMirrorIsLedOnOneSide: each side takes all that it is given. The leader of a
// partition whose seat is taken on the other side hears of that on NATS, and stops.
func TestSplitMirrorIsLedOnOneSide(t *testing.T) {
	server, err := bus.Embed("127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	left, right := newShared(), newShared()
	a := join(t, server.URL(), "a", left)
	eventually(t, "a leads all", func() bool { return a.leads() == 4 })
	for n, m := range left.mirrors {
		right.mirrors[n] = m.Copy()
	}
	b := join(t, server.URL(), "b", right)
	eventually(t, "a hears of b", func() bool { return strings.Contains(a.told.String(), "the mirror may be split") })
	eventually(t, "each partition has one leader", func() bool {
		for n := range left.mirrors {
			if a.site.parts[n].serving.Load() == b.site.parts[n].serving.Load() {
				return false
			}
		}
		return true
	})
	for _, r := range []*running{a, b} {
		r.stop()
		require.NoError(t, <-r.ended)
	}
}
