package failover

import (
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
)

// TestRolledCoordinatorsForgetNothing (B131): of 10 an hour 4 are spent, and then the
// coordinators are replaced one by one, while nobody asks for the key. As many are left
// as before, and where Redis has forgotten, that is said.
func TestRolledCoordinatorsForgetNothing(t *testing.T) {
	kept := []string{"--appendonly", "yes", "--appendfsync", "always"}
	for _, c := range []struct {
		name        string
		redis       []string // how Redis is started
		args        []string // and the coordinators
		away, back  func(w *world)
		least, most int
		said        string
	}{
		{name: "Redis works", least: 6, most: 6},
		{
			name: "Redis is out of reach meanwhile", least: 6, most: 6,
			away: func(w *world) { w.wires((*harness.Wire).Cut) },
			back: func(w *world) { w.wires((*harness.Wire).Mend) },
		},
		{
			name: "Redis is down meanwhile, and has its data", redis: kept, args: []string{"--redis-lag", "0s"}, least: 6, most: 6,
			away: func(w *world) { w.redis.Kill() },
			back: func(w *world) { w.redis.Start() },
		},
		{
			name: "Redis is down meanwhile, and may have forgotten", redis: kept, most: 6,
			away: func(w *world) { w.redis.Kill() },
			back: func(w *world) { w.redis.Start() },
			said: "the mirror was started again",
		},
		{
			name: "Redis is down meanwhile, and has lost everything", least: 10, most: 10, // which is not promised
			away: func(w *world) { w.redis.Kill() },
			back: func(w *world) { w.redis.Start() },
			said: "starting afresh",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "limits:\n  - {key: idle, rules: [10/1h]}\n", c.redis...)
			w.leader()
			require.Equal(t, 4, calls(t, w.h, w.nats, "idle", 4))
			if c.away != nil {
				c.away(w)
			}
			for _, m := range w.members {
				m.args.Args = append(m.args.Args, c.args...)
				w.signal(m.process.Process, syscall.SIGTERM)
				require.Zero(t, w.h.Wait(m.process.Process), m.process.Output())
				w.start(m)
			}
			if c.back != nil {
				c.back(w)
			}
			more := calls(t, w.h, w.nats, "idle", 20)
			require.GreaterOrEqual(t, more, c.least)
			require.LessOrEqual(t, more, c.most)
			require.Contains(t, w.members[0].process.Output()+w.members[1].process.Output(), c.said)
			t.Logf("4 calls, and %d more", more)
		})
	}
}

// TestWhatRedisForgotCountsAsSpent (B131): Redis comes back empty, and who had the ledger
// has gone with it. A coordinator that knows that there was something grants nothing of a
// key that nobody remembers, and says so.
func TestWhatRedisForgotCountsAsSpent(t *testing.T) {
	w := newWorld(t, "limits:\n  - {key: idle, rules: [10/1h]}\n")
	old := w.leader()
	require.Equal(t, 4, calls(t, w.h, w.nats, "idle", 4))
	w.signal(old.process.Process, syscall.SIGSTOP)
	w.takeover(old)
	heir := w.leader()
	w.signal(old.process.Process, syscall.SIGCONT)
	w.h.Line(old.process.Process, "lost the seat")

	w.redis.Kill()
	w.kill(heir)
	w.redis.Start()
	require.Zero(t, calls(t, w.h, w.nats, "idle", 5))
	require.Contains(t, old.process.Output(), "a key that nobody remembers counts as fully spent")
}

// wires does something to each coordinator's way to Redis.
func (w *world) wires(do func(*harness.Wire)) {
	for _, m := range w.members {
		do(m.redis)
	}
}

// calls lets a worker make up to most calls, and gives how many it made. It waits for a
// leader, but not for tokens that come back later.
func calls(t *testing.T, h *harness.Test, nats, key string, most int) int {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	p, err := h.Bin("worker").Worker(nats, "caller", "load", "--key", key, "-j", "1",
		"--count", strconv.Itoa(most), "--wait", "5s", "--connect-wait", "50s", "--log", log)
	require.NoError(t, err)
	defer p.Close()
	code := h.Wait(p)
	made := len(h.Logs(log))
	require.Equal(t, made < most, code == timedOut, p.Output())
	require.Equal(t, made == most, code == 0, p.Output())
	return made
}

// timedOut is what a worker ends with if some call had no turn within --wait.
const timedOut = 4
