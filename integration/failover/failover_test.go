package failover

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/oracle"
)

const seatTTL = 2 * time.Second

// fault lets something fail, and lets it be well again. It gives when it failed.
type fault struct {
	name string
	do   func(w *world) time.Time
	// most is for how long nothing may be granted, reported and judged only in the full
	// form; 0 where that is not promised.
	most  time.Duration
	rest  time.Duration // what is in doubt longer than usual
	short bool          // it is played in the short form too
}

var faults = []fault{
	{name: "kill -9 of the leader", short: true, most: 300 * time.Millisecond, do: func(w *world) time.Time {
		m := w.leader()
		at := time.Now()
		w.kill(m)
		w.served(at.Add(time.Millisecond))
		w.start(m)
		return at
	}},
	{name: "SIGTERM of the leader", most: 50 * time.Millisecond, do: func(w *world) time.Time {
		m := w.leader()
		at := time.Now()
		w.signal(m.process.Process, syscall.SIGTERM)
		require.Zero(w.t, w.h.Wait(m.process.Process))
		w.served(time.Now())
		w.start(m)
		return at
	}},
	{name: "SIGSTOP of the leader, past a takeover", most: seatTTL + 200*time.Millisecond, do: func(w *world) time.Time {
		m := w.leader()
		before := m.deposed()
		at := time.Now()
		w.signal(m.process.Process, syscall.SIGSTOP)
		w.h.Until("a takeover", func() error {
			if w.leader() == m {
				return fmt.Errorf("%s has the seat", m.name)
			}
			return nil
		})
		w.served(time.Now())
		wait(w, 5*time.Second)
		w.signal(m.process.Process, syscall.SIGCONT)
		w.h.Until("the woken leader's writes to be refused", func() error {
			if m.deposed() == before {
				return fmt.Errorf("%s has not noticed", m.name)
			}
			return nil
		})
		return at
	}},
	{name: "the leader cut off from Redis", do: func(w *world) time.Time {
		m := w.leader()
		at := time.Now()
		m.redis.Cut()
		w.h.Until("a takeover", func() error {
			if w.leader() == m {
				return fmt.Errorf("%s has the seat", m.name)
			}
			return nil
		})
		w.served(time.Now())
		m.redis.Mend()
		return at
	}},
	{name: "the leader cut off from NATS", do: func(w *world) time.Time {
		m := w.leader()
		at := time.Now()
		m.nats.Cut()
		w.h.Until("a takeover", func() error {
			if w.leader() == m {
				return fmt.Errorf("%s has the seat", m.name)
			}
			return nil
		})
		w.served(time.Now())
		m.nats.Mend()
		return at
	}},
	{name: "Redis killed, and started empty", short: true, do: func(w *world) time.Time {
		at := time.Now()
		w.redis.Kill()
		w.redis.Start()
		w.served(time.Now())
		return at
	}},
	{name: "Redis killed and started empty, and the leader killed", rest: 12 * time.Second, do: func(w *world) time.Time {
		m := w.leader()
		at := time.Now()
		w.redis.Kill()
		w.kill(m)
		w.redis.Start()
		w.served(time.Now())
		w.start(m)
		return at
	}},
	{name: "Redis in a black hole", do: func(w *world) time.Time {
		at := time.Now()
		for _, m := range w.members {
			m.redis.Swallow()
		}
		wait(w, 1500*time.Millisecond)
		for _, m := range w.members {
			m.redis.Mend()
		}
		w.served(time.Now())
		return at
	}},
	{name: "kill -9 of a worker", do: func(w *world) time.Time {
		k := w.startWorker()
		w.hasSpent(k)
		at := time.Now()
		require.NoError(w.t, k.process.Kill())
		w.served(at)
		return at
	}},
	{name: "SIGSTOP of a worker, past its leases", do: func(w *world) time.Time {
		k := w.startWorker()
		w.hasSpent(k)
		at := time.Now()
		w.signal(k.process, syscall.SIGSTOP)
		wait(w, 12*time.Second)
		w.signal(k.process, syscall.SIGCONT)
		w.served(time.Now())
		w.h.Stop(k.process)
		return at
	}},
}

// wait lets time pass in which something is as it is.
func wait(w *world, d time.Duration) {
	at := time.Now()
	w.h.Until("time to pass", func() error {
		if time.Since(at) < d {
			return fmt.Errorf("%v have passed", time.Since(at))
		}
		return nil
	})
}

func (w *world) hasSpent(k *worker) {
	w.t.Helper()
	w.h.Until("spends of a worker", func() error {
		spends, err := oracle.ReadFiles(k.log)
		if len(spends) == 0 {
			return cmp.Or(err, fmt.Errorf("there are none"))
		}
		return nil
	})
}

