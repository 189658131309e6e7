package system

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/integration/oracle"
	"ration/lease"
)

// A worker that holds 50 tokens and 4 slots leaves 14 tokens and no slot to the
// others.
const (
	deathPolicy = "limits:\n  - key: k\n    rules: [64/1h, 4 concurrent]\n"
	deathCosts  = "20,10,10,10"
)

// deathHeld waits until a holder of deathCosts has no more than those: what its
// pool asked for besides has gone back. What its calls have spent may have been
// reported.
func deathHeld(s *site) {
	s.t.Helper()
	s.until("50 tokens and 4 slots to be taken", func(st lease.Status) bool {
		return st.Held.Slots == 4 && window(s.t, st, "k", "64/1h").Free == 14
	})
}

// TestKilledWorkersSlotsComeBackAtItsLeasesEnd: no slot is granted before the
// lease's end, and all are after it. What the worker held counts as spent, and no
// rate rule is exceeded. One victim has its calls under way; the other holds what
// it was granted, and has spent nothing of it.
func TestKilledWorkersSlotsComeBackAtItsLeasesEnd(t *testing.T) {
	for _, kind := range []string{"holder", "hoarder"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, siteConfig{policy: deathPolicy, lease: quick})
			victim := startHolder(t, s.h, s.url, "victim", "--costs", deathCosts, "--hoard="+strconv.FormatBool(kind == "hoarder"))
			deathHeld(s)
			log := filepath.Join(t.TempDir(), "log")
			heir := s.worker("heir", "load", "", "--key", "k", "-j", "4", "--count", "10", "--log", log)
			s.until("the heir to stand in line", func(st lease.Status) bool { return st.Waiting > 0 })
			require.NoError(t, victim.Kill())
			require.Zero(t, s.h.Wait(heir), heir.Output())

			end := s.notes.promised(t, "victim")
			spends := s.h.Logs(log)
			require.Len(t, spends, 10)
			require.GreaterOrEqual(t, spends[0].At, end.UnixNano(), "a slot was granted before the lease's end")
			stats := s.status().Stats
			require.EqualValues(t, 4, stats.SlotsExpired)
			if kind == "hoarder" {
				require.EqualValues(t, 50, stats.Expired, "what a dead worker held counts as spent")
			}
			rest := filepath.Join(t.TempDir(), "log")
			atOnce := allAtOnce(s, 4, rest)
			require.Zero(t, s.h.Wait(atOnce), atOnce.Output())
			more := s.worker("more", "load", "", "--key", "k", "--count", "1", "--wait", "1s")
			require.Equal(t, 4, s.h.Wait(more), "all 64 are spent: %s", more.Output())
			all := append(s.h.Logs(log, rest), spendsOf(t, victim)...)
			if kind == "holder" {
				require.EqualValues(t, 64, costs(all))
			}
			require.Empty(t, oracle.Violations(all, oracle.MustRules("64/1h")))
			t.Logf("killed with 50 tokens and 4 slots: the first slot was granted %v after the lease's end, all 4 after it, and 14 of 64 tokens",
				time.Duration(spends[0].At-end.UnixNano()).Round(time.Millisecond))
		})
	}
}

// TestStoppedWorkerGivesAllBackAtOnce: at SIGTERM what had not left comes back
// before the process has ended, and nothing is left to expire.
func TestStoppedWorkerGivesAllBackAtOnce(t *testing.T) {
	t.Parallel()
	// A call that is cancelled late has been reported as spent, and its tokens stay
	// so. That is right too, but shows less.
	for try, all := 1, false; !all; try++ {
		require.LessOrEqual(t, try, 20, "no worker was fast enough to cancel what had not left")
		s := newSite(t, siteConfig{policy: deathPolicy})
		unsent := startHolder(t, s.h, s.url, "unsent", "--costs", deathCosts, "--unsent")
		require.Equal(t, int64(4), s.status().Held.Slots)
		require.Zero(t, s.h.Stop(unsent), unsent.Output())
		status := s.status()
		require.Equal(t, lease.Amount{}, status.Held)
		require.Equal(t, status.Stats.Granted, status.Stats.Returned+status.Stats.Spent)
		require.Equal(t, status.Stats.SlotsGranted, status.Stats.SlotsFreed)
		require.Zero(t, status.Stats.SlotsExpired+status.Stats.Expired)
		all = status.Stats.Granted == status.Stats.Returned
	}

	// What had left is spent, and its slots are cut: with no guard they are free
	// at once. What the pool had besides is back.
	s := newSite(t, siteConfig{policy: deathPolicy})
	sent := startHolder(t, s.h, s.url, "sent", "--costs", deathCosts)
	require.Zero(t, s.h.Stop(sent), sent.Output())
	status := s.status()
	require.Equal(t, lease.Amount{}, status.Held)
	require.Equal(t, int64(14), window(t, status, "k", "64/1h").Free)
	require.Equal(t, int64(50), window(t, status, "k", "64/1h").Spent)
	require.Equal(t, int64(4), window(t, status, "k", "4 concurrent").Free)
	require.Zero(t, status.Stats.SlotsExpired+status.Stats.Expired)
	t.Log("stopped with 50 tokens and 4 slots: all free at its exit, nothing expired")
}

