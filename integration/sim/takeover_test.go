package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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

// TestWhoWasFollowedDoesNotWinTheStoreBack: a leader was cut off from the store while another
// took over, and the store loses that with all else. Who was cut off lacks what was granted
// since, and asks the store first when that is back.
func TestWhoWasFollowedDoesNotWinTheStoreBack(t *testing.T) {
	for late := time.Duration(0); late < renewEvery; late += 2 * time.Millisecond { // either may ask first
		s := tell(t, 1, Contract{Rules: "10/1h"}, 2, "k")
		before := s.site.leader()
		require.Equal(t, 4, s.try(s.fleet[0], "k", 4))
		s.net.part(&before.host, 5*time.Second)
		s.pass(time.Second)
		require.Equal(t, 2, s.Faults["takeover"])
		require.Equal(t, 4, s.try(s.fleet[1], "k", 4))
		s.site.store.restart(2*time.Second+late, true)
		s.pass(3 * time.Second)
		require.Equal(t, 2, s.try(s.fleet[0], "k", 6)+s.try(s.fleet[1], "k", 6), "%v late", late)
		require.Equal(t, 1, s.Faults["won back"])
		require.NotSame(t, before, s.site.leader())
		s.keepsTheContract()
	}
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

// TestSlotOfTheDeadIsFreeInTimeAfterATakeover: a worker dies with a slot, and then the leader. The
// next one frees the slot when it would have.
func TestSlotOfTheDeadIsFreeInTimeAfterATakeover(t *testing.T) {
	s := tell(t, 1, Contract{Rules: "40/1s, 1 concurrent"}, 2, "k")
	s.calls.lasts = time.Minute
	require.Equal(t, 1, s.try(s.fleet[0], "k", 1))
	s.fleet[0].crash(time.Hour)
	s.pass(6 * time.Second)
	s.takeOver()
	require.Zero(t, s.try(s.fleet[1], "k", 1))
	s.pass(4 * time.Second)
	require.Equal(t, 1, s.try(s.fleet[1], "k", 1), "the slot has ended")
	require.Positive(t, s.site.stats().SlotsExpired)
	s.keepsTheContract()
}
