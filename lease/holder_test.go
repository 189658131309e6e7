package lease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// A coordinator stands still, or what is under way is kept somewhere. What a holder
// sent meanwhile is as old as it is, however long that was.
func TestRequestThatOutlivedAStandstillIsStale(t *testing.T) {
	for _, stood := range []time.Duration{20 * time.Second, 50 * time.Second, 70 * time.Second, 10 * time.Minute} {
		l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [10/1h]}]`), lease.DefaultConfig())
		turn(t, l, start, ask("a", 1, start, 0, "k"))
		late := ask("a", 2, start.Add(100*time.Millisecond), 2*time.Second, "k")
		more := ask("a", 3, start.Add(200*time.Millisecond), 2*time.Second, "k")
		got := turn(t, l, start.Add(stood), late, more)
		require.Empty(t, got.Answers, "stood still for %v", stood)
		require.Len(t, got.Dropped, 2)
		fresh := start.Add(stood + time.Second)
		granted(t, turn(t, l, fresh, ask("a", 4, fresh, 2*time.Second, "k")))
	}
}

// Whose clock runs apart as far as is trusted is never taken for late, however seldom
// it is heard.
func TestClockThatRunsApartMakesNobodyStale(t *testing.T) {
	for _, ppm := range []int64{-100, -50, 50, 100} {
		for _, every := range []time.Duration{20 * time.Second, 45 * time.Second, 59 * time.Second, 90 * time.Second, 20 * time.Minute} {
			l := lease.NewLedger(policy(t, `limits: [{key: k, rules: [1000000/1s]}]`), lease.DefaultConfig())
			for i := range uint64(300) {
				now := start.Add(time.Duration(i) * every)
				r := ask("a", i+1, now, 100*time.Millisecond, "k")
				r.Sent += r.Sent / 1_000_000 * time.Duration(ppm)
				granted(t, turn(t, l, now, r))
			}
		}
	}
}

// A tenant has no more than its part of all keys, also where the ledger forgets again
// and again that there is such a tenant.
func TestForgottenTenantHasNoMoreThanItsPartOfTheKeys(t *testing.T) {
	l := bounded(t, `limits: [{key: "{t}/{k}", rules: [1/30d]}]`, func(c *lease.Config) { c.Keys = 500 })
	now, n := start, 0
	for round := range 30 {
		for seq := range uint64(60) {
			n++
			key := lease.Key(fmt.Sprintf("one/%d", n))
			r := ask(fmt.Sprint("h", round), seq, now, 0, key)
			if got := turn(t, l, now, r).Answers[0].Answer; got.Outcome == lease.Granted {
				turn(t, l, now, spent(got, key))
			}
		}
		for range 200 {
			now = now.Add(time.Second)
			l.Turn(now, nil)
		}
		require.Zero(t, l.Status(now, "").Holders)
	}
	require.Equal(t, 450, l.Status(now, "").Live)
	granted(t, turn(t, l, now, ask("other", 1, now, 0, "other/k")))
}
