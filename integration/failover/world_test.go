package failover

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
	"ration/integration/oracle"
	"ration/lease"
	"ration/redisbackend"
)

const contract = "200/1s, 550/3s, 16 concurrent"

var rules = oracle.MustRules(contract)

// world is a NATS server, a Redis, and two coordinators, each with ways of its own to
// both.
type world struct {
	t       *testing.T
	h       *harness.Test
	redis   *harness.Redis
	nats    string
	members []*member
	seat    lease.Elector
	load    *load
	probe   *probe
	workers []*worker
}

type member struct {
	name    string
	args    harness.CoordinatorConfig
	process *harness.Coordinator
	redis   *harness.Wire
	nats    *harness.Wire
	past    string // what earlier lives have written
}

// limited is a policy of the contract with a guard, and of a key that never binds.
func limited(guard time.Duration) string {
	return fmt.Sprintf("limits:\n  - {key: %s, rules: [%s], guard: %s}\n  - {key: probe, rules: [1000000/1s]}\n", key, contract, guard)
}

func newWorld(t *testing.T, policy string, redis ...string) *world {
	h := harness.New(t)
	w := &world{t: t, h: h, redis: h.Redis(redis...)}
	addr, err := harness.FreeAddr()
	require.NoError(t, err)
	server, err := bus.Embed(addr)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	w.nats = server.URL()
	direct, err := redisbackend.Open(w.redis.URL(), redisbackend.DefaultConfig())
	require.NoError(t, err)
	t.Cleanup(func() { direct.Close() })
	w.seat = direct.Mirror("default", 0)
	file := h.Policy(policy)
	for _, name := range []string{"a", "b"} {
		m := &member{name: name, redis: h.Wire(w.redis.Addr), nats: h.Wire(addr)}
		m.args = harness.CoordinatorConfig{
			Policy: file, NATS: "nats://" + m.nats.Addr(), Standby: true,
			Args: []string{"--redis", "redis://" + m.redis.Addr(), "--name", name, "--connect-wait", "10s"},
		}
		w.members = append(w.members, m)
		w.start(m)
	}
	return w
}

// start starts a coordinator, again after its end.
func (w *world) start(m *member) {
	w.t.Helper()
	if m.process != nil {
		m.past += m.process.Output()
	}
	m.process = w.h.Coordinator(m.args)
}

// leader is who has the seat now, and leads.
func (w *world) leader() *member {
	w.t.Helper()
	var found *member
	w.h.Until("a leader", func() error {
		s, err := w.seat.Look(w.t.Context())
		if err != nil {
			return err
		}
		for _, m := range w.members {
			if m.name == s.Name && !s.Vacant {
				found = m
				return nil
			}
		}
		return fmt.Errorf("the seat is %q's, vacant %v", s.Name, s.Vacant)
	})
	return found
}

// served waits until there were grants since then.
func (w *world) served(since time.Time) {
	w.t.Helper()
	w.h.Until("grants", func() error {
		if !w.probe.since(since) {
			return errors.New("the probe is granted nothing")
		}
		if w.load.since(since) == 0 {
			return errors.New("no call is made")
		}
		return nil
	})
}

// deposed is how often the coordinator has found its writes refused.
func (m *member) deposed() int {
	return strings.Count(m.past+m.process.Output(), "lost the seat")
}

// kill is kill -9 of a coordinator.
func (w *world) kill(m *member) {
	w.t.Helper()
	require.NoError(w.t, m.process.Kill())
}

func (w *world) signal(p *harness.Process, s syscall.Signal) {
	w.t.Helper()
	require.NoError(w.t, p.Signal(s))
}

// worker is a worker of a process of its own.
type worker struct {
	process *harness.Process
	log     string
}

func (w *world) startWorker() *worker {
	w.t.Helper()
	k := &worker{log: w.t.TempDir() + "/log"}
	p, err := w.h.Bin("worker").Worker(w.nats, fmt.Sprintf("worker %d", len(w.workers)), "load", "--key", key, "-j", "2", "--log", k.log)
	require.NoError(w.t, err)
	w.t.Cleanup(p.Close)
	k.process = p
	w.workers = append(w.workers, k)
	return k
}

// spends is every call of all.
func (w *world) spends() []oracle.Spend {
	w.t.Helper()
	var spends []oracle.Spend
	if w.load != nil {
		spends = w.load.all()
	}
	for _, k := range w.workers {
		some, err := oracle.ReadFiles(k.log)
		if !errors.Is(err, oracle.ErrTorn) { // the one that was killed
			require.NoError(w.t, err)
		}
		spends = append(spends, some...)
	}
	oracle.Sort(spends)
	return spends
}