// TestCommandsDieWithTheirWorker: kill -9 leaves no command running, and the
// slots of those that ran are granted to nobody before their lease's end.
func TestCommandsDieWithTheirWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteConfig{policy: deathPolicy, lease: quick})
	started := filepath.Join(t.TempDir(), "started")
	victim := s.worker("victim", "exec", "a\nb\nc\nd\n", "--key", "k", "--cost", "12", "-j", "4", "--",
		"sh", "-c", `echo $$ >>"$0"; sleep 600; true`, started)
	hasLines(s.h, started, 4)
	s.until("what the pool asked for besides to be back", func(st lease.Status) bool { return window(t, st, "k", "64/1h").Free == 16 })
	log := filepath.Join(t.TempDir(), "log")
	heir := s.worker("heir", "load", "", "--key", "k", "--count", "4", "--log", log)
	s.until("the heir to stand in line", func(st lease.Status) bool { return st.Waiting > 0 })
	require.Error(t, gone(started))
	require.NoError(t, victim.Kill())
	s.h.Until("the commands' end", func() error { return gone(started) })
	require.Zero(t, s.h.Wait(heir), heir.Output())
	require.GreaterOrEqual(t, s.h.Logs(log)[0].At, s.notes.promised(t, "victim").UnixNano())
}

// TestKilledWorkerWithTheDefaults is the same with the coordinator's binary and
// its own TTLs, seen from outside only.
func TestKilledWorkerWithTheDefaults(t *testing.T) {
	if !full() {
		t.Skip("it waits for the default TTLs; -full plays it")
	}
	t.Parallel()
	s := realSite(t, deathPolicy)
	began := time.Now()
	victim := startHolder(t, s.h, s.NATS, "victim", "--costs", deathCosts)
	s.until(t, "50 tokens and 4 slots to be taken", func(d document) bool { return d.Held.Slots == 4 && d.free("64/1h") == 14 })
	log := filepath.Join(t.TempDir(), "log")
	heir := startWorker(s.h, s.NATS, "heir", "load", "", "--key", "k", "-j", "4", "--count", "14", "--log", log)
	s.until(t, "the heir to stand in line", func(d document) bool { return d.Waiting > 0 })
	require.NoError(t, victim.Kill())
	require.Zero(t, s.h.Wait(heir), heir.Output())
	spends := s.h.Logs(log)
	end := began.Add(lease.DefaultConfig().SlotTTL)
	require.GreaterOrEqual(t, spends[0].At, end.UnixNano(), "a slot was granted before the lease's end")
	require.EqualValues(t, 64, costs(append(spends, spendsOf(t, victim)...)))
}

// TestSecondSignalFreesSlotsAtOnce: the second signal kills the commands, and
// their slots are free when the worker has ended.
func TestSecondSignalFreesSlotsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteConfig{policy: deathPolicy})
	started := filepath.Join(t.TempDir(), "started")
	victim := s.worker("victim", "exec", "a\nb\nc\nd\n", "--key", "k", "-j", "4", "--",
		"sh", "-c", `echo $$ >>"$0"; sleep 600; true`, started)
	hasLines(s.h, started, 4)
	require.NoError(t, victim.Signal(syscall.SIGTERM))
	require.NoError(t, victim.Signal(syscall.SIGINT))
	s.h.Wait(victim)
	require.NoError(t, gone(started))
	status := s.status()
	require.Equal(t, int64(4), window(t, status, "k", "4 concurrent").Free)
	require.Zero(t, status.Stats.SlotsExpired)
}

// allAtOnce runs n commands each of which waits for all the others to have
// begun: they end only if n slots are free at once.
func allAtOnce(s *site, n int, log string) *harness.Process {
	s.t.Helper()
	began := filepath.Join(s.t.TempDir(), "began")
	return s.worker("at-once", "exec", strings.Repeat("x\n", n), "--key", "k", "-j", strconv.Itoa(n), "--log", log, "--",
		"sh", "-c", `echo x >>"$0"; until [ $(wc -l <"$0") -ge "$1" ]; do sleep 0.05; done`, began, strconv.Itoa(n))
}
