package redisbackend_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/integration/harness"
	"ration/lease"
	"ration/redisbackend"
)

// TestWhatIsDamagedInRedisIsFullAndHeals (B73): how much there is comes from the policy, never
// from Redis. A record that cannot be read, or lacks what belongs to it, counts as fully
// spent, is written anew, and is told of once; other keys are served meanwhile.
func TestWhatIsDamagedInRedisIsFullAndHeals(t *testing.T) {
	const policy = `limits: [{key: "{a}", rules: [5/1h, 4 concurrent]}]`
	field := "w 5/1h"
	for name, damage := range map[string][]any{
		"no number":              {"HSET", "{ration:c:0}:k:k", field, "0 x 0 0"},
		"nothing of a window":    {"HSET", "{ration:c:0}:k:k", field, ""},
		"a window less":          {"HDEL", "{ration:c:0}:k:k", field},
		"nobody wrote it":        {"HDEL", "{ration:c:0}:k:k", "e"},
		"a field of another use": {"HSET", "{ration:c:0}:k:k", "limit", "0"},
		"no leases in a lease":   {"HSET", "{ration:c:0}:k:k", "b 9 9 9 h", "\"k\""},
		"another kind of key":    {"SET", "{ration:c:0}:k:k", "5"},
	} {
		t.Run(name, func(t *testing.T) {
			r := harness.New(t).Redis()
			server := open(t, r.URL())
			x := lead(t, server.Mirror("c", 0), policy)
			a := newAsking("w")
			held := a.request(0, "k")
			held.Need.Slots, held.Want.Slots = 1, 1
			answer := answered(t, x.leader, held)
			require.Equal(t, lease.Granted, answer.Outcome)
			_, err := x.leader.Report(bounded(t), lease.Report{Holder: a.holder, Counts: []lease.Count{
				{ID: held.ID, Keys: held.Keys, Points: []lease.Point{{Count: 1}}},
			}})
			require.NoError(t, err)
			x.end()
			require.NoError(t, raw(t, r).Do(bounded(t), damage...).Err())

			y := lead(t, server.Mirror("c", 0), policy)
			b := newAsking("b")
			slot := b.request(0, "k")
			slot.Need.Slots, slot.Want.Slots = 1, 1
			answer = answered(t, y.leader, slot)
			require.Equal(t, lease.Refused, answer.Outcome)
			require.ErrorIs(t, answer.Refusal.Reason, lease.ErrLimit, "not never: there are still 5")
			slot = b.request(0, "other")
			slot.Need.Slots, slot.Want.Slots = 1, 1
			answer = answered(t, y.leader, slot)
			require.Equal(t, lease.Granted, answer.Outcome)
			status, err := y.leader.Status(bounded(t), "k")
			require.NoError(t, err)
			require.Equal(t, int64(5), status.Keys[0].Windows[0].Limit)
			require.Equal(t, int64(5), status.Keys[0].Windows[0].Spent)
			require.Equal(t, int64(4), status.Keys[0].Windows[1].Limit)
			sameInRedis(t, y)
			y.end()

			z := lead(t, server.Mirror("c", 0), policy)
			slot = newAsking("c").request(0, "k")
			slot.Need.Slots, slot.Want.Slots = 1, 1
			answer = answered(t, z.leader, slot)
			require.Equal(t, lease.Refused, answer.Outcome, "what was full is full")
			require.Equal(t, 1, y.log.count("cannot be read"), y.log)
			require.Zero(t, z.log.count("cannot be read"), "it is healed: %s", z.log)
		})
	}
}

// TestStrayKeyStopsNothing: somebody has written names among those of records that stand
// for no key. They are left alone, the first is told of, once, and all others are found.
func TestStrayKeyStopsNothing(t *testing.T) {
	h := harness.New(t)
	r := h.Redis()
	const prefix = "{ration:c:0}:k:"
	strays := []string{prefix + "%zz", prefix + "%", prefix, prefix + "a//b", prefix + "/a", prefix + "%2F", prefix + strings.Repeat("x", lease.MaxKeyLen+1)}
	for _, name := range strays {
		require.NoError(t, raw(t, r).Set(bounded(t), name, "x", 0).Err())
	}
	told := &logged{}
	config := redisbackend.DefaultConfig()
	config.Wait, config.Log = harness.Patience/2, slog.New(slog.NewTextHandler(told, nil))
	m := openAs(t, r.URL(), config).Mirror("c", 0)
	const policy = `limits: [{key: "{a}", rules: [5/1h]}]`
	first := lead(t, m, policy) // which knows that there is nothing to load
	require.True(t, newAsking("w").takes(t, first.leader, "k"))
	first.end()
	x := lead(t, m, policy)
	h.Until("a word about it", func() error { return least(told.count("has no name of a record"), 1) })
	require.Equal(t, 4, newAsking("v").many(t, x.leader, "k", 5))
	keys, next, err := m.Keys(bounded(t), x.leader.Epoch(), "")
	require.NoError(t, err)
	require.Empty(t, next)
	require.Equal(t, []lease.Key{"k"}, keys)
	require.Equal(t, 1, told.count("has no name of a record"), told)
	require.Zero(t, x.log.count("level=ERROR"), x.log)
	require.EqualValues(t, len(strays), raw(t, r).Exists(bounded(t), strays...).Val())

	silent, _, err := open(t, r.URL()).Mirror("c", 0).Keys(bounded(t), x.leader.Epoch(), "")
	require.NoError(t, err)
	require.Equal(t, keys, silent)
}

