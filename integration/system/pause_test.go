package system

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/integration/oracle"
	"ration/lease"
)

// stopFor stops a process for as long, and wakes it.
func stopFor(t *testing.T, h *harness.Test, p *harness.Process, d time.Duration) {
	t.Helper()
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	h.Until("the end of the pause", passed(time.Now().Add(d)))
	require.NoError(t, p.Signal(syscall.SIGCONT))
}

// slotTTL is what sites that are quick have.
func slotTTL() time.Duration {
	c := lease.DefaultConfig()
	quick(&c)
	return c.SlotTTL
}

// TestPausedWorkerLosesItsSlots: a worker that is stopped for two TTLs finds on
// waking that its calls have lost their slots, which others have had meanwhile.
func TestPausedWorkerLosesItsSlots(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteConfig{policy: deathPolicy, lease: quick})
	p := startHolder(t, s.h, s.url, "paused", "--costs", deathCosts)
	deathHeld(s)
	log := filepath.Join(t.TempDir(), "log")
	heir := s.worker("heir", "load", "", "--key", "k", "-j", "4", "--count", "14", "--log", log)
	s.until("the heir to stand in line", func(st lease.Status) bool { return st.Waiting > 0 })
	stopFor(t, s.h, p, 2*slotTTL())
	require.Zero(t, s.h.Wait(heir), heir.Output())
	for _, cost := range []string{"lost 10", "lost 20"} {
		s.h.Line(p, cost)
	}
	require.Zero(t, s.h.Stop(p), p.Output())
	require.Equal(t, 4, strings.Count(p.Stdout(), "lost "), p.Stdout())

	spends := s.h.Logs(log)
	require.GreaterOrEqual(t, spends[0].At, s.notes.promised(t, "paused").UnixNano())
	require.EqualValues(t, 64, costs(append(spends, spendsOf(t, p)...)))
	require.Zero(t, s.status().Held.Slots)
	t.Logf("stopped for %v: 4 of 4 calls saw their context end", 2*slotTTL())
}

// TestPausedWorkersCommandsAreKilled: the commands of a worker that is stopped go
// on; when it wakes they are killed and count as failed.
func TestPausedWorkersCommandsAreKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteConfig{policy: deathPolicy, lease: quick})
	started, log := filepath.Join(t.TempDir(), "started"), filepath.Join(t.TempDir(), "log")
	p := s.worker("paused", "exec", "a\nb\nc\nd\n", "--key", "k", "-j", "4", "--log", log, "--",
		"sh", "-c", `echo $$ >>"$0"; sleep 600; true`, started)
	hasLines(s.h, started, 4)
	stopFor(t, s.h, p, 2*slotTTL())
	require.Equal(t, 1, s.h.Wait(p), p.Output())
	require.NoError(t, gone(started))
	require.Equal(t, 4, strings.Count(p.Stderr(), "was stopped: the lease was lost"), p.Output())
	require.Contains(t, p.Stderr(), "4 failed")
	for _, e := range entries(t, log) {
		require.NotZero(t, *e.Exit)
	}
	require.Zero(t, s.status().Held.Slots)
}

// TestPausedWorkerSpendsNothingOfItsOldLease: two workers want all of a limit,
// and one of them is stopped again and again for two TTLs. What it held is
// granted to the other meanwhile, and never spent by itself on waking.
func TestPausedWorkerSpendsNothingOfItsOldLease(t *testing.T) {
	t.Parallel()
	const contract = "40/500ms, 100/2s"
	ttl := scaled(500*time.Millisecond, 5*time.Second)
	s := newSite(t, siteConfig{
		policy: "limits:\n  - key: k\n    rules: [" + contract + "]\n",
		lease:  func(c *lease.Config) { c.TokenTTL = ttl },
	})
	logs := []string{filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "log")}
	var workers []*harness.Process
	for i, name := range []string{"paused", "steady"} {
		workers = append(workers, s.worker(name, "load", "", "--key", "k", "-j", "16", "--log", logs[i]))
	}
	pauses := 0
	for pauses < 20 && (pauses < 4 || s.status().Stats.Expired == 0) {
		pauses++
		hasLines(s.h, logs[0], lines(logs[0])+1)
		stopFor(t, s.h, workers[0], 2*ttl)
	}
	hasLines(s.h, logs[0], lines(logs[0])+1)
	for _, w := range workers {
		require.Zero(t, s.h.Stop(w), w.Output())
	}
	spends := s.h.Logs(logs...)
	require.Empty(t, oracle.Violations(spends, oracle.MustRules(contract)))
	s.h.Until("what the former lives of the stopped one held to have expired", func() error {
		if held := s.status().Held; held.Tokens > 0 {
			return fmt.Errorf("%d tokens are held", held.Tokens)
		}
		return nil
	})
	stats := s.status().Stats
	require.Equal(t, stats.Granted, stats.Spent+stats.Returned+stats.Expired)
	require.Positive(t, stats.Expired, "it was never stopped while it held something")
	t.Logf("%d pauses of %v, %d tokens expired in them, %d spends, 0 violations", pauses, 2*ttl, stats.Expired, len(spends))
}

// TestLongCallKeepsItsSlot: a call three TTLs long keeps its slot while another
// waits for it. In virtual time the same is in TestCallOfThreeTTLsKeepsItsSlot.
func TestLongCallKeepsItsSlot(t *testing.T) {
	if !full() {
		t.Skip("it takes three default TTLs; -full plays it")
	}
	t.Parallel()
	s := newSite(t, siteConfig{policy: deathPolicy})
	p := startHolder(t, s.h, s.url, "long", "--costs", deathCosts)
	deathHeld(s)
	log := filepath.Join(t.TempDir(), "log")
	other := s.worker("other", "load", "", "--key", "k", "--count", "4", "--log", log)
	s.h.Until("three TTLs", passed(time.Now().Add(3*slotTTL())))
	require.Zero(t, lines(log))
	require.Equal(t, int64(4), s.status().Held.Slots)
	require.Zero(t, s.h.Stop(p), p.Output())
	require.NotContains(t, p.Stdout(), "lost")
	require.Zero(t, s.h.Wait(other), other.Output())
	require.Zero(t, s.status().Stats.SlotsExpired)
	t.Logf("4 calls of %v kept their slots of %v", 3*slotTTL(), slotTTL())
}
