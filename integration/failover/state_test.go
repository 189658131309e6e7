package failover

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
	"ration/integration/oracle"
)

// lone is a coordinator that keeps its state in a directory, with a NATS server of its own.
type lone struct {
	*harness.Coordinator
	h      *harness.Test
	config harness.CoordinatorConfig
}

func newLone(t *testing.T, policy string) *lone {
	h := harness.New(t)
	c := &lone{h: h, config: harness.CoordinatorConfig{
		Policy: h.Policy(policy),
		Args:   []string{"--state", filepath.Join(t.TempDir(), "state")},
	}}
	c.Coordinator = h.Coordinator(c.config)
	c.config.Listen = strings.TrimPrefix(c.NATS, "nats://")
	c.config.HTTP = strings.TrimPrefix(c.HTTP, "http://")
	return c
}

// killed is kill -9, and a start at the same place.
func (c *lone) killed(t *testing.T) {
	t.Helper()
	require.NoError(t, c.Kill())
	c.Coordinator = c.h.Coordinator(c.config)
}

// usedUp says what is left of the day, and of what is held of it, or nil.
func (c *lone) usedUp(t *testing.T) error {
	nc, err := bus.Connect(c.NATS, bus.ConnectConfig{Name: "onlooker", Wait: 10 * time.Second})
	if err != nil {
		return err
	}
	defer nc.Close()
	body, err := bus.NewClient(nc, bus.ClientConfig{}).Status(t.Context(), "k")
	if err != nil {
		return err
	}
	var status struct {
		Keys []struct {
			Windows []struct {
				Rule       string
				Free, Held int64
			}
		}
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return err
	}
	for _, k := range status.Keys {
		for _, w := range k.Windows {
			if strings.Contains(w.Rule, "fixed") && w.Free == 0 && w.Held == 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("status is %s", body)
}

// noon gives a time zone in which no day ends within eight hours.
func noon() string {
	// Etc/GMT-5 is five hours ahead of UTC.
	return fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12)
}

// TestDayQuotaSurvivesKill: of 10 a day 4 are spent; after kill -9 of a coordinator that
// has a directory exactly 6 are left, and after the next one none.
func TestDayQuotaSurvivesKill(t *testing.T) {
	c := newLone(t, "limits:\n  - {key: day, rules: [10/1d fixed tz="+noon()+"]}\n")
	require.Equal(t, 4, calls(t, c.h, c.NATS, "day", 4))
	c.killed(t)
	require.Equal(t, 6, calls(t, c.h, c.NATS, "day", 20))
	c.killed(t)
	require.Zero(t, calls(t, c.h, c.NATS, "day", 5))
}

// TestKilledUnderLoadForgetsNothing: a coordinator with a directory is killed again and
// again while workers want more than there is. No window of any limit sees more than its
// limit, whichever coordinator granted it.
func TestKilledUnderLoadForgetsNothing(t *testing.T) {
	const (
		day     = 600
		seconds = "100/1s, 250/3s, 8 concurrent"
	)
	kills := 4
	if proof {
		kills = 25
	}
	c := newLone(t, fmt.Sprintf("limits:\n  - {key: k, rules: [%s, %d/1d fixed tz=%s]}\n", seconds, day, noon()))
	var logs []string
	var workers []*harness.Process
	for n := range 3 {
		logs = append(logs, filepath.Join(t.TempDir(), "log"))
		log := logs[n]
		workers = append(workers, c.h.Worker(c.Coordinator, "load", "--key", "k", "-j", "4", "--connect-wait", "30s", "--log", log))
	}
	for n := range kills {
		c.h.Until("some calls", func() error {
			spends, err := oracle.ReadFiles(logs...)
			if least := (n + 1) * day / 2 / kills; len(spends) < least {
				return cmp.Or(err, fmt.Errorf("%d of %d have been made", len(spends), least))
			}
			return nil
		})
		time.Sleep(time.Duration(rand.Int64N(int64(200 * time.Millisecond)))) // anywhere in a turn
		c.killed(t)
	}
	c.h.Until("the day's calls to be used up", func() error { return c.usedUp(t) })
	for _, w := range workers {
		c.h.Stop(w)
	}
	spends := c.h.Logs(logs...)
	rules := oracle.MustRules(seconds)
	require.Empty(t, oracle.Violations(spends, rules), "killed %d times", kills)
	require.LessOrEqual(t, len(spends), day, "of a day")
	t.Logf("killed %d times: %d of %d a day", kills, len(spends), day)
}
