package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
)

// story is a world in which only that goes wrong which a test tells.
type story struct {
	*World
	t     *testing.T
	site  *site
	fleet []*holder
	rules []oracle.Rule
}

func tell(t *testing.T, seed uint64, c Contract, holders int, keys ...lease.Key) *story {
	t.Helper()
	w := newWorld(seed)
	w.scripted = true
	if c.From != 0 {
		w.origin = c.From
	}
	policy, err := lease.ParsePolicy("story", []byte(c.policy()))
	require.NoError(t, err)
	s := &story{World: w, t: t, site: newSite(w, policy, c), rules: oracle.MustRules(c.Rules)}
	w.calls = calls{world: w, slots: map[lease.Key]bool{}, pending: map[*worker.Call]*caller{}, stopped: true}
	for _, k := range keys {
		w.calls.slots[k] = strings.Contains(c.Rules, "concurrent")
	}
	for i := range holders {
		h := newHolder(w, fmt.Sprintf("w%d", i), s.site, 0, keys)
		h.node = i % 2
		s.fleet = append(s.fleet, h)
	}
	s.pass(time.Second)
	require.NotNil(t, s.site.leader())
	return s
}

func (s *story) pass(d time.Duration) { s.run(s.now + d) }

// busy lets all callers of the fleet ask again and again.
func (s *story) busy(perKey int) {
	s.calls.stopped, s.calls.saturate, s.calls.perKey = false, true, perKey
	for _, h := range s.fleet {
		s.calls.start(h)
	}
}

// try lets callers of a holder make so many calls, all at once, and gives how many are
// made within their patience.
func (s *story) try(h *holder, key lease.Key, n int) int {
	const patience = 2 * time.Second
	before := len(s.spends)
	for range n {
		x := &caller{holder: h, life: h.life, key: key, spend: -1}
		x.call = h.pools[key].Ask(h.elapsed(), 1, s.calls.slots[key], h.elapsed()+patience)
		s.calls.pending[x.call] = x
		s.calls.decide(x)
		h.drive(key)
	}
	s.pass(patience + 500*time.Millisecond)
	return len(s.spends) - before
}

func (s *story) standby() *lessor {
	for _, l := range s.site.all {
		if !l.serving {
			return l
		}
	}
	return nil
}

// replace stops a coordinator as SIGTERM does, and starts another one in its place.
func (s *story) replace(l *lessor) {
	if l.serving {
		l.resign()
		s.pass(5 * time.Millisecond)
	}
	l.crash(50 * time.Millisecond)
}

func (s *story) keepsTheContract() {
	s.t.Helper()
	for _, h := range s.fleet[0].keys {
		require.Empty(s.t, oracle.Violations(oracle.Under(s.spends, string(h)), s.rules))
	}
}

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

// B145: leadership goes over once where the leader stands still for long, and not at all
// for one hiccup; and at no time do two grant.
func TestLeadershipGoesOverOnceOrNotAtAll(t *testing.T) {
	for name, c := range map[string]struct {
		befall    func(s *story, leader *lessor)
		takeovers int
	}{
		"leader stands still for 20 s": {func(_ *story, l *lessor) { l.pause(20 * time.Second) }, 1},
		"one renewal fails":            {func(s *story, l *lessor) { s.net.part(&l.host, renewEvery+lookEvery) }, 0},
		"a second without the mirror, for all": {func(s *story, _ *lessor) {
			s.site.store.hang(time.Second)
		}, 0},
		"route between them is lost": {func(s *story, _ *lessor) { s.net.loseRoute(20 * time.Second) }, 0},
		"standby is cut off":         {func(s *story, _ *lessor) { s.net.partition(&s.standby().host, 20*time.Second) }, 0},
	} {
		t.Run("B145 "+name, func(t *testing.T) {
			s := tell(t, 1, Contract{Rules: "20/1s, 60/12s"}, 4, "k")
			s.busy(4)
			s.pass(5 * time.Second)
			leader, began, before := s.site.leader(), s.Faults["takeover"], len(s.spends)
			c.befall(s, leader)
			s.pass(18 * time.Second)
			require.Greater(t, len(s.spends), before+50, "somebody grants meanwhile")
			s.pass(20 * time.Second)
			require.Equal(t, c.takeovers, s.Faults["takeover"]-began)
			require.Equal(t, c.takeovers == 0, s.site.leader() == leader)
			require.Equal(t, c.takeovers, s.Faults["woken leader is fenced"])
			s.keepsTheContract()
		})
	}
}

