package redisbackend_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/coordinator"
	"ration/integration/harness"
	"ration/internal/mirrortest"
	"ration/lease"
)

// allKinds limits by all six kinds of rules, with guards, units, and numbers that no
// float has.
const allKinds = `limits:
  - {key: "{a}", rules: [3000/1s, 1000000/1d fixed tz=Asia/Kathmandu, 40 concurrent], guard: 5ms}
  - {key: "{a}/{b}", rules: [5000/2s bucket burst=400, 4000/1s counter, 999999999999999/1h unit=bytes, 1000000000000000/1h bucket unit=octets]}
  - {key: "{a}/{b}/{c}", rules: [500/1s pace, 300/3s fixed, 6 concurrent], guard: 1ms}
`

var loadKeys = []lease.Key{"t", "t/a", "t/b", "t/a/x", "t/a/{y}", "t/b/\xff*", "u/a/x", "u/a", "u"}

// load is holders that ask and report at random.
type load struct {
	leader func() *coordinator.Leader
	stop   chan struct{}
	done   sync.WaitGroup
	mu     sync.Mutex
	counts map[string]int
}

// startLoad begins one that goes on until it is ended.
func startLoad(t *testing.T, leader func() *coordinator.Leader) *load {
	n := &load{leader: leader, stop: make(chan struct{}), counts: map[string]int{}}
	for i := range uint64(6) {
		n.done.Go(func() {
			n.play(t, rand.New(rand.NewPCG(i, 1)), lease.Holder{Name: fmt.Sprintf("h %d", i), Incarnation: i<<60 + 7})
		})
	}
	t.Cleanup(n.end)
	return n
}

func (n *load) end() {
	n.mu.Lock()
	select {
	case <-n.stop:
	default:
		close(n.stop)
	}
	n.mu.Unlock()
	n.done.Wait()
}

func (n *load) note(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[what]++
}

func (n *load) count(what string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts[what]
}

// goesOn waits until so many more are granted.
func (n *load) goesOn(h *harness.Test, more int) {
	from := n.count("granted")
	h.Until("grants", func() error {
		if got := n.count("granted") - from; got < more {
			return fmt.Errorf("%d of %d", got, more)
		}
		return nil
	})
}

// play asks, cancels and reports until the load is ended; then it says goodbye to
// half of what it has, and is silent about the rest.
func (n *load) play(t *testing.T, random *rand.Rand, h lease.Holder) {
	began := time.Now()
	var has []lease.Count
	var granted []lease.Amount
	var givenUp []lease.GivenUp
	for seq := uint64(1); ; seq++ {
		select {
		case <-n.stop:
			return
		default:
		}
		r := anyRequest(random, h, seq)
		r.Sent = time.Since(began)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+random.Int64N(int64(30*time.Millisecond))))
		a, err := n.leader().Acquire(ctx, r)
		cancel()
		switch {
		case err == nil && a.Outcome == lease.Granted:
			n.note("granted")
			has, granted = append(has, lease.Count{ID: r.ID, Keys: r.Keys}), append(granted, a.Granted)
		case err != nil || a.Outcome == lease.Waiting:
			n.note("given up")
			givenUp = append(givenUp, lease.GivenUp{ID: r.ID, Keys: r.Keys})
		default:
			n.note("refused")
		}
		if random.IntN(3) == 0 && len(has)+len(givenUp) > 0 {
			if n.report(t, random, h, began, has, granted, givenUp) {
				givenUp = nil
			}
		}
		if most := 40; len(has) > most {
			has, granted = has[len(has)-most:], granted[len(granted)-most:]
		}
	}
}

func (n *load) report(t *testing.T, random *rand.Rand, h lease.Holder, began time.Time, has []lease.Count, granted []lease.Amount, givenUp []lease.GivenUp) bool {
	reports := map[string]*lease.Report{}
	of := func(k lease.Key) *lease.Report {
		r := reports[k.Tenant()]
		if r == nil {
			r = &lease.Report{Holder: h, Heartbeat: random.IntN(2) == 0}
			reports[k.Tenant()] = r
		}
		return r
	}
	for i := range has {
		c, g := &has[i], granted[i]
		spent := int64(0)
		if len(c.Points) > 0 {
			spent = c.Points[len(c.Points)-1].Count
		}
		switch random.IntN(6) {
		case 0, 1:
			p := lease.Point{Count: min(g.Tokens, spent+1), Age: time.Duration(random.Int64N(int64(20 * time.Millisecond)))}
			for _, u := range g.Units {
				p.Units = append(p.Units, lease.UnitAmount{Unit: u.Unit, N: 1 + u.N/2})
			}
			c.Points = []lease.Point{p}
		case 2:
			c.Returned, c.ReturnedUnits = g.Tokens, nil
			for _, u := range g.Units {
				c.ReturnedUnits = append(c.ReturnedUnits, lease.UnitAmount{Unit: u.Unit, N: max(1, u.N/3)})
			}
		case 3:
			c.Freed = g.Slots
		case 4:
			c.Cut = g.Slots
		default:
			continue
		}
		r := of(c.Keys[0])
		r.Counts = append(r.Counts, *c)
	}
	for _, g := range givenUp {
		r := of(g.Keys[0])
		r.GivenUp = append(r.GivenUp, g)
	}
	all := true
	for _, r := range reports {
		r.Sent = time.Since(began)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := n.leader().Report(ctx, *r)
		cancel()
		if errors.Is(err, lease.ErrBadRequest) {
			t.Errorf("report: %v", err)
		}
		all = all && err == nil
	}
	return all
}

