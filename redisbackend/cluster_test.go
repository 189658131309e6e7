package redisbackend_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/internal/mirrortest"
	"ration/lease"
	"ration/redisbackend"
)

// newCluster joins three nodes to a Cluster, and gives clients of each.
func newCluster(t *testing.T) (h *harness.Test, server *redisbackend.Server, nodes []*redis.Client) {
	t.Helper()
	h = harness.New(t)
	started := h.Cluster(3)
	for i, r := range started {
		c := raw(t, r)
		nodes = append(nodes, c)
		require.NoError(t, c.ClusterAddSlotsRange(bounded(t), i*16384/3, (i+1)*16384/3-1).Err())
		host, port, _ := strings.Cut(started[0].Addr, ":")
		require.NoError(t, c.Do(bounded(t), "CLUSTER", "MEET", host, port, started[0].Bus).Err())
	}
	h.Until("a Cluster", func() error {
		for _, c := range nodes {
			info, err := c.ClusterInfo(bounded(t)).Result()
			if err != nil {
				return err
			}
			for _, line := range []string{"cluster_state:ok", "cluster_known_nodes:3", "cluster_size:3"} {
				if !strings.Contains(info, line) {
					return fmt.Errorf("%s is not in %s", line, info)
				}
			}
		}
		return nil
	})
	return h, open(t, fmt.Sprintf("redis://%s?addr=%s&addr=%s", started[0].Addr, started[1].Addr, started[2].Addr)), nodes
}

// TestClusterIsAMirror: what the single server passes, on three shards.
func TestClusterIsAMirror(t *testing.T) {
	t.Parallel()
	_, server, nodes := newCluster(t)
	require.NoError(t, server.Check(bounded(t), "c"))
	cells := 0
	mirrortest.Run(t, func(*testing.T) mirrortest.Mirror {
		cells++
		return server.Mirror(fmt.Sprintf("cell%d", cells), cells)
	})
	for i, c := range nodes {
		n, err := c.DBSize(bounded(t)).Result()
		require.NoError(t, err)
		require.Positive(t, n, "shard %d has nothing", i)
	}
}

// TestBracesInKeysMoveNothing (B127): whatever braces a key or a cell has, all keys of a
// partition are in one slot, also those of one call of several keys and their prefixes.
func TestBracesInKeysMoveNothing(t *testing.T) {
	t.Parallel()
	_, server, nodes := newCluster(t)
	braces := []lease.Key{"a{b}c", "{}", "}{", "{", "x{}y", "{x}", "}", "{{}}", "a{b}c/{}/}{", "{ration:c:0}:seat"}
	for _, cell := range []string{"c", "{c}", "}{"} {
		x := lead(t, server.Mirror(cell, 0), `limits: [{key: "{a}", rules: [3/1h, 1000/1d fixed]}, {key: "{a}/{b}", rules: [2/1h]}, {key: "{a}/{b}/{c}", rules: [1/1h]}]`)
		a := newAsking("w")
		for _, key := range braces {
			require.True(t, a.takes(t, x.leader, key), key)
		}
		several := a.request(0, "a{b}c", "a{b}c/}{", "a{b}c/}{/{}")
		answer := answered(t, x.leader, several)
		require.Equal(t, lease.Granted, answer.Outcome)
		sameInRedis(t, x)
		x.die() // another has to read what it wrote
		y := lead(t, server.Mirror(cell, 0), `limits: [{key: "{a}", rules: [3/1h]}]`)
		for _, key := range braces[:8] {
			want := 2
			if key == "a{b}c" {
				want = 0 // also what was taken below it
			}
			require.Equal(t, want, newAsking("after").many(t, y.leader, key, 4), key)
		}
		y.end()
	}
	slots := map[int64]bool{}
	for _, c := range nodes {
		keys, err := c.Keys(bounded(t), "*").Result()
		require.NoError(t, err)
		for _, k := range keys {
			slot, err := c.ClusterKeySlot(bounded(t), k).Result()
			require.NoError(t, err)
			slots[slot] = true
		}
	}
	require.Len(t, slots, 3, "one for each cell")
}

// TestScriptThatFailsIsNoGrant (B127): a node that is not there answers nothing, and
// nothing is granted for it.
func TestScriptThatFailsIsNoGrant(t *testing.T) {
	t.Parallel()
	h, server, nodes := newCluster(t)
	x := lead(t, server.Mirror("c", 0), `limits: [{key: "{a}", rules: [1/1h]}]`)
	for _, c := range nodes { // the slots of all are nobody's
		require.NoError(t, c.ClusterDelSlotsRange(bounded(t), 0, 16383).Err())
	}
	outcome := make(chan lease.Answer, 1)
	x.leader.Begin(newAsking("first").request(harness.Patience, "k"), func(a lease.Answer, err error) { outcome <- a })
	h.Until("a word about it", func() error { return least(x.log.count("the mirror fails"), 1) })
	_, err := x.leader.Acquire(bounded(t), newAsking("second").request(0, "k"))
	require.ErrorIs(t, err, lease.ErrMirrorAway)
	require.Empty(t, outcome, "its turn is not recorded")
	for i, c := range nodes {
		require.NoError(t, c.ClusterAddSlotsRange(bounded(t), i*16384/3, (i+1)*16384/3-1).Err())
	}
	require.Contains(t, []lease.Outcome{lease.Granted, lease.Ended}, (<-outcome).Outcome) // ended if it took long
}