// TestAllOutIsNotAbsent (B74): while every token and slot is out a takeover finds them
// held, not a key that is not there. When all has come back the record is still there and
// has a TTL, until it goes as a whole.
func TestAllOutIsNotAbsent(t *testing.T) {
	const policy = `limits: [{key: k, rules: [1 concurrent, 3/1h bucket]}]`
	r := harness.New(t).Redis()
	server := open(t, r.URL())
	long := func(c *coordinator.Config) { c.Lease.TokenTTL, c.Lease.SlotTTL = harness.Patience, harness.Patience }
	x := lead(t, server.Mirror("c", 0), policy, long)
	a := newAsking("w")
	all := a.request(0, "k")
	all.Need, all.Want = lease.Amount{Tokens: 3, Slots: 1}, lease.Amount{Tokens: 3, Slots: 1}
	answer := answered(t, x.leader, all)
	require.Equal(t, lease.Granted, answer.Outcome)
	x.end()

	y := lead(t, server.Mirror("c", 0), policy, long)
	asks := func(l *coordinator.Leader, tokens, slots int64) lease.Outcome {
		one := newAsking("b").request(0, "k")
		one.ID.Holder.Incarnation = uint64(10*tokens + slots)
		one.Need, one.Want = lease.Amount{Tokens: tokens, Slots: slots}, lease.Amount{Tokens: tokens, Slots: slots}
		return answered(t, l, one).Outcome
	}
	require.Equal(t, lease.Refused, asks(y.leader, 0, 1))
	require.Equal(t, lease.Refused, asks(y.leader, 1, 1))
	require.Positive(t, raw(t, r).PTTL(bounded(t), "{ration:c:0}:k:k").Val())
	_, err := y.leader.Report(bounded(t), lease.Report{Holder: a.holder, Counts: []lease.Count{
		{ID: all.ID, Keys: all.Keys, Returned: 3, Freed: 1},
	}})
	require.NoError(t, err)
	ttl, err := raw(t, r).PTTL(bounded(t), "{ration:c:0}:k:k").Result()
	require.NoError(t, err)
	if ttl != -2 { // gone as a whole, since all is at rest
		require.Positive(t, ttl)
	}
	y.end()
	z := lead(t, server.Mirror("c", 0), policy, long)
	require.Equal(t, lease.Granted, asks(z.leader, 3, 1), "all of it, once")
	require.Equal(t, lease.Refused, asks(z.leader, 1, 1))
}

// TestFloodOfKeysResetsNothing (B133): there are ten times as many as are kept in memory.
// The key that is exhausted stays so, in memory and in Redis. That a Redis which may
// evict is refused is in TestServerThatCannotBeTrustedIsToldApart.
func TestFloodOfKeysResetsNothing(t *testing.T) {
	const policy = `limits: [{key: "{k}", rules: [1/1h]}]`
	r := harness.New(t).Redis()
	server := open(t, r.URL())
	small := func(c *coordinator.Config) { c.Lease.Keys = 50 }
	x := lead(t, server.Mirror("c", 0), policy, small)
	a := newAsking("w")
	require.True(t, a.takes(t, x.leader, "V"))
	flood := func(x *post) (granted int) {
		for i := range 500 {
			granted += a.many(t, x.leader, lease.Key("flood"+string(rune('a'+i/26%26))+string(rune('a'+i%26))), 1)
		}
		return granted
	}
	require.Equal(t, 49, flood(x))
	require.False(t, a.takes(t, x.leader, "V"))
	status, err := x.leader.Summary(bounded(t))
	require.NoError(t, err)
	require.Positive(t, status.Stats.Refused[lease.ErrTooManyKeys.Code()], "new keys are refused, and counted")
	x.end()
	y := lead(t, server.Mirror("c", 0), policy, small)
	require.Zero(t, flood(y))
	require.False(t, a.takes(t, y.leader, "V"))
}
