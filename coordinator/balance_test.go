package coordinator_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
)

const after = 10 * time.Second

// leads gives the first so many of partitions from n on.
func leads(n, count int) (list []int) {
	for i := range count {
		list = append(list, n+i)
	}
	return list
}

// ownOf marks partitions of 8.
func ownOf(list []int) []bool {
	own := make([]bool, 8)
	for _, n := range list {
		own[n] = true
	}
	return own
}

// watched is the balance of "m" that has looked at the same for d, and when that was.
func watched(d time.Duration, own []int, peers ...coordinator.Peer) (b *coordinator.Balance, now time.Duration) {
	b = coordinator.NewBalance(coordinator.BalanceConfig{ID: "m", After: after})
	for now = time.Hour; now <= time.Hour+d; now += 100 * time.Millisecond {
		b.Watch(now, ownOf(own), true, peers)
	}
	return b, now - 100*time.Millisecond
}

// claimed is the partition of 8 that is claimed, none below 0.
func claimed(b *coordinator.Balance) int { return slices.IndexFunc(leads(0, 8), b.Claims) }

func TestWhoLeadsTwoFewerClaimsOneOfWhoLeadsMost(t *testing.T) {
	for name, c := range map[string]struct {
		own   []int
		peers []coordinator.Peer
		want  int
	}{
		"nobody else":          {nil, nil, -1},
		"nobody leads":         {nil, []coordinator.Peer{{ID: "a"}}, -1},
		"one more is fair":     {nil, []coordinator.Peer{{ID: "a", Leads: leads(3, 1)}}, -1},
		"two more is not":      {nil, []coordinator.Peer{{ID: "a", Leads: leads(3, 2)}}, 3},
		"both have some":       {leads(0, 3), []coordinator.Peer{{ID: "a", Leads: leads(3, 4)}}, -1},
		"it has some":          {leads(0, 3), []coordinator.Peer{{ID: "a", Leads: leads(3, 5)}}, 3},
		"it has more":          {leads(0, 5), []coordinator.Peer{{ID: "a", Leads: leads(5, 3)}}, -1},
		"of who leads most":    {nil, []coordinator.Peer{{ID: "a", Leads: leads(0, 2)}, {ID: "b", Leads: leads(2, 4)}, {ID: "c", Leads: leads(6, 2)}}, 2},
		"of the first of two":  {nil, []coordinator.Peer{{ID: "b", Leads: leads(0, 4)}, {ID: "a", Leads: leads(4, 4)}}, 4},
		"it does not see some": {nil, []coordinator.Peer{{ID: "a", Leads: []int{7, 5}}}, 5},
	} {
		b, _ := watched(after, c.own, c.peers...)
		require.Equal(t, c.want, claimed(b), name)
	}
}

func TestAClaimIsKept(t *testing.T) {
	b, now := watched(after, nil, coordinator.Peer{ID: "a", Leads: leads(0, 4)}, coordinator.Peer{ID: "b", Leads: leads(4, 3)})
	require.Equal(t, 0, claimed(b))
	b.Watch(now, ownOf(nil), true, []coordinator.Peer{{ID: "a", Leads: []int{0, 1}}, {ID: "b", Leads: leads(4, 4)}})
	require.Equal(t, 0, claimed(b), "its leader has two too many still")
	b.Watch(now, ownOf(nil), true, []coordinator.Peer{{ID: "a", Leads: []int{1, 2}}, {ID: "b", Leads: leads(4, 4)}})
	require.Equal(t, 4, claimed(b), "its leader has none of it")
}

// TestOnlyWhoIsWellForLongClaims: a newcomer that stops before, loses its connection or
// its mirror, is stopped for a while, or loses a seat, waits anew.
func TestOnlyWhoIsWellForLongClaims(t *testing.T) {
	rich := []coordinator.Peer{{ID: "a", Leads: leads(0, 6)}}
	b, _ := watched(after-100*time.Millisecond, nil, rich...)
	require.Negative(t, claimed(b), "too early")
	for name, harm := range map[string]func(b *coordinator.Balance, now time.Duration) time.Duration{
		"not well": func(b *coordinator.Balance, now time.Duration) time.Duration {
			b.Watch(now, ownOf(leads(7, 1)), false, rich)
			require.Negative(t, claimed(b), "who stops claims nothing")
			return now
		},
		"stopped": func(_ *coordinator.Balance, now time.Duration) time.Duration { return now + 2*time.Second },
		"lost a seat": func(b *coordinator.Balance, now time.Duration) time.Duration {
			b.Watch(now, ownOf(nil), true, rich)
			return now
		},
	} {
		b, now := watched(after, leads(7, 1), rich...)
		require.Equal(t, 0, claimed(b), name)
		again := harm(b, now)
		for now = again; now < again+after; now += 100 * time.Millisecond {
			b.Watch(now, ownOf(nil), true, rich)
			require.Negative(t, claimed(b), "%s: %v after", name, now-again)
		}
		b.Watch(now+100*time.Millisecond, ownOf(nil), true, rich)
		require.Equal(t, 0, claimed(b), name)
	}
}

