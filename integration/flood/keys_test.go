package flood_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// noon is the ledger time at which the floods begin, so that no day ends in them.
const noon = algo.Instant(1_800_014_400_000_000_000)

// site is a ledger that nobody mirrors, in a time of its own: all that a coordinator
// in memory keeps of keys.
type site struct {
	t      testing.TB
	ledger *lease.Ledger
	now    algo.Instant
}

func newSite(t testing.TB, policy string, cfg lease.Config) *site {
	t.Helper()
	p, err := lease.ParsePolicy("flood.yaml", []byte(policy))
	require.NoError(t, err)
	cfg.Unmirrored = true
	return &site{t: t, ledger: lease.NewLedger(p, cfg), now: noon}
}

// turn does what a leader does in one.
func (s *site) turn(in ...lease.Message) *lease.Turn {
	s.t.Helper()
	for i := range in {
		in[i].Ticket, in[i].Arrived = lease.Ticket(i), s.now
	}
	return s.ledger.Turn(s.now, in)
}

// pass lets time pass, with a turn whenever the ledger wants one.
func (s *site) pass(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		next, ok := s.ledger.Next()
		if !ok || end.Before(next) {
			next = end
		}
		s.now = max(next, s.now+1)
		s.turn()
	}
}

// rest lets d pass in a few steps, and then the sweeps of two minutes.
func (s *site) rest(d time.Duration) {
	s.now = s.now.Add(d)
	s.pass(2 * time.Minute)
}

// touch lets as many holders take and spend one token of each key.
func (s *site) touch(key func(int) lease.Key, from, to, holders int) {
	s.t.Helper()
	const each = 1000
	for ; from < to; from += each {
		var asks, tells []lease.Message
		for i := from; i < min(from+each, to); i++ {
			id := lease.ID{Holder: lease.Holder{Name: fmt.Sprintf("w%d", i%holders), Incarnation: 1}, Seq: uint64(i)}
			keys := []lease.Key{key(i)}
			one := lease.Amount{Tokens: 1}
			asks = append(asks, lease.Message{Request: &lease.Request{ID: id, Keys: keys, Want: one, Need: one, Sent: s.now.Sub(noon)}})
			tells = append(tells, lease.Message{Report: &lease.Report{Holder: id.Holder, Sent: s.now.Sub(noon),
				Counts: []lease.Count{{ID: id, Keys: keys, Points: []lease.Point{{Count: 1}}}}}})
		}
		for _, a := range s.turn(asks...).Answers {
			require.Equal(s.t, lease.Granted, a.Answer.Outcome, "%+v", a.Answer.Refusal)
		}
		s.now = s.now.Add(time.Millisecond)
		s.turn(tells...)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestKeysTouchedOnceAreSmallAndGivenBack(t *testing.T) {
	n := many(100_000, 1_000_000)
	for _, c := range []struct {
		rules   string
		longest time.Duration
	}{
		{"10/1s, 500/1m, 10000/1d fixed", 24 * time.Hour},
		{"10/1s, 500/1m, 10000/1d", 24*time.Hour + time.Minute},
	} {
		t.Run(c.rules, func(t *testing.T) {
			before := heap()
			s := newSite(t, fmt.Sprintf(`limits: [{key: "t/{k}", rules: [%s]}]`, c.rules), lease.DefaultConfig())
			key := func(i int) lease.Key { return lease.Key(fmt.Sprintf("t/%08d", i)) }
			s.touch(key, 0, n, 100)
			touched := heap() - before
			s.pass(2*time.Minute + 10*time.Second)
			charged := heap() - before
			live := s.ledger.Summary(s.now).Live
			s.rest(c.longest)
			rest := heap() - before
			t.Logf("%d keys of %s: %d B each just after, with their ids; %d B each, %d live, two minutes later; %d B in all at rest",
				n, c.rules, touched/int64(n), charged/int64(n), live, rest)
			require.Equal(t, n, live, "none leaves while it is charged")
			require.LessOrEqual(t, charged/int64(n), int64(400), "bytes a key")
			require.LessOrEqual(t, touched/int64(n), int64(400+64), "bytes a key, and 64 for an id that is over")
			require.Zero(t, s.ledger.Summary(s.now).Live, "all leave")
			require.Less(t, rest, int64(2<<20), "bytes at rest")
			runtime.KeepAlive(s)
		})
	}
}
