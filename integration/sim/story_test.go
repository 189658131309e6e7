package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/oracle"
	"ration/lease"
)

// story is a world in which only that goes wrong which a test tells.
type story struct {
	*World
	t     *testing.T
	site  *site
	fleet []*holder
	rules []oracle.Rule
}

func tell(t *testing.T, seed uint64, c Contract, holders int, keys ...lease.Key) *story {
	t.Helper()
	w := newWorld(seed)
	w.scripted = true
	if c.From != 0 {
		w.origin = c.From
	}
	policy, err := lease.ParsePolicy("story", []byte(c.policy()))
	require.NoError(t, err)
	s := &story{World: w, t: t, site: newSite(w, policy, c), rules: oracle.MustRules(c.Rules)}
	w.calls = newCalls(w, c, keys)
	w.calls.guard, w.calls.stopped = 0, true
	for i := range holders {
		h := newHolder(w, fmt.Sprintf("w%d", i), "", s.site, 0, keys)
		h.node = i % 2
		s.fleet = append(s.fleet, h)
	}
	s.pass(time.Second)
	require.NotNil(t, s.site.leader())
	return s
}

func (s *story) pass(d time.Duration) { s.run(s.now + d) }

// busy lets all callers of the fleet ask again and again.
func (s *story) busy(perKey int) {
	s.calls.stopped, s.calls.saturate, s.calls.perKey = false, true, perKey
	for _, h := range s.fleet {
		s.calls.start(h)
	}
}

// try lets callers of a holder make so many calls, all at once, and gives how many are
// made within their patience.
func (s *story) try(h *holder, key lease.Key, n int) int {
	const patience = 2 * time.Second
	before := len(s.spends)
	for range n {
		x := &caller{holder: h, life: h.life, key: key, spend: -1}
		x.call = h.pools[key].Ask(h.elapsed(), 1, s.calls.slots[key], h.elapsed()+patience)
		s.calls.pending[x.call] = x
		s.calls.decide(x)
		h.drive(key)
	}
	s.pass(patience + 500*time.Millisecond)
	return len(s.spends) - before
}

func (s *story) standby() *lessor {
	for _, l := range s.site.all {
		if !l.serving {
			return l
		}
	}
	return nil
}

// replace stops a coordinator as SIGTERM does, and starts another one in its place.
func (s *story) replace(l *lessor) {
	if l.serving {
		l.resign()
		s.pass(5 * time.Millisecond)
	}
	l.crash(50 * time.Millisecond)
}

func (s *story) keepsTheContract() {
	s.t.Helper()
	for _, h := range s.fleet[0].keys {
		require.Empty(s.t, oracle.Violations(oracle.Under(s.spends, string(h)), s.rules))
	}
}

// takeOver kills the leader and waits until another one serves, which has nothing in
// memory yet.
func (s *story) takeOver() {
	s.site.leader().crash(time.Hour)
	for s.site.leader() == nil {
		s.pass(100 * time.Microsecond)
	}
}

// revive starts the coordinator again that was killed.
func (s *story) revive() {
	for _, l := range s.site.all {
		if !l.serving {
			l.crash(time.Millisecond)
		}
	}
	s.pass(30 * time.Millisecond)
}
