package failover

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/oracle"
)

var proof = os.Getenv("RATION_PROOF") == "1"

// calm is for how long nothing fails between two faults, two periods of the longest rule
// and what it takes to get going.
const calm = 8 * time.Second

// TestNoFailureBreaksTheContract plays each fault several times. No call may break the
// contract by the instant of its release; where nothing fails the contract is used.
func TestNoFailureBreaksTheContract(t *testing.T) {
	play(t, 0)
}

// TestNoFailureBreaksTheContractAtArrival is the same with a guard, and for the instants
// at which calls arrive, but for those that came later than the guard allows.
func TestNoFailureBreaksTheContractAtArrival(t *testing.T) {
	if _, all := full(); !all {
		t.Skip("not in the short form: RATION_PROOF=1 plays it, or RATION_ROUNDS=1")
	}
	play(t, 60*time.Millisecond)
}

// full says that every fault is played, and how often: 10 times in the proof, or as
// RATION_ROUNDS says. Else two are, once, to see that they can be.
func full() (rounds int, all bool) {
	if n, err := strconv.Atoi(os.Getenv("RATION_ROUNDS")); err == nil {
		return n, true
	}
	if proof {
		return 10, true
	}
	return 1, false
}

// played gives the faults to play: RATION_FAULT, a pattern, leaves only some.
func played() (some []fault) {
	only := regexp.MustCompile(os.Getenv("RATION_FAULT"))
	_, all := full()
	for _, f := range faults {
		if only.MatchString(f.name) && (all || f.short) {
			some = append(some, f)
		}
	}
	return some
}

func play(t *testing.T, guard time.Duration) {
	rounds, all := full()
	p := &record{world: newWorld(t, limited(guard)), guard: guard, gaps: map[string][]time.Duration{}, calm: calm}
	if !all {
		p.calm = 4 * time.Second // one period to judge use by
	}
	p.leader()
	p.load, p.probe = startLoad(p.world, 8, 6), startProbe(p.world)
	p.served(time.Now())
	for round := range rounds {
		for _, f := range played() {
			p.one(round+1, f)
		}
	}
	p.judge()
}

// one lets nothing fail for a while, and then something.
func (p *record) one(round int, f fault) {
	t, w := p.t, p.world
	began := time.Now()
	wait(w, p.calm)
	at := f.do(w)
	well := time.Now()
	before := w.probe.gap(at.Add(-time.Second), at)
	gap := max(0, w.probe.gap(at, well)-before)
	p.gaps[f.name] = append(p.gaps[f.name], gap)
	t.Logf("round %d, at %s, %s: %v without a grant (longest before %v)%s", round, at.Format("15:04:05.000"), f.name,
		gap.Round(time.Millisecond), before.Round(time.Millisecond), p.used(began))
	wait(w, f.rest)
	broken := oracle.Violations(w.spends(), rules)
	require.Zero(t, len(broken), "on sent, after %s: %v", f.name, broken[:min(len(broken), 3)])
}

// used notes how much of the contract was used since then, before something failed, and
// says it. With a guard it is not asked: a guard costs use.
func (p *record) used(began time.Time) string {
	if _, all := full(); p.guard > 0 || !all {
		return ""
	}
	use, err := oracle.Use(p.spends(), oracle.Schedule{Rules: rules, Hold: hold}, began.UnixNano(), began.Add(p.calm).UnixNano(), 3*time.Second)
	require.NoError(p.t, err)
	p.use = append(p.use, use)
	return ", use before " + strconv.FormatFloat(use, 'f', 3, 64)
}
