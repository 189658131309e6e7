package failover

import (
	"os"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/oracle"
)

// record is what was seen of a world in which everything failed in turn.
type record struct {
	*world
	guard time.Duration
	calm  time.Duration
	gaps  map[string][]time.Duration // by the fault
	use   []float64
}

// judge prints the figures, and requires what is promised.
func (p *record) judge() {
	t, spends := p.t, p.spends()
	require.Empty(t, oracle.Violations(spends, rules), "on sent")
	p.judgeGaps()
	deposed := 0
	for _, m := range p.members {
		deposed += m.deposed()
	}
	t.Logf("%d calls, %d cut, refusals %v; woken and cut-off leaders found their writes refused %d times", len(spends), p.load.cut, p.load.errs, deposed)
	_, all := full()
	all = all && os.Getenv("RATION_FAULT") == ""
	if all {
		require.Positive(t, deposed, "a woken leader is refused")
	}
	for _, r := range rules {
		bound := oracle.Binds(r, spends)
		t.Logf("%s has bound %d times", r, bound)
		if all {
			require.GreaterOrEqual(t, bound, 20, "of %s", r)
		}
	}
	p.judgeUse()
	if p.guard > 0 {
		arrivals, late := p.load.upstream.arrivals(p.guard)
		t.Logf("%d calls arrived within the guard, %d later", len(arrivals), late)
		require.NotEmpty(t, arrivals)
		require.Empty(t, oracle.Violations(arrivals, rules), "at arrival")
	}
}

// judgeGaps holds the longest time without a grant against the seat's TTL, once: in the
// proof, and without a guard.
func (p *record) judgeGaps() {
	for _, f := range faults {
		gaps := p.gaps[f.name]
		if len(gaps) == 0 {
			continue
		}
		slices.Sort(gaps)
		worst := gaps[len(gaps)-1]
		p.t.Logf("%s: median %v, worst %v without a grant, of %d", f.name, gaps[len(gaps)/2].Round(time.Millisecond), worst.Round(time.Millisecond), len(gaps))
		if proof && f.most > 0 && p.guard == 0 {
			require.LessOrEqual(p.t, worst.Seconds()/seatTTL.Seconds(), f.most.Seconds()/seatTTL.Seconds(), "of the seat's TTL, %s", f.name)
		}
	}
}

func (p *record) judgeUse() {
	if len(p.use) == 0 {
		return
	}
	sum := 0.0
	for _, u := range p.use {
		sum += u
	}
	p.t.Logf("use %.4f where nothing failed", sum/float64(len(p.use)))
	if proof {
		require.GreaterOrEqual(p.t, sum/float64(len(p.use)), 0.95)
	}
}
