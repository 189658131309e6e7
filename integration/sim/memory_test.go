package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
	"ration/worker"
)

// B130: the last writes of the mirror are gone, and whoever remembers them too. What they
// may have granted is charged.
func TestLostTailIsCharged(t *testing.T) {
	charged := int64(0)
	for seed := range uint64(20) {
		s := tell(t, seed, Contract{Rules: "20/1s, 60/12s"}, 4, "k")
		s.busy(4)
		s.pass(time.Second + time.Duration(seed)*100*time.Millisecond)
		for n := len(s.spends); len(s.spends) < n+5; {
			s.pass(time.Millisecond)
		}
		s.site.store.copies = s.site.store.copies[:1]
		s.site.store.restart(50*time.Millisecond, false)
		require.Positive(t, s.Faults["store lost its tail"])
		s.site.leader().crash(2 * time.Second)
		s.pass(40 * time.Second)
		s.keepsTheContract()
		charged += s.site.stats().Charged
	}
	require.Positive(t, charged)
}

// B131: coordinators are replaced one by one while their keys are idle, and nobody gets a
// fresh budget: of 10 an hour, 4 are spent and 6 are left. Only where the state is lost
// with all that knew it nothing is, and that is counted.
func TestRollingReplacementForgetsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		before func(s *story)
		left   int
	}{
		"in order":            {func(*story) {}, 6},
		"while Redis is down": {func(s *story) { s.site.store.hang(5 * time.Second) }, 6},
		"after Redis is empty": {func(s *story) {
			s.site.store.restart(100*time.Millisecond, true)
			s.pass(time.Second) // in which the leader writes it back
		}, 6},
		"after Redis and its leader are lost": {func(s *story) {
			s.site.store.restart(100*time.Millisecond, true)
			s.site.leader().crash(5 * time.Second)
			s.pass(6 * time.Second)
		}, 0},
	} {
		t.Run("B131 "+name, func(t *testing.T) {
			s := tell(t, 1, Contract{Rules: "10/1h"}, 2, "k", "idle", "other")
			for _, k := range s.fleet[0].keys {
				require.Equal(t, 4, s.try(s.fleet[0], k, 4))
			}
			s.pass(20 * time.Second) // all leases are over
			c.before(s)
			for range 3 {
				for _, l := range s.site.all {
					s.replace(l)
					s.pass(500 * time.Millisecond)
				}
			}
			s.pass(10 * time.Second)
			require.NotNil(t, s.site.leader())
			for _, k := range s.fleet[0].keys {
				require.Equal(t, c.left, s.try(s.fleet[1], k, 10), k)
			}
			require.Equal(t, c.left == 0, s.site.stats().Doubted > 0)
			s.keepsTheContract()
		})
	}
}

// B142: a worker spends 8, is cut off for 90 s, and tells of it in the next window: there
// it counts nothing.
func TestLateReportCountsInItsOwnWindow(t *testing.T) {
	c := Contract{Rules: "10/1m fixed", From: before(10*time.Second, "2027-03-01T12:00:00Z")}
	s := tell(t, 1, c, 2, "k")
	s.pass(20 * time.Second) // 11 s into the window
	far := s.fleet[0]
	pool := far.pools["k"]
	for range 8 {
		x := &caller{holder: far, life: far.life, key: "k", spend: -1}
		x.call = pool.Ask(far.elapsed(), 1, false, worker.Forever)
		s.calls.pending[x.call] = x
		far.drive("k")
	}
	for len(s.spends) < 8 {
		s.pass(time.Millisecond)
	}
	s.net.partition(&far.host, 90*time.Second)
	require.Zero(t, s.site.stats().Spent, "nobody was told of it")
	told := lease.Report{Holder: far.id, Sent: far.elapsed()}
	told.Counts, _ = pool.Report(told.Sent, true)
	require.NotEmpty(t, told.Counts)
	s.pass(90 * time.Second) // 41 s into the next window
	ended := s.site.stats().ReportedEnded
	s.site.leader().report(told, func(lease.Reply) {})
	s.pass(time.Second)
	require.Greater(t, s.site.stats().ReportedEnded, ended)
	require.Equal(t, 10, s.try(s.fleet[1], "k", 12))
	s.keepsTheContract()
}

// B143: the limit is the fleet's, however many workers there are.
func TestTotalIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	for _, n := range []int{1, 2, 4, 16} {
		t.Run(fmt.Sprintf("B143 %d workers", n), func(t *testing.T) {
			s := tell(t, 1, Contract{Rules: "100/1s"}, n, "k")
			s.busy(8)
			s.pass(time.Second)
			first := len(s.spends)
			s.pass(10 * time.Second)
			total := len(s.spends) - first
			require.LessOrEqual(t, total, 1000)
			require.GreaterOrEqual(t, total, 985, "use")
			s.keepsTheContract()
		})
	}
}
