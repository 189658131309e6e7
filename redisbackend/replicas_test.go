package redisbackend

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhoCanBePromotedIsWaitedFor: every replica that was connected within the last
// minute; and once one of them is the primary, the others.
func TestWhoCanBePromotedIsWaitedFor(t *testing.T) {
	began := time.Now()
	info := func(run string, up time.Duration, n int) string {
		return fmt.Sprintf("# Server\r\nrun_id:%s\r\nuptime_in_seconds:%d\r\nconnected_slaves:%d\r\n", run, int(up.Seconds()), n)
	}
	type asked struct {
		at   time.Duration
		info string
		want int
	}
	for name, all := range map[string][]asked{
		"one that is gone is waited for a minute": {
			{0, info("a", time.Hour, 2), 2}, {time.Second, info("a", time.Hour, 1), 2}, {59 * time.Second, info("a", time.Hour, 1), 2},
			{61 * time.Second, info("a", time.Hour, 1), 1}, {120 * time.Second, info("a", time.Hour, 0), 1}, {183 * time.Second, info("a", time.Hour, 0), 0},
		},
		"one that is promoted is waited for no more": {
			{0, info("a", time.Hour, 1), 1}, {5 * time.Second, info("b", time.Hour, 0), 0},
			{9 * time.Second, info("b", time.Hour, 1), 1}, // the old primary follows
		},
		"the others are": {
			{0, info("a", time.Hour, 3), 3}, {5 * time.Second, info("b", time.Hour, 0), 2}, {6 * time.Second, info("b", time.Hour, 2), 2},
			{62 * time.Second, info("b", time.Hour, 0), 2}, {67 * time.Second, info("b", time.Hour, 0), 0},
		},
		"a server that was started again has its replicas": {
			{0, info("a", time.Hour, 1), 1}, {5 * time.Second, info("b", 3*time.Second, 0), 1}, {6 * time.Second, info("b", 4*time.Second, 1), 1},
		},
		"one that cannot be told from it too": {
			{0, info("a", time.Hour, 1), 1}, {5 * time.Second, info("b", 6*time.Second, 0), 1},
		},
		"what says nothing changes nothing": {
			{0, info("a", time.Hour, 1), 1}, {5 * time.Second, "", 1}, {6 * time.Second, "run_id:b\r\nconnected_slaves:0\r\n", 1},
		},
	} {
		var r replicas
		for _, a := range all {
			r.count(a.info, began.Add(a.at))
			require.Equal(t, a.want, r.needed(began.Add(a.at)), "%s: at %v", name, a.at)
		}
	}
}
