package worker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The must of fairness: 1 greedy worker and 49 modest ones, whose pools ask one ledger.
const (
	shareHolders = 50
	shareRate    = 500 // a second: 10 for each
	sharePolicy  = `limits: [{key: k, rules: [500/1s]}]`
)

// serve counts the calls of a member, and lets each ask again after think.
func (m *member) serve(count *int64, think func() time.Duration) {
	m.served = func(c *Call) {
		if c.State() != Running {
			return
		}
		*count++
		m.fleet.after(think(), func() {
			m.do(func() { m.pool.Finish(m.fleet.now, c) })
			m.ask(1, false, Forever)
		})
	}
}

// TestModestWorkersGetWhatTheyAskBesideAGreedyOne: each asks for 8 a second, on average,
// of a share of 10; the greedy one asks for all.
func TestModestWorkersGetWhatTheyAskBesideAGreedyOne(t *testing.T) {
	f := newFleet(sharePolicy, 3)
	var got, asked [shareHolders]int64
	var waited [shareHolders]time.Duration
	for i := range shareHolders {
		m := f.member(fmt.Sprint("m", i), "k", DefaultPoolConfig())
		if i == 0 {
			m.serve(&got[0], func() time.Duration { return 0 })
			for range 300 {
				f.after(0, func() { m.ask(1, false, Forever) })
			}
			continue
		}
		m.served = func(c *Call) {
			if c.State() == Running {
				got[i]++
				waited[i] = max(waited[i], c.Waited())
				m.do(func() { m.pool.Finish(f.now, c) })
			}
		}
		var demand func()
		demand = func() {
			if f.now > 29*time.Second {
				return
			}
			asked[i]++
			m.ask(1, false, Forever)
			f.after(time.Duration(f.rnd.ExpFloat64()*float64(time.Second/8)), demand)
		}
		f.after(time.Duration(f.rnd.IntN(100))*time.Millisecond, demand)
	}
	f.run(30500 * time.Millisecond)
	least, longest := 1.0, time.Duration(0)
	for i := 1; i < shareHolders; i++ {
		least = min(least, float64(got[i])/float64(asked[i]))
		longest = max(longest, waited[i])
	}
	t.Logf("greedy %.1f a second; of modest ones the least gets %.3f of what it asks, and the longest wait is %v", float64(got[0])/30.5, least, longest)
	require.Equal(t, 1.0, least)
	require.Greater(t, float64(got[0])/30.5, float64(shareRate)*0.97-49*8.5)
}

// TestSaturatedWorkersGetEqualShares: over 60 s Jain's index is at least 0.98, though one of
// them has ten times the callers.
func TestSaturatedWorkersGetEqualShares(t *testing.T) {
	f := newFleet(sharePolicy, 4)
	var got [shareHolders]int64
	for i := range shareHolders {
		m := f.member(fmt.Sprint("m", i), "k", DefaultPoolConfig())
		callers := 20
		if i == 0 {
			callers = 200
		}
		m.serve(&got[i], func() time.Duration { return 0 })
		for range callers {
			f.after(time.Duration(f.rnd.IntN(1000))*time.Millisecond, func() { m.ask(1, false, Forever) })
		}
	}
	f.run(5 * time.Second)
	clear(got[:])
	f.run(65 * time.Second)
	sum, squares := 0.0, 0.0
	for _, n := range got {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	index := sum * sum / (shareHolders * squares)
	t.Logf("Jain's index %.4f; greedy %d, others from %d to %d; use %.4f", index, got[0], slices.Min(got[1:]), slices.Max(got[1:]), sum/(60*shareRate))
	require.GreaterOrEqual(t, index, 0.98)
	require.GreaterOrEqual(t, sum/(60*shareRate), 0.97)
}