func TestLeaderYieldsToWhoLeadsTwoFewer(t *testing.T) {
	for name, c := range map[string]struct {
		own   []int
		n     int
		peers []coordinator.Peer
		want  string
	}{
		"nobody claims":             {leads(0, 4), 0, []coordinator.Peer{{ID: "a"}}, ""},
		"it claims another":         {leads(0, 4), 0, []coordinator.Peer{{ID: "a", Claims: []int{1}}}, ""},
		"it claims it":              {leads(0, 4), 1, []coordinator.Peer{{ID: "a", Claims: []int{1}}}, "a"},
		"it leads one fewer":        {leads(0, 4), 0, []coordinator.Peer{{ID: "a", Leads: leads(4, 3), Claims: []int{0}}}, ""},
		"two fewer":                 {leads(0, 4), 0, []coordinator.Peer{{ID: "a", Leads: leads(4, 2), Claims: []int{0}}}, "a"},
		"who leads fewest is first": {leads(0, 4), 0, []coordinator.Peer{{ID: "a", Leads: leads(4, 1), Claims: []int{0}}, {ID: "b", Claims: []int{0}}}, "b"},
		"then the id decides":       {leads(0, 4), 0, []coordinator.Peer{{ID: "b", Claims: []int{0}}, {ID: "a", Claims: []int{0}}}, "a"},
		"it does not lead it":       {leads(0, 4), 5, []coordinator.Peer{{ID: "a", Claims: []int{5}}}, ""},
	} {
		b, now := watched(0, c.own, c.peers...)
		to, yields := b.Yield(now, c.n)
		require.Equal(t, c.want, to.ID, name)
		require.Equal(t, c.want != "", yields, name)
	}
}

func TestOneIsHandedOverAtATime(t *testing.T) {
	peers := []coordinator.Peer{{ID: "a", Claims: []int{0}}, {ID: "b", Claims: []int{1}}}
	b, now := watched(0, leads(0, 8), peers...)
	_, yields := b.Yield(now, 0)
	require.True(t, yields)
	_, yields = b.Yield(now, 1)
	require.False(t, yields, "0 is on its way")
	b.Watch(now, ownOf(leads(1, 7)), true, peers)
	_, yields = b.Yield(now, 1)
	require.True(t, yields)
}

// TestWhoDoesNotTakeWhatItIsHandedWaits: each time twice as long, until it takes it.
func TestWhoDoesNotTakeWhatItIsHandedWaits(t *testing.T) {
	claims := coordinator.Peer{ID: "a", Claims: []int{0}}
	b, now := watched(0, leads(0, 8), claims)
	_, yields := b.Yield(now, 0)
	require.True(t, yields)
	for _, wait := range []time.Duration{after, 2 * after, 4 * after, 8 * after, 16 * after, 5 * time.Minute, 5 * time.Minute} {
		b.Watch(now, ownOf(leads(1, 7)), true, []coordinator.Peer{claims})
		b.Watch(now, ownOf(leads(0, 8)), true, []coordinator.Peer{claims}) // it has it again
		_, yields = b.Yield(now+wait-1, 0)
		require.False(t, yields, "before %v", wait)
		now += wait
		b.Watch(now, ownOf(leads(0, 8)), true, []coordinator.Peer{claims})
		_, yields = b.Yield(now, 0)
		require.True(t, yields, "after %v", wait)
	}
	took := coordinator.Peer{ID: "a", Leads: []int{0}, Claims: []int{1}}
	b.Watch(now, ownOf(leads(1, 7)), true, []coordinator.Peer{took})
	_, yields = b.Yield(now, 1)
	require.True(t, yields, "it has taken the one before")
}

func TestVacantSeatIsLeftToItsClaimant(t *testing.T) {
	a := coordinator.Peer{ID: "a", Claims: []int{2}}
	b, _ := watched(0, leads(0, 2), a)
	require.True(t, b.Left(2))
	require.False(t, b.Left(3), "nobody claims it")
	b, _ = watched(0, nil)
	require.False(t, b.Left(2), "there is nobody")

	for name, c := range map[string]struct {
		own   []int
		peer  coordinator.Peer
		want  bool
		claim int
	}{
		"the other comes first by id":       {nil, coordinator.Peer{ID: "a", Claims: []int{2}}, true, 2},
		"it comes first itself by id":       {nil, coordinator.Peer{ID: "z", Claims: []int{2}}, false, 2},
		"the other leads fewer":             {[]int{0}, coordinator.Peer{ID: "z", Claims: []int{2}}, true, 2},
		"it leads fewer itself":             {nil, coordinator.Peer{ID: "a", Leads: []int{0}, Claims: []int{2}}, false, 2},
		"it claims another, and leads none": {nil, coordinator.Peer{ID: "z", Claims: []int{3}}, true, 2},
	} {
		b, _ := watched(after, c.own, coordinator.Peer{ID: "rich", Leads: leads(2, 6)}, c.peer)
		require.Equal(t, c.claim, claimed(b), name)
		require.Equal(t, c.want, b.Left(c.peer.Claims[0]), name)
	}
}
