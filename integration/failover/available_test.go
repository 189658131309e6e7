package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
	"ration/integration/oracle"
)

// lack is what a status tells of a mirror that is behind.
type lack struct {
	For     time.Duration `json:"for"`
	Away    bool          `json:"away"`
	Leases  int64         `json:"leases"`
	Granted struct {
		Tokens int64 `json:"tokens"`
	} `json:"granted"`
}

// behind asks for the status, and gives what the mirror lacks, or nil.
func (w *world) behind(client *bus.Client) (*lack, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	body, err := client.Status(ctx, "")
	if err != nil {
		return nil, err
	}
	var d struct {
		Partitions []struct {
			Behind *lack `json:"behind"`
		} `json:"partitions"`
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, err
	}
	return d.Partitions[0].Behind, nil
}

// goesOn waits until the leader has granted for longer than two TTLs of its seat without
// the mirror, a hundred tokens and more, and says so everywhere.
func (w *world) goesOn(client *bus.Client, m *member) {
	w.t.Helper()
	w.h.Until("grants without the mirror", func() error {
		switch b, err := w.behind(client); {
		case err != nil:
			return err
		case b == nil || !b.Away || b.Granted.Tokens < 100 || b.For < 2*seatTTL:
			return fmt.Errorf("the status tells %+v", b)
		}
		return nil
	})
	status := w.h.Start(harness.Command{Path: w.h.Bin("coordinator").Path("coordinator"), Args: []string{"status", "--nats", w.nats, "--connect-wait", "10s"}})
	w.h.Line(status, "promise 1 is off since ")
	w.h.Line(status, "granted without a record: ")
	require.Zero(w.t, w.h.Wait(status))
	require.Contains(w.t, w.metrics(m), "ration_mirror_behind{partition=\"0\"} 1\n")
	require.Contains(w.t, m.process.Stderr(), "grants go on without it")
}

// caughtUp waits until the mirror has all.
func (w *world) caughtUp(client *bus.Client, m *member) {
	w.t.Helper()
	w.h.Until("the mirror to have caught up", func() error {
		b, err := w.behind(client)
		if err == nil && b != nil {
			err = fmt.Errorf("the status tells %+v", b)
		}
		return err
	})
	require.Contains(w.t, w.metrics(m), "ration_mirror_behind{partition=\"0\"} 0\n")
	require.Contains(w.t, m.process.Stderr(), "the mirror has caught up")
}

func (w *world) metrics(m *member) string {
	w.t.Helper()
	resp, err := http.Get(m.process.HTTP + "/metrics")
	require.NoError(w.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	return string(body)
}

// handsOn kills the leader: the next one knows all that was granted.
func (w *world) handsOn(m *member) *member {
	w.t.Helper()
	w.kill(m)
	var next *member
	w.h.Until("a takeover", func() error {
		if next = w.leader(); next == m {
			return errors.New("the seat is that of who was killed")
		}
		return nil
	})
	w.start(m)
	at := time.Now()
	w.h.Until("calls under the next leader", func() error {
		spends := w.spends()
		if len(spends) == 0 || spends[len(spends)-1].At < at.Add(time.Second).UnixNano() {
			return errors.New("there are none")
		}
		return nil
	})
	return next
}

// TestGrantsGoOnWithoutRedis, under "mirror: available": while only the leader is cut off
// from it, and the standby that hears the leader leaves it the seat; while it is stopped; and
// while it is gone, and then comes back empty. Each time it is caught up, and then the leader
// is killed: its successor knows all, and no call breaks the contract. B124, B128.
func TestGrantsGoOnWithoutRedis(t *testing.T) {
	w := newWorld(t, fmt.Sprintf("mirror: available\nlimits:\n  - {key: %s, rules: [%q, %q, %q]}\n", key, "200/1s", "550/3s", "16 concurrent"))
	m := w.leader()
	nc, err := bus.Connect(w.nats, bus.ConnectConfig{Name: "asks for the status", Wait: 10 * time.Second})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	client := bus.NewClient(nc, bus.ClientConfig{})
	for range 2 {
		w.hasSpent(w.startWorker())
	}
	for _, f := range []struct {
		name      string
		away, end func()
	}{
		{"the leader cut off from Redis", func() { m.redis.Cut() }, func() { m.redis.Mend() }},
		{"Redis stopped", func() { w.redis.Signal(syscall.SIGSTOP) }, func() { w.redis.Signal(syscall.SIGCONT) }},
		{"Redis killed, and started empty", w.redis.Kill, w.redis.Start},
	} {
		before, err := w.seat.Look(t.Context())
		require.NoError(t, err)
		f.away()
		w.goesOn(client, m)
		f.end()
		w.caughtUp(client, m)
		seat, err := w.seat.Look(t.Context())
		require.NoError(t, err)
		require.Equal(t, before.Name, seat.Name, f.name)
		require.Zero(t, seat.Lost, f.name)
		require.Zero(t, m.deposed(), f.name)
		m = w.handsOn(m)
		broken := oracle.Violations(w.spends(), rules)
		require.Empty(t, broken[:min(len(broken), 3)], "after %s", f.name)
	}
	for _, k := range w.workers {
		w.h.Stop(k.process)
		require.NotContains(t, k.process.Stderr(), "panic")
	}
	spends := w.spends()
	require.Empty(t, oracle.Violations(spends, rules))
	for _, m := range w.members {
		require.False(t, strings.Contains(m.process.Output(), "is forgotten"))
	}
	t.Logf("%d calls", len(spends))
}