// takeOver kills the leader and waits until another one serves, which has nothing in
// memory yet.
func (s *story) takeOver() {
	s.site.leader().crash(time.Hour)
	for s.site.leader() == nil {
		s.pass(100 * time.Microsecond)
	}
}

// revive starts the coordinator again that was killed.
func (s *story) revive() {
	for _, l := range s.site.all {
		if !l.serving {
			l.crash(time.Millisecond)
		}
	}
	s.pass(30 * time.Millisecond)
}

// TestWhatALeaderDidNotHaveIsLostWithTheStore: a leader that has just taken over, and has
// few keys in memory, wins back a store that has lost the others. They count as spent.
func TestWhatALeaderDidNotHaveIsLostWithTheStore(t *testing.T) {
	s := tell(t, 1, Contract{Rules: "10/1h"}, 2, "k", rare)
	require.Equal(t, 4, s.try(s.fleet[0], "k", 4))
	require.Equal(t, 4, s.try(s.fleet[0], rare, 4))
	s.pass(20 * time.Second)
	s.takeOver()
	s.site.store.restart(time.Millisecond, true)
	s.pass(100 * time.Millisecond)
	require.Positive(t, s.Faults["won back"])
	require.False(t, s.site.leader().ledger.Has(rare))
	require.Zero(t, s.try(s.fleet[1], rare, 10))
	require.Positive(t, s.site.stats().Doubted)
	s.keepsTheContract()
}

// TestDoubtOutlivesTheLeaderThatFoundIt: the store has lost its tail with the leader that
// knew, and the next leader is killed before a key is asked for: the one after it charges
// that key all the same.
func TestDoubtOutlivesTheLeaderThatFoundIt(t *testing.T) {
	s := tell(t, 1, Contract{Rules: "10/1h"}, 2, "k", rare)
	require.Equal(t, 1, s.try(s.fleet[0], rare, 1))
	s.pass(20 * time.Second)
	require.Equal(t, 1, s.try(s.fleet[0], "k", 1)) // a turn that the copies lack
	s.site.store.copies = s.site.store.copies[:1]
	s.site.store.restart(time.Millisecond, false)
	s.takeOver()
	require.False(t, s.site.leader().ledger.Has(rare))
	s.revive()
	s.takeOver()
	require.False(t, s.site.leader().ledger.Has(rare))
	require.Zero(t, s.try(s.fleet[1], rare, 10), "nothing is left of what may have been granted in the lag")
	require.Positive(t, s.site.stats().Charged)
	s.keepsTheContract()
}

// TestRenewedSlotIsHeldAfterATakeover: a call lasts longer than slots live that are not
// renewed, and in between the leader dies.
func TestRenewedSlotIsHeldAfterATakeover(t *testing.T) {
	s := tell(t, 1, Contract{Rules: "40/1s, 1 concurrent"}, 2, "k")
	s.calls.lasts = 25 * time.Second
	require.Equal(t, 1, s.try(s.fleet[0], "k", 1))
	s.pass(10 * time.Second)
	s.fleet[0].site.leader().crash(time.Second)
	require.Zero(t, s.try(s.fleet[1], "k", 1))
	s.pass(5 * time.Second)
	require.Zero(t, s.try(s.fleet[1], "k", 1))
	s.pass(20 * time.Second)
	require.Equal(t, 1, s.try(s.fleet[1], "k", 1), "the call is over")
	s.pass(30 * time.Second)
	require.Positive(t, s.site.stats().Renewed)
	require.Zero(t, s.site.stats().SlotsExpired)
	s.keepsTheContract()
}
