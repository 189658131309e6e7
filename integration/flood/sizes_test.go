package flood_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestDefaultBoundsAdmitNoMoreThanTheySay: what one of each takes, times how many
// there may be, is within the 4 GiB that lease.DefaultConfig tells of.
func TestDefaultBoundsAdmitNoMoreThanTheySay(t *testing.T) {
	const n = 20_000
	cfg := lease.DefaultConfig()
	each := func(what string, most int, do func(s *site, i int, from string) []lease.Message) int64 {
		before := heap()
		s := newSite(t, `{unknown: allow, limits: [{key: "t/{k}", rules: [10/1s, 500/1m, 10000/1d fixed]}, {key: "full/{k}", rules: [0/1s]}]}`, cfg)
		for i := range n {
			s.turn(do(s, i, fmt.Sprintf("w%d", i%10))...)
		}
		took := (heap() - before) / n
		t.Logf("%8d %-28s %5d B each, %7.1f MB", most, what, took, float64(took)*float64(most)/1e6)
		runtime.KeepAlive(s)
		return took * int64(most)
	}
	ask := func(s *site, name string, i int, key lease.Key, patience time.Duration) []lease.Message {
		r := request(id(name, uint64(i)), key, patience)
		r.Sent = s.now.Sub(noon)
		return []lease.Message{{Request: &r}}
	}
	give := func(s *site, name string, i int, tenant string) []lease.Message {
		one := id(name, uint64(i))
		return []lease.Message{{Report: &lease.Report{Holder: one.Holder, Sent: s.now.Sub(noon), GivenUp: []lease.GivenUp{{ID: one, Keys: []lease.Key{lease.Key(tenant)}}}}}}
	}
	all := each("keys with a lease each", cfg.Leases.All, func(s *site, i int, from string) []lease.Message {
		return ask(s, from, i, lease.Key(fmt.Sprintf("t/%d", i)), 0)
	})
	all += each("keys that were used once", cfg.Keys-cfg.Leases.All, func(s *site, i int, from string) []lease.Message {
		r := ask(s, from, i, lease.Key(fmt.Sprintf("t/%d", i)), 0)
		s.turn(r...)
		return []lease.Message{{Report: &lease.Report{Holder: id(from, 0).Holder, Sent: s.now.Sub(noon), Counts: []lease.Count{{
			ID: id(from, uint64(i)), Keys: r[0].Request.Keys, Points: []lease.Point{{Count: 1}}}}}}}
	})
	all += each("waiters", cfg.Waiters.All, func(s *site, i int, from string) []lease.Message {
		if i == 0 {
			r := ask(s, "first", 0, "t/k", 0)
			r[0].Request.Need.Tokens, r[0].Request.Want.Tokens = 10, 10
			s.turn(r...)
		}
		key := lease.Key(fmt.Sprintf("t/%d", i/10))
		r := ask(s, from, i, key, time.Hour)
		if i%10 == 0 {
			r[0].Request.Need.Tokens, r[0].Request.Want.Tokens = 10, 10
		}
		return r
	})
	all += each("holders of a tenant each", cfg.Holders.All, func(s *site, i int, _ string) []lease.Message {
		return give(s, fmt.Sprintf("holder%d", i), 1, fmt.Sprintf("tenant%d", i))
	})
	all += each("ids of refused requests", cfg.IDs.All, func(s *site, i int, from string) []lease.Message {
		return ask(s, from, i, "full/k", 0)
	})
	t.Logf("together %.2f GB", float64(all)/1e9)
	require.LessOrEqual(t, all, int64(4<<30))
}
