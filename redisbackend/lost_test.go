package redisbackend_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/coordinator"
	"ration/integration/harness"
	"ration/internal/mirrortest"
	"ration/lease"
	"ration/redisbackend"
)

// TestScriptsAreForgottenUnderLoad (B124): turns go on as if nothing were, also where
// they go in one pipeline with the wait for a replica, and each is applied once.
func TestScriptsAreForgottenUnderLoad(t *testing.T) {
	t.Parallel()
	for name, replicas := range map[string]int{"alone": 0, "with a replica": 1} {
		t.Run(name, func(t *testing.T) {
			h := harness.New(t)
			r := h.Redis()
			if replicas > 0 {
				follows(h, r.Addr)
			}
			server := openAs(t, r.URL(), redisbackend.Config{Replicas: replicas, Wait: time.Second})
			x := lead(t, server.Mirror("c", 0), allKinds)
			n := startLoad(t, func() *coordinator.Leader { return x.leader })
			for range 20 {
				n.goesOn(h, 20)
				require.NoError(t, raw(t, r).ScriptFlush(bounded(t)).Err())
			}
			epoch := x.leader.Epoch()
			n.goesOn(h, 20)
			n.end()
			require.Equal(t, epoch, x.leader.Epoch())
			require.NotContains(t, x.log.String(), "NOSCRIPT")
			sameInRedis(t, x)
		})
	}
}

// TestRestartWithNothingUnderLoad (B124): who leads writes all back from memory, under
// another epoch, and says so each time.
func TestRestartWithNothingUnderLoad(t *testing.T) {
	h := harness.New(t)
	r := h.Redis()
	x := lead(t, open(t, r.URL()).Mirror("c", 0), allKinds)
	n := startLoad(t, func() *coordinator.Leader { return x.leader })
	for times := 1; times <= 3; times++ {
		n.goesOn(h, 200)
		epoch := x.leader.Epoch()
		r.Kill()
		r.Start()
		h.Until("another epoch", func() error { return least(int(x.leader.Epoch().Number), int(epoch.Number)+1) })
		n.goesOn(h, 200)
		require.GreaterOrEqual(t, x.log.count("the mirror has lost what it had; writing it back"), times, x.log)
	}
	n.end()
	h.Until("all to be written back", func() error {
		seat, err := x.mirror.Look(bounded(t))
		if err == nil && seat.Lost != (lease.Doubt{}) {
			err = least(0, 1)
		}
		return err
	})
	sameInRedis(t, x)
}

// TestReplyThatIsLostCountsNothingTwice (B125): the turn was applied and its reply
// dropped, or comes after nobody waits for it any more. The same turn goes again, and is
// there once.
func TestReplyThatIsLostCountsNothingTwice(t *testing.T) {
	h := harness.New(t)
	r := h.Redis()
	wire := h.Wire(r.Addr)
	server := openAs(t, "redis://"+wire.Addr(), redisbackend.Config{Wait: 100 * time.Millisecond})
	m := server.Mirror("default", 0)
	e := mirrortest.Win(t, open(t, r.URL()).Mirror("default", 0), mirrortest.Seat(1))
	h.Until("a turn", func() error { return m.Apply(bounded(t), turnOf(e, 1, "other")) })
	for i, lose := range []func(){wire.Deafen, func() { wire.Delay(time.Hour) }, wire.Deafen} {
		seq := i + 1
		turn := turnOf(e, uint64(seq+1), "k")
		turn.Changes[0].Windows[0].State = algo.State{Spent: int64(seq + 1), Marks: []algo.Mark{{At: algo.Instant(seq), N: 1}}}
		h.Until("a connection", func() error {
			_, err := m.Look(bounded(t))
			return err
		})
		lose()
		require.Error(t, m.Apply(bounded(t), turn))
		h.Until("the turn in Redis", func() error {
			n, err := raw(t, r).HGet(bounded(t), "{ration:default:0}:seat", "seq").Int()
			if err != nil {
				return err
			}
			return least(n, seq+1)
		})
		wire.Mend()
		h.Until("an answer", func() error { return m.Apply(bounded(t), turn) })
		records, err := m.Load(bounded(t), e, []lease.Key{"k"})
		require.NoError(t, err)
		require.Equal(t, int64(seq+1), records[0].Windows[0].State.Spent)
		require.Len(t, records[0].Windows[0].State.Marks, seq, "marks stay, each once")
	}
}

// TestRepliesAreLostAndLateUnderLoad (B125): what Redis has is what the ledger has.
func TestRepliesAreLostAndLateUnderLoad(t *testing.T) {
	h := harness.New(t)
	r := h.Redis()
	wire := h.Wire(r.Addr)
	server := openAs(t, "redis://"+wire.Addr(), redisbackend.Config{Wait: 200 * time.Millisecond})
	x := lead(t, server.Mirror("c", 0), allKinds)
	epoch := x.leader.Epoch()
	n := startLoad(t, func() *coordinator.Leader { return x.leader })
	for i := range 15 {
		n.goesOn(h, 30)
		failed := x.log.count("the mirror fails")
		switch i % 3 {
		case 0:
			wire.Deafen()
		case 1:
			wire.Delay(time.Hour) // far above what is waited
		default:
			wire.Swallow()
		}
		h.Until("a failure", func() error { return least(x.log.count("the mirror fails"), failed+1) })
		wire.Mend()
	}
	n.goesOn(h, 100)
	n.end()
	require.Equal(t, epoch, x.leader.Epoch(), "nothing was lost: %s", x.log)
	sameInRedis(t, x)
}