func anyRequest(random *rand.Rand, h lease.Holder, seq uint64) lease.Request {
	r := lease.Request{ID: lease.ID{Holder: h, Seq: seq}, Keys: []lease.Key{loadKeys[random.IntN(len(loadKeys))]}}
	if other := loadKeys[random.IntN(len(loadKeys))]; random.IntN(3) == 0 && other.Tenant() == r.Keys[0].Tenant() && other != r.Keys[0] {
		r.Keys = append(r.Keys, other)
	}
	r.Need = lease.Amount{Tokens: 1 + random.Int64N(2)}
	r.Want = lease.Amount{Tokens: r.Need.Tokens + random.Int64N(5)}
	if random.IntN(2) == 0 {
		r.Need.Slots, r.Want.Slots = 1, 1
	}
	if random.IntN(2) == 0 {
		units := map[string]int64{"bytes": 99999999999 + random.Int64N(1000), "octets": 99999999999 + random.Int64N(1000)}
		r.Need.Units, r.Want.Units = lease.UnitsOf(units), lease.UnitsOf(units)
	}
	r.Patience = time.Duration(random.Int64N(3)) * 10 * time.Millisecond
	return r
}

// sameInRedis holds what Redis has against the ledger of a leader, between two of its
// turns: a fresh ledger that is restored from Redis has every number of every record as
// the living one has it. It gives the records of the living one.
func sameInRedis(t *testing.T, x *post) map[lease.Key]lease.Record {
	t.Helper()
	var live, restored map[lease.Key]lease.Record
	var status [2]lease.Status
	var failed error
	require.NoError(t, x.leader.Look(bounded(t), func(now algo.Instant, l *lease.Ledger) {
		epoch := x.leader.Epoch()
		var records []lease.Record
		if records, failed = allRecords(t.Context(), x.mirror, epoch); failed != nil {
			return
		}
		fresh := lease.NewLedger(x.cfg.Policy, x.cfg.Lease)
		fresh.Start(lease.Start{Epoch: epoch.Number, Instant: now, Dial: l.Dial()})
		for _, r := range records {
			fresh.Restore(r)
		}
		fresh.SetComplete()
		status = [2]lease.Status{l.Status(now, ""), fresh.Status(now, "")}
		live, restored = written(l, now), written(fresh, now)
	}))
	require.NoError(t, failed)
	require.NotEmpty(t, live)
	require.Len(t, restored, len(live))
	for key, r := range live {
		require.Equal(t, r, restored[key], "%q", key)
	}
	for i := range status[0].Keys { // who waits is not recorded: it asks again
		status[0].Keys[i].Waiting = 0
	}
	require.Equal(t, status[0].Keys, status[1].Keys)
	require.Equal(t, status[0].Held, status[1].Held)
	return live
}

// allRecords gives all records of a mirror.
func allRecords(ctx context.Context, m lease.Mirror, e lease.Epoch) ([]lease.Record, error) {
	var all []lease.Record
	have := map[lease.Key]bool{}
	for from := ""; ; {
		page, next, err := m.Keys(ctx, e, from)
		if err != nil {
			return nil, err
		}
		var missing []lease.Key
		for _, k := range page {
			if !have[k] {
				have[k] = true
				missing = append(missing, k)
			}
		}
		records, err := m.Load(ctx, e, missing)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
		if from = next; from == "" {
			return all, nil
		}
	}
}

// written is what a ledger would write back to a mirror that has nothing.
func written(l *lease.Ledger, now algo.Instant) map[lease.Key]lease.Record {
	all := map[lease.Key]lease.Record{}
	l.Rewrite(nil)
	for {
		turn := l.Turn(now, nil)
		for _, c := range turn.Changes {
			r := lease.Record{Key: c.Key}
			if r.Change(c, 1); r.Empty() {
				continue
			}
			all[c.Key] = mirrortest.Sorted(r)
		}
		over := turn.Rewritten
		l.Done(turn)
		if over {
			return all
		}
	}
}
