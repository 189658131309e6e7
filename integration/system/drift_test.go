package system

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/integration/harness"
	"ration/lease"
	"ration/worker"
)

// flood is requests by hand, and what comes back.
type flood struct {
	nc                              *nats.Conn
	inbox                           string
	sent                            int
	granted, refused, full, strange atomic.Int64
}

func newFlood(t *testing.T, url string) *flood {
	t.Helper()
	nc, err := nats.Connect(url, nats.Timeout(harness.Patience)) // which is patient with a machine that has much to do
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	f := &flood{nc: nc, inbox: nats.NewInbox()}
	sub, err := nc.Subscribe(f.inbox, func(m *nats.Msg) {
		switch text := string(m.Data); {
		case strings.Contains(text, `"outcome":"granted"`):
			f.granted.Add(1)
		case strings.Contains(text, `"outcome":"refused"`):
			f.refused.Add(1)
		case strings.Contains(text, `"code":"line_full"`):
			f.full.Add(1)
		default:
			f.strange.Add(1)
		}
	})
	require.NoError(t, err)
	require.NoError(t, sub.SetPendingLimits(-1, -1))
	return f
}

// ask sends n requests for a token, each of a holder of its own.
func (f *flood) ask(t *testing.T, n int) {
	t.Helper()
	for range n {
		f.sent++
		require.NoError(t, f.nc.PublishRequest("ration.v1.default.p.0.acquire.flood", f.inbox, fmt.Appendf(nil,
			`{"v":1,"id":"flood%d.1/1","keys":["flood"],"want":{"tokens":1},"need":{"tokens":1},"sent":"0s","patience":"1h"}`, f.sent)))
	}
	require.NoError(t, f.nc.FlushTimeout(harness.Patience))
}

func (f *flood) answers() int64 {
	return f.granted.Load() + f.refused.Load() + f.full.Load() + f.strange.Load()
}

func (f *flood) String() string {
	return fmt.Sprintf("%d sent, %d granted, %d refused, %d found the line full, %d other answers", f.sent, f.granted.Load(), f.refused.Load(), f.full.Load(), f.strange.Load())
}

// dropped is how many messages the coordinator says that came faster than it took them,
// where `nats micro stats ration` shows it.
func (f *flood) dropped(t *testing.T) int64 {
	t.Helper()
	m, err := f.nc.Request("$SRV.STATS.ration", nil, harness.Patience)
	require.NoError(t, err)
	var stats struct {
		Endpoints []struct {
			Data struct{ Dropped int64 }
		}
	}
	require.NoError(t, json.Unmarshal(m.Data, &stats))
	require.Len(t, stats.Endpoints, 1)
	return stats.Endpoints[0].Data.Dropped
}

// TestNothingDriftsWhileTheMirrorStandsStill is B152: the mirror stalls under a flood.
// Who asks waits, or is told that there is no room; what came faster than it could be
// taken is dropped and counted. Callers of a worker that time out ask again safely. When
// the mirror goes on, what was granted is what the ledger has booked, to the token.
func TestNothingDriftsWhileTheMirrorStandsStill(t *testing.T) {
	t.Parallel()
	mirror := &stalled{Memory: coordinator.NewMemory()}
	s := newSite(t, siteConfig{
		policy: "limits:\n  - {key: flood, rules: [10000000/1h]}\n  - {key: k, rules: [1000/1s]}\n",
		mirror: mirror, bare: true,
		lease: func(c *lease.Config) { c.TokenTTL = time.Hour }, // what the flood is granted stays held
	})
	w, err := worker.New(newHand(t, s.url).client, worker.DefaultConfig())
	require.NoError(t, err)
	l := w.Limiter("k")
	h, err := l.Acquire(context.Background(), 1)
	require.NoError(t, err)
	h.Finish()

	mirror.stall()
	f := newFlood(t, s.url)
	var callers sync.WaitGroup
	var late atomic.Int64
	for range 20 {
		callers.Go(func() {
			ctx, cancel := soon(200 * time.Millisecond)
			defer cancel()
			if h, err := l.Acquire(ctx, 5); err == nil { // of what it has
				h.Finish()
			} else {
				late.Add(1)
			}
		})
	}
	f.ask(t, scaled(12_500, 100_000)) // more than there are places for one key
	s.h.Until("the flood to find no room", func() error {
		if f.full.Load() == 0 {
			f.ask(t, 100) // of what was sent at once so much may have been dropped that there is
			return fmt.Errorf("%v", f)
		}
		return nil
	})
	n := f.sent
	callers.Wait()
	require.Zero(t, f.granted.Load(), "granted without a record")

	mirror.resume()
	s.h.Until("an answer to all that were not dropped", func() error {
		if dropped := f.dropped(t); f.answers()+dropped < int64(n) { // some may be the worker's
			return fmt.Errorf("%v, %d dropped", f, dropped)
		}
		return nil
	})
	require.Zero(t, f.strange.Load(), "%v", f)
	require.Positive(t, f.granted.Load(), "%v", f)
	h, err = l.Acquire(context.Background(), 1)
	require.NoError(t, err, "service goes on")
	h.Finish()
	require.NoError(t, w.Close(context.Background()))
	b := w.Stats()
	require.Equal(t, b.Granted, b.Spent+b.Returned+b.Expired, "%+v", b)

	s.until("all of the worker's to be back, and the flood to have what it was granted", func(st lease.Status) bool {
		return st.Held.Tokens == f.granted.Load() && int64(st.Leases) == f.granted.Load()
	})
	require.LessOrEqual(t, f.answers(), int64(n))
	st := s.status()
	require.Equal(t, st.Stats.Granted, f.granted.Load()+st.Stats.Spent+st.Stats.Returned, "%+v", st.Stats)
	require.Equal(t, b.Spent, st.Stats.Spent, "what the worker has spent is what is booked")
	t.Logf("%v, %d dropped and counted; %d callers gave up meanwhile", f, f.dropped(t), late.Load())
}