// TestLostTailGrantsNothingTwice (B130): the link to the replica is held up, then the
// primary and the coordinator die together and the replica is promoted. Where answers
// wait for the replica nothing was answered meanwhile; where they do not, the next
// leader charges what may be missing.
func TestLostTailGrantsNothingTwice(t *testing.T) {
	t.Parallel()
	for name, replicas := range map[string]int{"answers wait for the replica": 1, "answers wait for none": 0} {
		t.Run(name, func(t *testing.T) {
			h := harness.New(t)
			primary := h.Redis()
			link := h.Wire(primary.Addr)
			replica := follows(h, link.Addr())
			h.Until("the replica to follow", func() error {
				info, err := raw(t, replica).Info(bounded(t), "replication").Result()
				if err == nil && !strings.Contains(info, "master_link_status:up") {
					err = least(0, 1)
				}
				return err
			})
			config := redisbackend.Config{Replicas: replicas, Wait: 500 * time.Millisecond}
			const policy = `limits: [{key: "{a}", rules: [10/1h]}]`
			first := openAs(t, primary.URL(), config)
			x := lead(t, first.Mirror("c", 0), policy)
			a := newAsking("a")
			granted := a.many(t, x.leader, "k", 4)
			require.Equal(t, 4, granted)
			h.Until("the replica to have it", func() error {
				n, err := raw(t, replica).HGet(bounded(t), "{ration:c:0}:seat", "seq").Int()
				seat, err2 := x.mirror.Look(bounded(t))
				return cmp.Or(err, err2, least(n, int(seat.Seq)))
			})
			link.Swallow()
			if replicas == 0 {
				granted += a.many(t, x.leader, "k", 3)
				require.Equal(t, 7, granted)
			} else {
				answered := make(chan struct{}, 1)
				x.leader.Begin(a.request(harness.Patience, "k"), func(lease.Answer, error) { answered <- struct{}{} })
				h.Until("a word about it", func() error { return least(x.log.count("0 of 1 replicas"), 1) })
				require.Empty(t, answered)
			}
			primary.Kill()
			x.die()
			require.NoError(t, raw(t, replica).ReplicaOf(bounded(t), "NO", "ONE").Err())
			config.Replicas = 0
			second := openAs(t, replica.URL(), config)
			y := lead(t, second.Mirror("c", 0), policy)
			b := newAsking("b")
			granted += b.many(t, y.leader, "k", 20)
			h.Until("a charge of what may be missing", func() error {
				granted += b.many(t, y.leader, "k", 1)
				status, err := y.leader.Summary(bounded(t))
				if err != nil {
					return err
				}
				return least(int(status.Stats.Charged), 1)
			})
			granted += b.many(t, y.leader, "k", 20)
			require.LessOrEqual(t, granted, 10)
		})
	}
}

// TestReplicaThatJustCameIsWaitedFor: nobody has looked at the seat since it came, and it
// does not have what is written. A turn is not answered for the sake of a replica that has
// it in the place of one that was known, nor because none was.
func TestReplicaThatJustCameIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]int{"besides another": 1, "as the first": 0} {
		t.Run(name, func(t *testing.T) {
			h := harness.New(t)
			primary := h.Redis("--repl-diskless-sync", "no")
			link := h.Wire(primary.Addr)
			has := func(n int) {
				h.Until("replicas", func() error {
					info, err := raw(t, primary).Info(bounded(t), "replication").Result()
					return cmp.Or(err, least(strings.Count(info, "state=online"), n))
				})
			}
			if known > 0 {
				follows(h, link.Addr())
			}
			has(known)
			config := redisbackend.DefaultConfig()
			config.Wait = harness.Patience / 2
			m := openAs(t, primary.URL(), config).Mirror("c", 0)
			e := mirrortest.Win(t, m, mirrortest.Seat(1)) // which looks
			require.NoError(t, m.Apply(bounded(t), turnOf(e, 1, "k")))
			if known > 0 {
				link.Swallow() // it lags
				follows(h, primary.Addr)
				has(known + 1)
			} else {
				follows(h, link.Addr())
				has(1)
				link.Swallow()
			}
			seq := uint64(1)
			h.Until("turns that wait for both", func() error {
				seq++
				err := m.Apply(bounded(t), turnOf(e, seq, "k"))
				if known > 0 {
					require.Error(t, err, "the first of them")
				}
				if err == nil {
					return errors.New("none does")
				}
				require.ErrorContains(t, err, fmt.Sprintf("%d of %d replicas", known, known+1))
				return nil
			})
			link.Mend()
			h.Until("the turn", func() error { return m.Apply(bounded(t), turnOf(e, seq, "k")) })
		})
	}
}
