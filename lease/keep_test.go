package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// rival asks again and again for the same amount, spends the tokens at once, and gives
// a slot back after a while.
type rival struct {
	request *lease.Request // that waits, or was granted last
	lease   *lease.Request // whose slot it has
	since   algo.Instant   // from when on
	uses    time.Duration  // a slot; 0 for ever
	granted int
}

func rivalFor(name string, key lease.Key, need lease.Amount, uses time.Duration) *rival {
	r := ask(name, 1, start, time.Hour, key)
	r.Need, r.Want = need, need
	return &rival{request: r, uses: uses}
}

// says is what the rival says now: that it gives its slot back, or still has it, and
// what it asks for.
func (r *rival) says(now algo.Instant) (in []any) {
	if r.lease != nil {
		report := &lease.Report{Holder: r.lease.ID.Holder, Sent: now.Sub(start), Heartbeat: true, Counts: []lease.Count{
			{ID: r.lease.ID, Keys: r.lease.Keys, Points: []lease.Point{{Count: r.lease.Need.Tokens}}},
		}}
		if r.uses > 0 && now.Sub(r.since) >= r.uses {
			report.Counts[0].Freed, r.lease = 1, nil
		}
		in = append(in, report)
	}
	if r.lease == nil || r.uses == 0 {
		again := *r.request
		again.Sent = now.Sub(start)
		in = append(in, &again)
	}
	return in
}

// hears says whether it is the rival that was granted. It spends at once.
func (r *rival) hears(t *testing.T, l *lease.Ledger, now algo.Instant, a lease.Answer) bool {
	if a.Outcome != lease.Granted || a.ID != r.request.ID {
		return false
	}
	r.granted++
	was, next := r.request, *r.request
	next.ID.Seq++
	if r.request = &next; a.Granted.Slots > 0 {
		r.lease, r.since = was, now
		if r.uses == 0 { // it needs no other
			next.Need.Slots, next.Want.Slots = 0, 0
		}
	}
	turn(t, l, now, &lease.Report{Holder: was.ID.Holder, Sent: now.Sub(start), Counts: []lease.Count{
		{ID: was.ID, Keys: was.Keys, Points: []lease.Point{{Count: was.Need.Tokens}}},
	}})
	return true
}

// overtake lets rivals go on until the large one, which comes after a minute, is granted,
// and says how long it waits.
func overtake(t *testing.T, l *lease.Ledger, large *rival, rivals ...*rival) time.Duration {
	t.Helper()
	comes := start.Add(time.Minute)
	for now := start; now.Sub(comes) < 5*time.Minute; now = now.Add(50 * time.Millisecond) {
		if now.Before(comes) && now.Sub(start)%(2*time.Second) != 0 {
			continue // until then they take one at a time, so that it comes back so
		}
		for _, r := range rivals {
			for _, a := range turn(t, l, now, r.says(now)...).Answers {
				r.hears(t, l, now, a.Answer)
			}
		}
		if now.Before(comes) {
			continue
		}
		for _, a := range turn(t, l, now, large.says(now)...).Answers {
			if a.Answer.ID == large.request.ID && a.Answer.Outcome == lease.Granted {
				return now.Sub(comes)
			}
		}
	}
	require.Fail(t, "it is overtaken for ever")
	return 0
}

// What a large request needs is there at neither of two prefixes, and who spends one
// token after another takes each that comes.
func TestLargeRequestIsNotOvertakenAtALongAndAShortRule(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "{a}", rules: [30/1m]}, {key: "{a}/{b}", rules: [10/10s]}]`), lease.DefaultConfig())
	single := rivalFor("single", "a/b", lease.Amount{Tokens: 1}, 0)
	waited := overtake(t, l, rivalFor("large", "a/b", lease.Amount{Tokens: 10}, 0), single)
	require.Less(t, waited, 75*time.Second)
	require.Greater(t, single.granted, 20)
}

// A large request needs a slot too, of which one holder keeps one for itself and spends
// single tokens, and another takes the second again and again, and no tokens.
func TestLargeRequestWithASlotIsNotOvertaken(t *testing.T) {
	for rate, most := range map[string]time.Duration{"10/1s": 10 * time.Second, "20/1m": 75 * time.Second} {
		l := lease.NewLedger(policy(t, `limits: [{key: a, rules: [`+rate+`, 2 concurrent]}]`), lease.DefaultConfig())
		single := rivalFor("single", "a", lease.Amount{Tokens: 1, Slots: 1}, 0)
		slots := rivalFor("slots", "a", lease.Amount{Slots: 1}, 100*time.Millisecond)
		waited := overtake(t, l, rivalFor("large", "a", lease.Amount{Tokens: 10, Slots: 1}, 0), single, slots)
		require.Less(t, waited, most, rate)
		require.Greater(t, slots.granted, 20, rate)
	}
}

// Somebody waits for tomorrow at the head of a line in which a large request stands
// behind; that is not overtaken for ever all the same.
func TestLargeRequestIsNotOvertakenBehindOneThatWaitsForLong(t *testing.T) {
	l := lease.NewLedger(policy(t, `limits: [{key: "{a}", rules: [30/1m]}, {key: "{a}/{b}", rules: [10/10s]}, {key: "{a}/day", rules: [1/1d]}]`), lease.DefaultConfig())
	tomorrow := rivalFor("tomorrow", "a/day", lease.Amount{Tokens: 1}, 0)
	tomorrow.request.Patience = 48 * time.Hour
	single := rivalFor("single", "a/b", lease.Amount{Tokens: 1}, 0)
	waited := overtake(t, l, rivalFor("large", "a/b", lease.Amount{Tokens: 10}, 0), tomorrow, single)
	require.Less(t, waited, 75*time.Second)
	require.Equal(t, 1, tomorrow.granted)
}