var proof = os.Getenv("RATION_PROOF") != ""

// calm is for how long nothing fails between two faults, two periods of the longest rule
// and what it takes to get going.
const calm = 8 * time.Second

// TestNoFailureBreaksTheContract plays each fault several times. No call may break the
// contract by the instant of its release; where nothing fails the contract is used.
func TestNoFailureBreaksTheContract(t *testing.T) {
	rounds, _ := full()
	play(t, "0s", rounds)
}

// TestNoFailureBreaksTheContractAtArrival is the same with a guard, and for the instants
// at which calls arrive, but for those that came later than the guard allows.
func TestNoFailureBreaksTheContractAtArrival(t *testing.T) {
	if !proof {
		t.Skip("the full form only: RATION_PROOF=1")
	}
	play(t, "60ms", 1)
}

// full says that every fault is played, and how often: 10 times in the proof, or as
// RATION_ROUNDS says. Else two are, once, to see that they can be.
func full() (rounds int, all bool) {
	if n, err := strconv.Atoi(os.Getenv("RATION_ROUNDS")); err == nil {
		return n, true
	}
	if proof {
		return 10, true
	}
	return 1, false
}

func play(t *testing.T, guard string, rounds int) {
	w := newWorld(t, guard)
	w.leader()
	w.load, w.probe = startLoad(w, 8, 6), startProbe(w)
	w.served(time.Now())
	only := regexp.MustCompile(os.Getenv("RATION_FAULT"))
	_, all := full()
	calm := calm
	if !all {
		calm = 4 * time.Second // one period to judge use by
	}
	gaps := map[string][]time.Duration{}
	var use []float64
	for round := range rounds {
		for _, f := range faults {
			if !only.MatchString(f.name) || !all && !f.short {
				continue
			}
			began := time.Now()
			wait(w, calm)
			at := f.do(w)
			well := time.Now()
			before := w.probe.gap(at.Add(-time.Second), at)
			gap := max(0, w.probe.gap(at, well)-before)
			if u, err := oracle.Use(w.spends(), oracle.Schedule{Rules: rules, Hold: hold}, began.UnixNano(), began.Add(calm).UnixNano(), 3*time.Second); guard == "0s" && all {
				require.NoError(t, err)
				use = append(use, u)
			}
			gaps[f.name] = append(gaps[f.name], gap)
			t.Logf("round %d, at %s, %s: %v without a grant (longest before %v), use before %.3f", round+1, at.Format("15:04:05.000"), f.name, gap.Round(time.Millisecond), before.Round(time.Millisecond), last(use))
			wait(w, f.rest)
			broken := oracle.Violations(w.spends(), rules)
			require.Zero(t, len(broken), "on sent, after %s: %v", f.name, broken[:min(len(broken), 3)])
		}
	}
	report(w, guard, gaps, use)
}

func last(use []float64) float64 {
	if len(use) == 0 {
		return 0
	}
	return use[len(use)-1]
}

func report(w *world, guard string, gaps map[string][]time.Duration, use []float64) {
	t := w.t
	spends := w.spends()
	require.Empty(t, oracle.Violations(spends, rules), "on sent")
	for _, f := range faults {
		all := gaps[f.name]
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		t.Logf("%s: median %v, worst %v without a grant, of %d", f.name, all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), len(all))
		if proof && f.most > 0 {
			require.LessOrEqual(t, float64(all[len(all)-1])/float64(seatTTL), float64(f.most)/float64(seatTTL), "of the seat's TTL, %s", f.name)
		}
	}
	deposed := 0
	for _, m := range w.members {
		deposed += m.deposed()
	}
	t.Logf("%d calls, %d cut, refusals %v; woken and cut-off leaders found their writes refused %d times", len(spends), w.load.cut, w.load.errs, deposed)
	for _, r := range rules {
		t.Logf("%s has bound %d times", r, oracle.Binds(r, spends))
	}
	if len(use) > 0 {
		sum := 0.0
		for _, u := range use {
			sum += u
		}
		t.Logf("use %.4f where nothing failed", sum/float64(len(use)))
		if proof {
			require.GreaterOrEqual(t, sum/float64(len(use)), 0.95)
		}
	}
	if guard != "0s" {
		d, err := time.ParseDuration(guard)
		require.NoError(t, err)
		arrivals, late := w.load.upstream.arrivals(d)
		t.Logf("%d calls arrived within the guard, %d later", len(arrivals), late)
		require.Empty(t, oracle.Violations(arrivals, rules), "at arrival")
	}
}
