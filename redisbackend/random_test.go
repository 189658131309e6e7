package redisbackend_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/integration/harness"
	"ration/lease"
)

// TestWhatARandomLoadLeavesIsRestoredBitForBit, and all of it but the seat has a TTL
// that ends a day after it can matter (B139: each TTL in its unit).
func TestWhatARandomLoadLeavesIsRestoredBitForBit(t *testing.T) {
	inexact := map[string]int{} // numbers that no float is
	shown := func() bool {
		for _, what := range []string{"own", "seen", "date", "began"} {
			if inexact[what] == 0 {
				return false
			}
		}
		return true
	}
	for again := range 5 { // hardly ever is none among those of a load
		if !shown() {
			t.Run(fmt.Sprint(again), func(t *testing.T) { restoredBitForBit(t, inexact) })
		}
	}
	require.True(t, shown(), "%v", inexact)
}

// restoredBitForBit plays a load, and counts the numbers that no float is.
func restoredBitForBit(t *testing.T, inexact map[string]int) {
	h := harness.New(t)
	r := h.Redis()
	x := lead(t, open(t, r.URL()).Mirror("a b", 0), allKinds)
	n := startLoad(t, func() *coordinator.Leader { return x.leader })
	n.goesOn(h, 2000)
	n.end()
	t.Logf("%v", n.counts)
	for _, what := range []string{"granted", "refused", "given up"} {
		require.Positive(t, n.count(what), what)
	}
	ttls := map[string]time.Duration{}
	var cursor uint64
	for {
		keys, next, err := raw(t, r).Scan(bounded(t), cursor, "*", 100).Result()
		require.NoError(t, err)
		for _, k := range keys {
			ttl, err := raw(t, r).PTTL(bounded(t), k).Result()
			require.NoError(t, err)
			ttls[k] = ttl
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	live := sameInRedis(t, x)
	require.GreaterOrEqual(t, len(ttls), len(loadKeys))
	for k, ttl := range ttls {
		if k == "{ration:a%20b:0}:seat" || k == "{ration:a%20b:0}:policy" {
			require.Equal(t, time.Duration(-1), ttl, "it has none")
			continue
		}
		require.Greater(t, ttl, 23*time.Hour, k)
		require.Less(t, ttl, 4*24*time.Hour, k)
	}
	note := func(what string, n int64) {
		if int64(float64(n)) != n {
			inexact[what]++
		}
	}
	for _, record := range live {
		for _, w := range record.Windows {
			note("own", w.State.Own)
			note("seen", int64(w.State.Seen))
			for _, m := range w.State.Marks {
				note("date", int64(m.At))
			}
		}
		for _, b := range record.Batches {
			note("began", int64(b.Began))
		}
	}
}

// TestTTLsAreRoundedUp (B139, B140): of windows of milliseconds and less too none is 0,
// none is in another unit, and each ends a day after the window.
func TestTTLsAreRoundedUp(t *testing.T) {
	h := harness.New(t)
	r := h.Redis()
	server := open(t, r.URL())
	for cell, c := range map[string]struct {
		rule string
		keep time.Duration // of the window alone; leases live 10 s
	}{
		"100ms": {"10/100ms", 0}, "10ms": {"10/10ms", 0}, "1ms": {"10/1ms", 0}, "minute": {"60/1m fixed", time.Minute}, "bucket": {"10/1ms bucket", 0},
	} {
		x := lead(t, server.Mirror(cell, 0), "limits: [{key: k, rules: ["+c.rule+"]}]")
		require.True(t, newAsking("w").takes(t, x.leader, "k"))
		ttl, err := raw(t, r).PTTL(bounded(t), "{ration:"+cell+":0}:k:k").Result()
		require.NoError(t, err)
		require.LessOrEqual(t, ttl, 24*time.Hour+3*c.keep+12*time.Second, c.rule)
		require.Greater(t, ttl, 24*time.Hour+c.keep-harness.Patience, c.rule)
		x.end()
	}
	m := server.Mirror("short", 0)
	e := lease.Epoch{Number: 1, Mark: 1}
	require.NoError(t, m.Campaign(bounded(t), lease.Seat{}, lease.Seat{Epoch: e, Partitions: 1}))
	keeps := []time.Duration{1, 400 * time.Microsecond, time.Millisecond, time.Millisecond + 1, 2_999_999}
	for seq, keep := range keeps {
		turn := turnOf(e, uint64(seq+1), "k")
		turn.Changes[0].Keep = keep
		require.NoError(t, m.Apply(bounded(t), turn), "no invalid expire")
	}
	var given []string
	told := open(t, "redis://"+imposter(t, func(command []string) string {
		if i := slices.Index(command, "change"); i >= 0 {
			given = append(given, command[i+1])
		}
		if strings.EqualFold(command[0], "info") {
			return "$18\r\nconnected_slaves:0\r\n"
		}
		return "*1\r\n$7\r\napplied\r\n"
	})).Mirror("short", 0)
	for seq, keep := range keeps {
		turn := turnOf(e, uint64(seq+1), "k")
		turn.Changes[0].Keep = keep
		require.NoError(t, told.Apply(bounded(t), turn))
	}
	require.Equal(t, []string{"1", "1", "1", "2", "3"}, given)
}
