package nginx

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// hold is how long a call at /conn is under way, behind nginx.
const hold = 50 * time.Millisecond

// slow answers after a while.
func slow(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(hold):
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	}
}

// seen is what nginx made of some calls.
type seen struct {
	calls   int
	refused int
	took    time.Duration    // from the first spend to the last
	closest time.Duration    // the least time between two spends
	late    [2]time.Duration // from a spend to its arrival: least, most
	shares  map[string]int   // calls of each worker
}

func (s seen) String() string {
	return fmt.Sprintf("%d of %d calls refused in %v; spends no closer than %v; they arrived %v to %v after their spend, which a guard of %v covers; %v",
		s.refused, s.calls, s.took.Round(time.Millisecond), s.closest.Round(10*time.Microsecond),
		s.late[0].Round(100*time.Microsecond), s.late[1].Round(100*time.Microsecond), (s.late[1] - s.late[0]).Round(100*time.Microsecond), s.shares)
}

// judge compares what the callers were told with nginx's log: each call arrived
// once, over a warm connection, and was served or refused.
func (s *server) judge(location string, made []call) seen {
	s.t.Helper()
	entries, err := s.logged(location, len(made))
	require.NoError(s.t, err)
	require.Len(s.t, entries, len(made), "nginx has seen more calls than were made: a client has sent one again")
	arrived := map[string]entry{}
	for _, e := range entries {
		arrived[e.id] = e
	}
	slices.SortFunc(made, func(a, b call) int { return a.sent.Compare(b.sent) })
	first, last := made[0].sent, made[len(made)-1].sent
	found := seen{calls: len(made), took: last.Sub(first), closest: time.Hour, late: [2]time.Duration{time.Hour, -time.Hour}, shares: map[string]int{}}
	for i, c := range made {
		e, ok := arrived[c.id]
		require.True(s.t, ok, "nginx has not seen %s", c.id)
		require.Equal(s.t, e.status, c.status, "what nginx says of %s, and what its caller was told", c.id)
		require.True(s.t, c.warm, "%s went over a new connection", c.id)
		if c.status == http.StatusTooManyRequests {
			found.refused++
		} else {
			require.Less(s.t, c.status, 300, "the answer to %s; nginx says:\n%s", c.id, s.errors())
		}
		if i > 0 {
			found.closest = min(found.closest, c.sent.Sub(made[i-1].sent))
		}
		late := e.arrived.Sub(c.sent)
		found.late = [2]time.Duration{min(found.late[0], late), max(found.late[1], late)}
		found.shares[c.worker]++
	}
	return found
}

// fleetIsServed has a fleet that shares play, and gives what nginx made of it.
func fleetIsServed(t *testing.T, s *server, limit string, l length) seen {
	t.Helper()
	found := s.judge("/"+limit, play(t, sharing(t, s, "nginx/"+limit), callers, s.url+"/"+limit, l.calls()))
	t.Log("the fleet:", found)
	require.Len(t, found.shares, workers, "each worker takes part")
	return found
}

// TestBurstIsNotRefused: `limit_req rate=10r/s burst=20 nodelay`.
func TestBurstIsNotRefused(t *testing.T) {
	t.Parallel()
	s := start(t, slow)
	found := fleetIsServed(t, s, "burst", length{little: 60, usual: 300, full: 300})
	require.Zero(t, found.refused, "%v\n%s", found, s.errors())
}

// TestCallsUnderWayAreNotRefused: `limit_conn 4`.
func TestCallsUnderWayAreNotRefused(t *testing.T) {
	t.Parallel()
	s := start(t, slow)
	found := fleetIsServed(t, s, "conn", length{little: 60, usual: 300, full: 3000})
	require.Zero(t, found.refused, "%v\n%s", found, s.errors())
}

// TestEvenCallsAreRefusedNoMoreThanALoop: `limit_req rate=10r/s` refuses what
// comes sooner than 100 ms after the call before. A lone loop that calls each
// 100 ms is refused where the machine makes one call later than the next; the
// fleet, which keeps a guard, is refused no more than that. What a loop that keeps
// the guard too would get is shown, and not judged.
func TestEvenCallsAreRefusedNoMoreThanALoop(t *testing.T) {
	t.Parallel()
	s := start(t, slow)
	l := length{little: 40, usual: 60, full: 300}
	const gap = 100 * time.Millisecond
	guarded := gap + guardOf(t, "nginx/even")
	loop, spaced := newPace(t, s, "loop", gap), newPace(t, s, "spaced", guarded)
	var loops sync.WaitGroup
	loops.Go(func() { loop.run(l.calls()) })
	loops.Go(func() { spaced.run(l.calls()) })
	defer loops.Wait()
	found := fleetIsServed(t, s, "even", l)
	loops.Wait()
	bound := loop.judged()
	t.Log("a loop each 100 ms:", bound)
	t.Log("a loop as slow as the fleet:", spaced.judged())
	require.GreaterOrEqual(t, found.closest, guarded)
	require.LessOrEqual(t, found.refused, bound.refused, "%v\n%s", found, s.errors())
}

// guardOf is the guard that the page gives a limit.
func guardOf(t *testing.T, key string) time.Duration {
	t.Helper()
	p := policy(t)
	at := slices.IndexFunc(p.Limits, func(l lease.Limit) bool { return l.Pattern.String() == key })
	require.GreaterOrEqual(t, at, 0, "docs/rules.md has no limit %s", key)
	require.GreaterOrEqual(t, p.Limits[at].Guard, 50*time.Millisecond)
	return p.Limits[at].Guard
}
