package redisbackend_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/internal/mirrortest"
	"ration/lease"
	"ration/redisbackend"
)

// TestBlackHoleIsBounded (B137): packets to Redis are dropped, then its connections are
// reset, then it answers later than is waited for. Who does not wait is told meanwhile,
// nothing piles up, and in the end Redis has what the ledger has.
func TestBlackHoleIsBounded(t *testing.T) {
	h := harness.New(t)
	r := h.Redis()
	wire := h.Wire(r.Addr)
	x := lead(t, openHasty(t, "redis://"+wire.Addr()).Mirror("c", 0), `limits: [{key: "{a}", rules: [1000000/1s]}]`)
	require.True(t, newAsking("w").takes(t, x.leader, "k"))
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	goroutines, conns := runtime.NumGoroutine(), wire.Conns()
	for _, phase := range []struct {
		name string
		do   func()
		wait time.Duration
	}{{"black hole", wire.Swallow, 3 * time.Second}, {"reset", wire.Cut, time.Second}, {"latency", func() { wire.Mend(); wire.Delay(5 * time.Second) }, 2 * time.Second}} {
		phase.do()
		took := hasty(t, x, phase.wait)
		slices.Sort(took)
		t.Logf("%s: %d asked, p99 %v", phase.name, len(took), took[len(took)*99/100])
		require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+60)
		require.LessOrEqual(t, wire.Conns(), conns+60)
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		require.Less(t, int64(now.HeapAlloc)-int64(before.HeapAlloc), int64(32<<20))
	}
	wire.Mend()
	h.Until("a grant", func() error {
		if !newAsking("late").takes(t, x.leader, "k") {
			return errors.New("refused")
		}
		return nil
	})
	require.Positive(t, x.log.count("the mirror fails"))
	require.Less(t, x.log.count("the mirror fails"), 10+int(time.Since(began).Seconds()), "it is said once a second")
	sameInRedis(t, x)
}

// hasty lets 16 holders ask without waiting for that long, and gives how long each was
// busy. Who is in the turn whose outcome is unknown hears nothing, and gives up; all
// others are told that the mirror is away.
func hasty(t *testing.T, x *post, d time.Duration) (took []time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	told := 0
	for i := range 16 {
		all.Go(func() {
			a := newAsking(fmt.Sprint("hasty ", i, time.Now().UnixNano()))
			for ctx.Err() == nil {
				patient, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				began := time.Now()
				_, err := x.leader.Acquire(patient, a.request(0, "k"))
				cancel()
				mu.Lock()
				took = append(took, time.Since(began))
				if errors.Is(err, lease.ErrMirrorAway) {
					told++
				}
				mu.Unlock()
				time.Sleep(time.Millisecond) // as a caller with something else to do
			}
		})
	}
	all.Wait()
	require.Greater(t, told, len(took)/2, x.log)
	return took
}

// TestCancelledCommandsLeakNothing (B146): a thousand calls end after a millisecond, with
// the reply on its way. What is read afterwards is right, and no connection is left over.
func TestCancelledCommandsLeakNothing(t *testing.T) {
	h := harness.New(t)
	r := h.Redis()
	wire := h.Wire(r.Addr)
	server := openAs(t, "redis://"+wire.Addr(), redisbackend.DefaultConfig())
	m := server.Mirror("default", 0)
	e := mirrortest.Win(t, m, mirrortest.Seat(1))
	var keys []lease.Key
	for i := range 20 {
		keys = append(keys, lease.Key(fmt.Sprint("k", i)))
		require.NoError(t, m.Apply(bounded(t), turnOf(e, uint64(i+1), keys[i])))
	}
	cut := 0
	wire.Delay(2 * time.Millisecond) // longer than is waited
	for i := range 1000 {
		if i == 700 {
			wire.Mend() // and about as long
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		records, err := m.Load(ctx, e, keys[i%20:i%20+1])
		cancel()
		if err != nil {
			cut++
			continue
		}
		require.Equal(t, keys[i%20], records[0].Key)
		require.Len(t, records[0].Windows, 1)
	}
	t.Logf("%d of 1000 were cut off", cut)
	require.Positive(t, cut)
	for i := range 20 {
		records, err := m.Load(bounded(t), e, keys[i:i+1])
		require.NoError(t, err)
		require.Equal(t, keys[i], records[0].Key)
		require.Len(t, records[0].Windows, 1)
		seat, err := m.Look(bounded(t))
		require.NoError(t, err)
		require.Equal(t, uint64(20), seat.Seq)
	}
	look := raw(t, r)
	h.Until("the connections to go", func() error {
		list, err := look.ClientList(bounded(t)).Result()
		if err != nil {
			return err
		}
		if n := strings.Count(list, "\n"); n > 12 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}
