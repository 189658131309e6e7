package redisbackend_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/integration/harness"
	"ration/internal/mirrortest"
	"ration/lease"
	"ration/redisbackend"
)

// raw is a client of its own, to see what is kept.
func raw(t *testing.T, r *harness.Redis) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: r.Addr})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// bounded gives a context within which everything here is done.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	t.Cleanup(cancel)
	return ctx
}

func turnOf(e lease.Epoch, seq uint64, key lease.Key) *lease.Turn {
	return &lease.Turn{Epoch: e, Seq: seq, Instant: 5, Changes: []lease.Change{{
		Key: key, Keep: time.Hour,
		Windows: []lease.WindowRecord{{Rule: "10/1s", State: algo.State{Spent: 1, Marks: []algo.Mark{{At: 3, N: 1}}}}},
	}}}
}

// TestScriptsAreLoadedAgain: a server that was started again, or told to forget its
// scripts, is given them by the way.
func TestScriptsAreLoadedAgain(t *testing.T) {
	r := harness.New(t).Redis()
	m := open(t, r.URL()).Mirror("default", 0)
	e := mirrortest.Win(t, m, mirrortest.Seat(1))
	for seq := range uint64(3) {
		require.NoError(t, raw(t, r).ScriptFlush(bounded(t)).Err())
		require.NoError(t, m.Apply(bounded(t), turnOf(e, seq+1, "k")))
	}
}

// TestEveryRecordHasATTLAndTheSeatNone: a record is swept by Redis a long time after it
// can matter, and never who leads.
func TestEveryRecordHasATTLAndTheSeatNone(t *testing.T) {
	r := harness.New(t).Redis()
	m := open(t, r.URL()).Mirror("default", 0)
	e := mirrortest.Win(t, m, mirrortest.Seat(1))
	require.NoError(t, m.Apply(bounded(t), turnOf(e, 1, "a b/c:*")))
	c := raw(t, r)
	keys, err := c.Keys(bounded(t), "*").Result()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"{ration:default:0}:seat", "{ration:default:0}:k:a%20b/c:%2A"}, keys)
	ttl, err := c.PTTL(bounded(t), "{ration:default:0}:k:a%20b/c:%2A").Result()
	require.NoError(t, err)
	require.Greater(t, ttl, 59*time.Minute)
	ttl, err = c.PTTL(bounded(t), "{ration:default:0}:seat").Result()
	require.NoError(t, err)
	require.Less(t, ttl, time.Duration(0), "it has none")
}

// TestServerThatCannotBeTrustedIsToldApart: one that may evict (B133), and what an operator can
// do about one that does not let in.
func TestServerThatCannotBeTrustedIsToldApart(t *testing.T) {
	h := harness.New(t)
	evicts := open(t, h.Redis("--maxmemory", "64mb", "--maxmemory-policy", "volatile-lru").URL())
	err := evicts.Check(bounded(t), "default")
	require.ErrorIs(t, err, redisbackend.ErrEvicts)
	require.ErrorContains(t, err, "set maxmemory-policy noeviction")
	require.NoError(t, open(t, h.Redis("--maxmemory", "64mb", "--maxmemory-policy", "noeviction").URL()).Check(bounded(t), "default"))

	locked := h.Redis("--requirepass", "secret")
	require.ErrorContains(t, open(t, locked.URL()).Check(bounded(t), "default"), "give the user and password in the URL")
	wrong := open(t, "redis://:wrong@"+locked.Addr).Check(bounded(t), "default")
	require.ErrorContains(t, wrong, "give the user and password in the URL")
	require.NotContains(t, wrong.Error(), "redis://:wrong@")
	require.NoError(t, open(t, "redis://:secret@"+locked.Addr).Check(bounded(t), "default"))

	first := h.Redis()
	host, port, _ := strings.Cut(first.Addr, ":")
	replica := open(t, h.Redis("--replicaof", host, port).URL()).Mirror("default", 0)
	h.Until("a replica", func() error {
		_, err := replica.Look(bounded(t))
		return err
	})
	require.ErrorContains(t, replica.Campaign(bounded(t), lease.Seat{}, mirrortest.Seat(1)), "name the primary")
}

// TestAnswersWaitForReplicas: a turn is recorded when the replica has it too.
func TestAnswersWaitForReplicas(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	first := h.Redis()
	host, port, _ := strings.Cut(first.Addr, ":")
	second := h.Redis("--replicaof", host, port)
	m := openHasty(t, first.URL()).Mirror("default", 0)
	h.Until("the replica to follow", func() error {
		conn := raw(t, first).Conn()
		defer conn.Close()
		if err := conn.Set(bounded(t), "x", 1, time.Minute).Err(); err != nil {
			return err
		}
		if n, err := conn.Wait(bounded(t), 1, 100*time.Millisecond).Result(); err != nil || n == 0 {
			return fmt.Errorf("%d follow: %v", n, err)
		}
		return nil
	})
	_, err := m.Look(bounded(t)) // which counts them
	require.NoError(t, err)
	e := mirrortest.Win(t, m, mirrortest.Seat(1))
	for seq := range uint64(20) {
		require.NoError(t, m.Apply(bounded(t), turnOf(e, seq+1, "k")))
		has, err := raw(t, second).HGet(bounded(t), "{ration:default:0}:seat", "seq").Uint64()
		require.NoError(t, err)
		require.Equal(t, seq+1, has)
	}
	require.NoError(t, second.Process().Kill())
	require.ErrorContains(t, m.Apply(bounded(t), turnOf(e, 21, "k")), "0 of 1 replicas of Redis")
	second.Start()
	h.Until("the turn that was said again", func() error { return m.Apply(bounded(t), turnOf(e, 21, "k")) })
}

// TestScriptsSayWhatTheyDo: each has a header with its name, its keys, its arguments and
// what it gives, and asks for the epoch before anything else.
func TestScriptsSayWhatTheyDo(t *testing.T) {
	files, err := filepath.Glob("lua/*.lua")
	require.NoError(t, err)
	require.Len(t, files, 7)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(file), ".lua")
		header, code, _ := strings.Cut(string(text), "\nlocal ")
		require.True(t, strings.HasPrefix(header, "-- "+name+": "), file)
		require.Contains(t, header, "-- KEYS[1]", file)
		require.Contains(t, header, "-- gives ", file)
		if name == "look" || name == "probe" { // which change nothing of the mirror
			continue
		}
		require.Contains(t, header, "-- ARGV[1..", file)
		_, first, _ := strings.Cut("local "+code, "redis.call(")
		require.True(t, strings.HasPrefix(first, "'HMGET', KEYS[1], "), file)
	}
}
