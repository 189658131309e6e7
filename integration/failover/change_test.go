package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
	"ration/integration/oracle"
	"ration/lease"
)

// reformed is the policy of a key under load and of one that a holder has much of.
func reformed(load, held string) string {
	return fmt.Sprintf("limits:\n  - {key: k, rules: [%s]}\n  - {key: held, rules: [%s]}\n  - {key: probe, rules: [1000000/1s]}\n", load, held)
}

// inForce is what status tells.
type inForce struct {
	Partitions []struct{ Policy uint64 }
	Problem    string `json:"policy_problem"`
	Keys       []struct {
		Key     string
		Windows []struct {
			Rule                     string
			Limit, Free, Held, Spent int64
		}
	}
}

func (w *world) inForce(client *bus.Client, key lease.Key) (s inForce, err error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	body, err := client.PartitionStatus(ctx, 0, key)
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	if err == nil && len(s.Partitions) == 0 {
		err = errors.New("of no partition")
	}
	return s, err
}

// revision waits until a policy is in force.
func (w *world) revision(client *bus.Client, want uint64) (s inForce) {
	w.t.Helper()
	w.h.Until(fmt.Sprintf("policy revision %d", want), func() (err error) {
		if s, err = w.inForce(client, "held"); err == nil && s.Partitions[0].Policy != want {
			err = fmt.Errorf("revision %d is in force", s.Partitions[0].Policy)
		}
		return err
	})
	return s
}

// apply is coordinator apply.
func (w *world) apply(text string, code int, says string) {
	w.t.Helper()
	p := w.h.Start(harness.Command{Path: w.h.Bin("coordinator").Path("coordinator"),
		Args: []string{"apply", w.h.Policy(text), "--nats", w.nats}})
	require.Equal(w.t, code, w.h.Wait(p), p.Output())
	require.Contains(w.t, p.Output(), says)
}

// TestPolicyChangesUnderLoadAndOutlivesItsLeader: from 100 to 10 while 60 are held, and
// back, with the leader killed in between and started again with an older file; a rule
// added, removed and added again; the same file again; and broken ones.
func TestPolicyChangesUnderLoadAndOutlivesItsLeader(t *testing.T) {
	const high, low = "200/1s, 550/3s", "50/1s, 550/3s"
	w := newWorld(t, reformed(high, "100/1m"))
	first := w.leader()
	file := first.args.Policy
	nc, err := bus.Connect(w.nats, bus.ConnectConfig{Wait: 10 * time.Second})
	require.NoError(t, err)
	defer nc.Close()
	client := bus.NewClient(nc, bus.ClientConfig{})
	w.probe, w.load = startProbe(w), startLoad(w, 2, 4)
	w.served(time.Now())
	seq := uint64(0)
	ask := func(n int64) lease.Answer {
		t.Helper()
		seq++
		r := lease.Request{ID: lease.ID{Holder: lease.Holder{Name: "h", Incarnation: 1}, Seq: seq}, Keys: []lease.Key{"held"}, Sent: time.Duration(seq)}
		r.Want.Tokens, r.Need.Tokens = n, n
		var a lease.Answer
		w.h.Until("an answer", func() (err error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			a, err = client.Acquire(ctx, r)
			return err
		})
		return a
	}

	granted := ask(60)
	require.Equal(t, lease.Granted, granted.Outcome)
	require.Equal(t, uint64(1), granted.Policy)
	next := file + ".next"
	require.NoError(t, os.WriteFile(next, []byte(reformed(low, "10/1m")), 0o600))
	require.NoError(t, os.Rename(next, file))
	s := w.revision(client, 2)
	lowered := time.Now()
	require.Equal(t, int64(10), s.Keys[0].Windows[0].Limit)
	require.Zero(t, s.Keys[0].Windows[0].Free)
	require.Equal(t, int64(60), s.Keys[0].Windows[0].Held+s.Keys[0].Windows[0].Spent)
	require.Equal(t, lease.Refused, ask(1).Outcome)

	w.kill(first)
	w.served(time.Now())
	require.NotEqual(t, first, w.leader())
	s = w.revision(client, 2)
	require.Equal(t, []int64{10, 0, 60}, []int64{s.Keys[0].Windows[0].Limit, s.Keys[0].Windows[0].Free, s.Keys[0].Windows[0].Held + s.Keys[0].Windows[0].Spent})
	require.Equal(t, lease.Refused, ask(1).Outcome)
	leases := lowered.Add(lease.DefaultConfig().TokenTTL + time.Second) // of before are over
	w.h.Until("two seconds under the low limit", func() error {
		if since := time.Since(leases); since < 2*time.Second {
			return fmt.Errorf("%v", since)
		}
		return nil
	})
	raised := time.Now()
	w.apply(reformed(high, "100/1m"), 0, "in force as revision 3")
	w.start(first) // with the file of before
	w.h.Line(first.process.Process, "not that of the file")
	require.Equal(t, uint64(3), w.revision(client, 3).Partitions[0].Policy)
	a := ask(40)
	require.Equal(t, lease.Granted, a.Outcome)
	require.Equal(t, uint64(3), a.Policy)
	require.Equal(t, lease.Refused, ask(1).Outcome)

	for revision, rules := range []string{"100/1m, 90/5m", "100/1m", "1000/1m, 90/5m"} {
		w.apply(reformed(high, rules), 0, fmt.Sprintf("in force as revision %d", 4+revision))
	}
	refused := ask(1)
	require.Equal(t, lease.Refused, refused.Outcome)
	require.Equal(t, "90/5m", refused.Refusal.Rule, "it knows what it knew")
	w.apply(reformed(high, "1000/1m, 90/5m")+"# the same\n", 0, "in force already, as revision 6")
	w.apply("limits:\n  - {key: k, rules: [1/0s]}\n", 1, ":2:")
	for _, m := range w.members {
		if m.name == w.leader().name {
			require.NoError(t, os.WriteFile(file, []byte("limits:\n  - {key: k\n"), 0o600))
			w.h.Line(m.process.Process, "the policy file is not taken")
		}
	}
	s = w.revision(client, 6)
	require.Contains(t, s.Problem, file)
	w.served(time.Now())
	w.load.stop()
	w.load.done.Wait()

	spends := w.spends()
	require.Empty(t, oracle.Violations(spends, oracle.MustRules(high)))
	var under []oracle.Spend
	for _, s := range spends {
		if s.At >= leases.UnixNano() && s.At < raised.UnixNano() {
			under = append(under, s)
		}
	}
	require.NotEmpty(t, under)
	require.Empty(t, oracle.Violations(under, oracle.MustRules(low)))
}
