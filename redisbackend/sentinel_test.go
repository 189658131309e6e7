package redisbackend_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/integration/harness"
	"ration/internal/mirrortest"
	"ration/lease"
	"ration/redisbackend"
)

// watched is a primary and a replica behind a Sentinel.
type watched struct {
	h                *harness.Test
	primary, replica *harness.Redis
	sentinel         *harness.Redis
	server           *redisbackend.Server
	watches          *redis.Client
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	h := harness.New(t)
	w := &watched{h: h, primary: h.Redis()}
	w.replica = follows(h, w.primary.Addr)
	w.sentinel = h.Sentinel(w.primary)
	w.watches = raw(t, w.sentinel)
	w.ready(t)
	w.server = openHasty(t, "redis://"+w.sentinel.Addr+"?master_name=mirror")
	return w
}

// follows starts a replica of a server.
func follows(h *harness.Test, primary string) *harness.Redis {
	host, port, _ := strings.Cut(primary, ":")
	return h.Redis("--replicaof", host, port)
}

// ready waits until the Sentinel would promote a replica, which has all.
func (w *watched) ready(t *testing.T) {
	t.Helper()
	w.h.Until("a replica that can be promoted", func() error {
		all, err := w.watches.Do(bounded(t), "SENTINEL", "REPLICAS", "mirror").Slice()
		if err != nil {
			return err
		}
		for _, one := range all {
			has := map[string]string{}
			for k, v := range one.(map[any]any) {
				has[fmt.Sprint(k)] = fmt.Sprint(v)
			}
			if has["flags"] == "slave" && has["master-link-status"] == "ok" {
				return nil
			}
		}
		return fmt.Errorf("there are %v", all)
	})
}

// promoted waits until the Sentinel names another primary.
func (w *watched) promoted(t *testing.T) {
	t.Helper()
	w.h.Until("another primary", func() error {
		addr, err := w.watches.Do(bounded(t), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mirror").StringSlice()
		if err != nil {
			return err
		}
		if _, port, _ := strings.Cut(w.replica.Addr, ":"); addr[1] != port {
			return fmt.Errorf("it is %v", addr)
		}
		return nil
	})
}

// waits lets a leader take turns until the primary is asked to wait for its replica.
func waits(t *testing.T, h *harness.Test, x *post, primary *harness.Redis) {
	t.Helper()
	a := newAsking("any")
	h.Until("turns that wait for the replica", func() error {
		a.takes(t, x.leader, "t")
		stats, err := raw(t, primary).Info(bounded(t), "commandstats").Result()
		if err == nil && !strings.Contains(stats, "cmdstat_wait:") {
			err = errors.New("none does")
		}
		return err
	})
}

// TestSentinelIsAMirror: what the single server passes, before a failover and after it.
func TestSentinelIsAMirror(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	require.NoError(t, w.server.Check(bounded(t), "c"))
	server := open(t, "redis://"+w.sentinel.Addr+"?master_name=mirror")
	cells := 0
	fresh := func(*testing.T) mirrortest.Mirror {
		cells++
		return server.Mirror(fmt.Sprintf("cell%d", cells), 0)
	}
	mirrortest.Run(t, fresh)
	w.primary.Kill()
	w.promoted(t)
	w.h.Until("the promoted one to be written to", func() error { return server.Check(bounded(t), "c") })
	mirrortest.Run(t, fresh)
}

// TestSentinelFailoverLosesNothingAcknowledged (B124, a replica is promoted while the
// mirror is busy): every turn that was answered is in the promoted replica, whose
// scripts are loaded by the way. The same leader goes on under the same epoch, while the
// old primary is gone, and another coordinator that takes over knows all that was granted.
func TestSentinelFailoverLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	const policy = `limits: [{key: "once/{k}", rules: [1/1h]}, {key: "{a}/{b}/{c}", rules: [100000/1s, 40 concurrent]}]`
	x := lead(t, w.server.Mirror("c", 0), policy)
	waits(t, w.h, x, w.primary)
	epoch := x.leader.Epoch()
	n := startLoad(t, func() *coordinator.Leader { return x.leader })
	n.goesOn(w.h, 300)
	stop, granted := make(chan struct{}), make(chan lease.Key, 100_000)
	go func() {
		defer close(granted)
		for i, a := 0, newAsking("once"); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			key := lease.Key(fmt.Sprint("once/", i))
			switch ok, err := a.try(t.Context(), x.leader, key); {
			case err != nil:
				t.Errorf("asking: %v", err)
				return
			case ok:
				granted <- key
			}
		}
	}()
	w.h.Until("grants", func() error { return least(len(granted), 200) })
	at := time.Now()
	w.primary.Kill()
	w.promoted(t)
	before := len(granted)
	w.h.Until("grants while the old primary is gone", func() error { return least(len(granted), before+200) })
	t.Logf("after %v the mirror takes turns again; %d grants before, %d after", time.Since(at), before, len(granted)-before)
	close(stop)
	n.end()
	require.Equal(t, epoch, x.leader.Epoch(), "the promoted replica lacked a turn: %s", x.log)
	sameInRedis(t, x)
	x.die()
	y := lead(t, w.server.Mirror("c", 0), policy)
	a := newAsking("again")
	for key := range granted {
		require.False(t, a.takes(t, y.leader, key), key)
	}
}

func least(got, want int) error {
	if got < want {
		return fmt.Errorf("%d of %d", got, want)
	}
	return nil
}

// TestMirrorFollowsAPlannedFailover (B128): the running primary is made a replica of the
// promoted one, and the connections to it are still there. The turns that it refuses go
// again to the other, with no restart.
func TestMirrorFollowsAPlannedFailover(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	x := lead(t, w.server.Mirror("c", 0), allKinds)
	waits(t, w.h, x, w.primary)
	epoch := x.leader.Epoch()
	n := startLoad(t, func() *coordinator.Leader { return x.leader })
	n.goesOn(w.h, 300)
	require.NoError(t, w.watches.Do(bounded(t), "SENTINEL", "FAILOVER", "mirror").Err())
	w.promoted(t)
	n.goesOn(w.h, 300)
	w.h.Until("the old primary to follow", func() error {
		role, err := raw(t, w.primary).Do(bounded(t), "ROLE").Slice()
		if err != nil || role[0] != "slave" || role[3] != "connected" {
			return fmt.Errorf("it is %v, %v", role, err)
		}
		return nil
	})
	n.goesOn(w.h, 300)
	n.end()
	require.Equal(t, epoch, x.leader.Epoch(), x.log)
	sameInRedis(t, x)
}

// TestMirrorOutlivesADemotion (B128): the only server it knows is made a replica under
// it, refuses to write, and is promoted again.
func TestMirrorOutlivesADemotion(t *testing.T) {
	h := harness.New(t)
	r, other := h.Redis(), h.Redis()
	x := lead(t, open(t, r.URL()).Mirror("c", 0), allKinds)
	n := startLoad(t, func() *coordinator.Leader { return x.leader })
	n.goesOn(h, 100)
	host, port, _ := strings.Cut(other.Addr, ":")
	// Nothing is lost: the other is not reached, since it wants another password.
	require.NoError(t, raw(t, other).ConfigSet(bounded(t), "requirepass", "x").Err())
	require.NoError(t, raw(t, r).ReplicaOf(bounded(t), host, port).Err())
	h.Until("a word about it", func() error { return least(x.log.count("name the primary, or the Sentinels"), 1) })
	require.NoError(t, raw(t, r).ReplicaOf(bounded(t), "NO", "ONE").Err())
	n.goesOn(h, 300)
	n.end()
	sameInRedis(t, x)
}
