package partitions

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
)

const partitions = 4

// world is a NATS server, a Redis, and coordinators of one cell.
type world struct {
	t      *testing.T
	h      *harness.Test
	redis  *harness.Redis
	nats   string
	policy string
}

func newWorld(t *testing.T) *world {
	h := harness.New(t)
	w := &world{t: t, h: h, redis: h.Redis()}
	server, err := bus.Embed("-1")
	require.NoError(t, err)
	t.Cleanup(server.Close)
	w.nats = server.URL()
	w.policy = h.Policy("limits:\n  - {key: \"{tenant}\", rules: [1000/1s]}\n")
	return w
}

// start starts a coordinator, and waits until it lives.
func (w *world) start(name string) *harness.Coordinator {
	w.t.Helper()
	return w.h.Coordinator(harness.CoordinatorConfig{
		Policy: w.policy, NATS: w.nats, Standby: true, Args: w.args(name, partitions),
	})
}

func (w *world) args(name string, n int) []string {
	return []string{"--redis", w.redis.URL(), "--name", name, "--partitions", strconv.Itoa(n), "--connect-wait", "10s"}
}

// document is what is read of status --json.
type document struct {
	Divided    int
	Partitions []struct {
		N       int
		Leader  string
		Epoch   uint64
		Problem string
	}
	Keys []struct{ Key string }
}

// status asks as people do, for a key or for all.
func (w *world) status(key ...string) (*document, error) {
	w.t.Helper()
	p := w.h.Start(harness.Command{
		Path: w.h.Bin("coordinator").Path("coordinator"),
		Args: append([]string{"status", "--json", "--nats", w.nats, "--connect-wait", "10s"}, key...),
	})
	if code := w.h.Wait(p); code != 0 {
		return nil, fmt.Errorf("exit code %d: %s", code, p.Stderr())
	}
	d := &document{}
	if err := json.Unmarshal([]byte(p.Stdout()), d); err != nil {
		return nil, fmt.Errorf("%q: %w", p.Stdout(), err)
	}
	return d, nil
}

// led waits until each of them leads so many partitions.
func (w *world) led(what string, want map[string]int) {
	w.t.Helper()
	w.h.Until(what, func() error {
		d, err := w.status()
		if err != nil {
			return err
		}
		if d.Divided != partitions || len(d.Partitions) != partitions {
			return fmt.Errorf("it tells of %d of %d partitions", len(d.Partitions), d.Divided)
		}
		led := map[string]int{}
		for n, p := range d.Partitions {
			require.Equal(w.t, n, p.N)
			if p.Problem != "" {
				return fmt.Errorf("partition %d: %s", n, p.Problem)
			}
			led[p.Leader]++
		}
		if fmt.Sprint(led) != fmt.Sprint(want) {
			return fmt.Errorf("they lead %v, not %v", led, want)
		}
		return nil
	})
}

// tenant gives one of a partition.
func tenant(n int) string {
	for i := 0; ; i++ {
		if t := fmt.Sprintf("t%d", i); bus.Partition(bus.Token(t), partitions) == n {
			return t
		}
	}
}

// served lets a worker, which knows nothing of partitions, take tokens of each of them,
// and sees that its partition alone tells of the key.
func (w *world) served() {
	w.t.Helper()
	for n := range partitions {
		log := w.t.TempDir() + "/log"
		p, err := w.h.Bin("worker").Worker(w.nats, "worker", "load", "--key", tenant(n), "--count", "5", "--log", log, "--connect-wait", "10s")
		require.NoError(w.t, err)
		w.t.Cleanup(p.Close)
		require.Zero(w.t, w.h.Wait(p), p.Output())
		raw, err := os.ReadFile(log)
		require.NoError(w.t, err)
		require.NotEmpty(w.t, raw)
		d, err := w.status(tenant(n))
		require.NoError(w.t, err)
		require.Len(w.t, d.Partitions, 1)
		require.Equal(w.t, n, d.Partitions[0].N)
		require.Equal(w.t, tenant(n), d.Keys[0].Key)
	}
}
