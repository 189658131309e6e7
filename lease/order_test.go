package lease_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// member asks for a number of tokens again and again, always with so many requests in
// line, and has spent what it gets at once, or when its call is over.
type member struct {
	name    string
	class   string
	key     lease.Key
	cost    int64
	depth   int
	every   time.Duration // asks no more often; 0 for at once
	rand    *rand.Rand    // draws the times between, if there is one
	from    time.Duration // asks nothing before
	until   time.Duration // nor after that; 0 for for ever
	seq     uint64
	open    map[lease.ID]algo.Instant
	next    time.Duration
	got     int64
	asked   int
	waited  []time.Duration
	no      map[string]int // refusals, by code
	patient time.Duration  // waits for so long; 0 for an hour
	lasts   time.Duration  // holds a slot for so long with each call; 0 needs none
}

// request is one that it makes.
func (m *member) request(seq uint64, at algo.Instant) *lease.Request {
	r := ask(m.name, seq, at, m.patience(), m.key)
	r.Class, r.Need.Tokens = m.class, m.cost
	if m.lasts > 0 {
		r.Need.Slots = 1
	}
	r.Want = r.Need
	return r
}

func (m *member) patience() time.Duration { return cmp.Or(m.patient, time.Hour) }

// gap is until it asks again.
func (m *member) gap() time.Duration {
	if m.rand == nil {
		return m.every
	}
	return time.Duration(m.rand.ExpFloat64() * float64(m.every))
}

// lined is members at one ledger.
type lined struct {
	t       *testing.T
	ledger  *lease.Ledger
	members []*member
	now     algo.Instant
	ends    []under // way, by their ends
}

// under is a call that is under way.
type under struct {
	ends   algo.Instant
	report *lease.Report
}

func newLined(t *testing.T, text string, members ...*member) *lined {
	for _, m := range members {
		m.open, m.no = map[lease.ID]algo.Instant{}, map[string]int{}
		if m.key == "" {
			m.key = "k"
		}
	}
	return &lined{t: t, ledger: lease.NewLedger(policy(t, text), lease.DefaultConfig()), members: members, now: start}
}

// run plays so long, in steps of that length.
func (l *lined) run(d, step time.Duration) {
	l.t.Helper()
	for end := l.now.Add(d); l.now.Before(end); l.now = l.now.Add(step) {
		var in []any
		for len(l.ends) > 0 && !l.now.Before(l.ends[0].ends) {
			l.ends[0].report.Sent = l.now.Sub(start)
			in, l.ends = append(in, l.ends[0].report), l.ends[1:]
		}
		at := l.now.Sub(start)
		for _, m := range l.members {
			for len(m.open) < m.depth && at >= m.next && at >= m.from && (m.until == 0 || at < m.until) {
				m.seq++
				r := m.request(m.seq, l.now)
				m.open[r.ID] = l.now
				m.asked++
				m.next = max(m.next, at-m.every) + m.gap()
				in = append(in, r)
			}
			if at%time.Second == 0 { // as holders ask again
				for id, since := range m.open {
					if since < l.now {
						in = append(in, m.request(id.Seq, l.now))
					}
				}
			}
		}
		l.hear(turn(l.t, l.ledger, l.now, in...))
	}
}

func (l *lined) hear(got *lease.Turn) {
	for _, a := range got.Answers {
		for _, m := range l.members {
			since, mine := m.open[a.Answer.ID]
			if !mine {
				continue
			}
			delete(m.open, a.Answer.ID)
			if a.Answer.Outcome != lease.Granted {
				m.no[lease.Code(a.Answer.Refusal.Reason)]++
				continue
			}
			m.got += a.Answer.Granted.Tokens
			m.waited = append(m.waited, l.now.Sub(since))
			over := under{l.now.Add(m.lasts), &lease.Report{Holder: a.Answer.ID.Holder, Counts: []lease.Count{
				{ID: a.Answer.ID, Keys: []lease.Key{m.key}, Points: []lease.Point{{Count: a.Answer.Granted.Tokens}}, Freed: a.Answer.Granted.Slots},
			}}}
			i, _ := slices.BinarySearchFunc(l.ends, over.ends+1, func(c under, at algo.Instant) int { return cmp.Compare(c.ends, at) })
			l.ends = slices.Insert(l.ends, i, over)
		}
	}
}

// TestHigherClassesGoFirst, whoever came before; what is kept for lower ones is 0.
func TestHigherClassesGoFirst(t *testing.T) {
	low := &member{name: "low", class: "standard", cost: 1, depth: 5, until: time.Second}
	high := &member{name: "high", class: "premium", cost: 1, depth: 5, from: 500 * time.Millisecond}
	l := newLined(t, `limits: [{key: k, rules: [10/1s bucket burst=1], line: {premium: 9, standard: 9, lower: 0}}]`, low, high)
	l.run(time.Minute, 10*time.Millisecond)
	require.LessOrEqual(t, low.got, int64(7))
	require.Len(t, low.open, 5, "strict is strict")
	require.Greater(t, high.got, int64(480))
}

// TestLowerClassesGetTheirShare of what is granted while they wait, also where requests
// differ in size, where there are three classes, and at two levels that are both short.
func TestLowerClassesGetTheirShare(t *testing.T) {
	for name, c := range map[string]struct {
		policy  string
		members []*member
		least   []float64 // of all that is granted
	}{
		"two": {
			`limits: [{key: k, rules: [20/1s], line: {premium: 99, standard: 99, lower: 5%}}]`,
			[]*member{{name: "p", class: "premium", cost: 1, depth: 20}, {name: "s", class: "standard", cost: 1, depth: 20}}, []float64{0.9, 0.05},
		},
		"large ones": {
			`limits: [{key: k, rules: [20/1s], line: {premium: 99, standard: 99, lower: 20%}}]`,
			[]*member{{name: "p", class: "premium", cost: 1, depth: 20}, {name: "s", class: "standard", cost: 10, depth: 3}}, []float64{0.75, 0.2},
		},
		"small ones": {
			`limits: [{key: k, rules: [20/1s], line: {premium: 99, standard: 99, lower: 20%}}]`,
			[]*member{{name: "p", class: "premium", cost: 10, depth: 20}, {name: "s", class: "standard", cost: 1, depth: 30}}, []float64{0.75, 0.2},
		},
		"three": {
			`limits: [{key: k, rules: [20/1s], line: {premium: 99, standard: 99, batch: 99, lower: 20%}}]`,
			[]*member{
				{name: "p", class: "premium", cost: 1, depth: 20}, {name: "s", class: "standard", cost: 1, depth: 20},
				{name: "b", class: "batch", cost: 1, depth: 20},
			}, []float64{0.7, 0.1, 0.1},
		},
		"two levels": {
			`limits: [{key: k, rules: [20/1s], line: {premium: 99, standard: 99, lower: 10%}}, {key: k/x, rules: [19/1s bucket]}]`,
			[]*member{
				{name: "p", class: "premium", cost: 1, depth: 20, key: "k/x"}, {name: "s", class: "standard", cost: 1, depth: 20, key: "k/x"},
			}, []float64{0.8, 0.1},
		},
		"a line that names none": {
			`limits: [{key: k, rules: [20/1s]}, {key: j, rules: [1/1s], line: {premium: 99, standard: 99}}]`,
			[]*member{{name: "p", class: "premium", cost: 1, depth: 20}, {name: "s", class: "standard", cost: 1, depth: 20}}, []float64{0.9, 0.05},
		},
	} {
		l := newLined(t, c.policy, c.members...)
		l.run(2*time.Minute, 10*time.Millisecond)
		all, text := int64(0), ""
		for _, m := range c.members {
			all += m.got
			text += fmt.Sprintf(" %s %d", m.name, m.got)
		}
		for i, m := range c.members {
			require.GreaterOrEqual(t, float64(m.got)/float64(all), c.least[i]-0.01, "%s: %s of%s", name, m.name, text)
		}
		require.Greater(t, all, int64(2*60*17), name)
		require.Positive(t, l.ledger.Stats().Lifted)
		t.Log(name, text)
	}
}

// TestWhoWaitsForTomorrowElsewhereSpendsNoShare of its class.
func TestWhoWaitsForTomorrowElsewhereSpendsNoShare(t *testing.T) {
	low := &member{name: "s", class: "standard", cost: 1, depth: 5, key: "k/x", from: time.Second}
	high := &member{name: "p", class: "premium", cost: 1, depth: 20, key: "k/y"}
	members := []*member{low, high}
	for i := range 40 {
		members = append(members, &member{name: fmt.Sprint("t", i), class: "standard", cost: 1, depth: 1, key: "k/day", patient: 48 * time.Hour})
	}
	l := newLined(t, `limits: [{key: k, rules: [20/1s], line: {premium: 99, standard: 999, lower: 5%}}, {key: k/day, rules: [1/1d]}]`, members...)
	l.run(2*time.Minute, 10*time.Millisecond)
	require.Greater(t, low.got, int64(100))
	for _, m := range members[2:] {
		require.LessOrEqual(t, m.got, int64(1))
	}
}

// TestGreedyHolderGetsWhatOthersLeave: who asks for less than an equal share gets what it
// asks for, at once or nearly, and the rest goes to the one who asks for all.
func TestGreedyHolderGetsWhatOthersLeave(t *testing.T) {
	members := []*member{{name: "greedy", cost: 1, depth: 200}}
	for i := range 9 {
		members = append(members, &member{name: fmt.Sprint("modest", i), cost: 1, depth: 5, every: 250 * time.Millisecond}) // 4 of 5 a second
	}
	l := newLined(t, `limits: [{key: k, rules: [50/1s bucket burst=5]}]`, members...)
	l.run(time.Minute, 10*time.Millisecond)
	for _, m := range members[1:] {
		require.GreaterOrEqual(t, m.got, int64(m.asked-6), m.name)
	}
	require.Greater(t, members[0].got, int64(60*50-9*60*4-30))
}

// TestSaturatedHoldersGetEqualShares, whatever they ask for at a time and however much of
// it waits, and whatever holds the line up.
func TestSaturatedHoldersGetEqualShares(t *testing.T) {
	for name, text := range map[string]string{
		"a window":             `limits: [{key: k, rules: [100/1s]}]`,
		"a bucket":             `limits: [{key: k, rules: [100/1s bucket burst=10]}]`,
		"its parent":           `limits: [{key: k, rules: [100/1s]}, {key: k/x, rules: [3000/1s]}]`,
		"its parent, by a lot": `limits: [{key: k, rules: [100/1s bucket burst=10]}, {key: k/x, rules: [300000/1s]}]`,
	} {
		var members []*member
		for i := range 10 {
			m := &member{name: fmt.Sprint("m", i), cost: 1, depth: 30}
			if i == 0 {
				m.depth = 200
			}
			if i >= 8 {
				m.cost = 4
			}
			if len(text) > 60 {
				m.key = "k/x"
			}
			members = append(members, m)
		}
		l := newLined(t, text, members...)
		l.run(10*time.Second, 10*time.Millisecond)
		for _, m := range members {
			m.got = 0
		}
		l.run(time.Minute, 10*time.Millisecond)
		var got []int64
		for _, m := range members {
			got = append(got, m.got)
		}
		t.Log(name, got, jain(members))
		require.Greater(t, jain(members), 0.98, "%s: %v", name, got)
	}
}

// TestSlowLineIsShared once that has been measured: what holds it up is how long calls
// last, and no rule says that.
func TestSlowLineIsShared(t *testing.T) {
	members := []*member{{name: "greedy", cost: 1, depth: 200, lasts: 100 * time.Millisecond}}
	for i := range 5 {
		members = append(members, &member{name: fmt.Sprint("m", i), cost: 1, depth: 8, lasts: 100 * time.Millisecond})
	}
	l := newLined(t, `limits: [{key: k, rules: [3000/1s, 4 concurrent]}]`, members...)
	l.run(time.Minute, 20*time.Millisecond)
	for _, m := range members {
		m.got = 0
	}
	l.run(time.Minute, 20*time.Millisecond)
	t.Log(members[0].got, members[1].got, members[5].got, jain(members))
	for _, m := range members[1:] {
		require.Greater(t, m.got*3/2, members[0].got, m.name)
	}
	require.Greater(t, members[0].got, int64(100))
}

// TestWhoComesLateHasNoClaimOnThePast: after an hour in which one alone had it all, a
// second one gets half, and not more.
func TestWhoComesLateHasNoClaimOnThePast(t *testing.T) {
	first := &member{name: "first", cost: 1, depth: 20}
	modest := &member{name: "modest", cost: 1, depth: 2, every: time.Second}
	late := &member{name: "late", cost: 1, depth: 20, from: 10 * time.Minute}
	l := newLined(t, `limits: [{key: k, rules: [20/1s bucket burst=5]}]`, first, modest, late)
	l.run(10*time.Minute, 10*time.Millisecond)
	before := first.got
	l.run(time.Minute, 10*time.Millisecond)
	require.InDelta(t, 570, first.got-before, 60)
	require.InDelta(t, 570, late.got, 60)
}

// TestWhoComesLateToALineThatHasSpedUpHasNoClaim: shares are longer there than need be
// until that is measured, so that starts are ahead of time.
func TestWhoComesLateToALineThatHasSpedUpHasNoClaim(t *testing.T) {
	first := &member{name: "first", cost: 1, depth: 20, lasts: 400 * time.Millisecond}
	late := &member{name: "late", cost: 1, depth: 20, from: 23 * time.Second, lasts: 20 * time.Millisecond}
	l := newLined(t, `limits: [{key: k, rules: [3000/1s, 4 concurrent]}]`, first, late)
	l.run(20*time.Second, 20*time.Millisecond)
	first.lasts = 20 * time.Millisecond
	l.run(3*time.Second, 10*time.Millisecond)
	before := first.got
	l.run(time.Second, 10*time.Millisecond)
	t.Log(first.got-before, late.got)
	require.Greater(t, first.got-before, int64(60))
	require.Greater(t, late.got, int64(60))
}

// jain is Jain's index of what the members got: 1 where all got the same.
func jain(members []*member) float64 {
	sum, squares := 0.0, 0.0
	for _, m := range members {
		sum += float64(m.got)
		squares += float64(m.got) * float64(m.got)
	}
	return sum * sum / (float64(len(members)) * squares)
}

// contend plays premium holders, and standard ones if there are any, who ask for so many
// times the capacity together, and gives a table of what became of each class.
func contend(t *testing.T, standard bool) (premium, low *member, table string) {
	const capacity = 100 // a second
	premium, low = &member{class: "premium"}, &member{class: "standard"}
	var members []*member
	for i := range 10 { // each class wants 1.5 times the capacity, by 150 callers of one a second each
		for _, class := range []string{"premium", "standard"} {
			if class == "premium" || standard {
				members = append(members, &member{
					name: fmt.Sprint(class, i), class: class, cost: 1, depth: capacity * 3 / 20, every: time.Second * 20 / (capacity * 3),
					rand: rand.New(rand.NewPCG(uint64(i), 1)),
				})
			}
		}
	}
	l := newLined(t, `limits: [{key: k, rules: [100/1s], line: {premium: 500, standard: 100, lower: 5%}}]`, members...)
	most := map[string]int{}
	for range 60 {
		l.run(time.Second, 10*time.Millisecond)
		for _, c := range l.ledger.Status(l.now, "k").Keys[0].Classes {
			most[c.Name] = max(most[c.Name], c.Waiting)
			require.LessOrEqual(t, c.Waiting, c.Bound, c.Name)
		}
	}
	for _, m := range members {
		of := premium
		if m.class == "standard" {
			of = low
		}
		of.got, of.asked, of.waited = of.got+m.got, of.asked+m.asked, append(of.waited, m.waited...)
	}
	for _, c := range l.ledger.Summary(l.now).Classes {
		m := map[string]*member{"premium": premium, "standard": low}[c.Name]
		slices.Sort(m.waited)
		table += fmt.Sprintf("%-9s %6d asked %6d granted %6d refused %4d waiting (most %d)  p50 %v  p95 %v\n",
			c.Name, m.asked, c.Granted, c.Refused, c.Waiting, most[c.Name], quantile(m.waited, 50), quantile(m.waited, 95))
		require.Equal(t, int64(m.asked), c.Granted+c.Refused+int64(c.Waiting), c.Name)
	}
	return premium, low, table
}

func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*percent/100]
}

// TestPremiumHardlyWaitsLongerForStandard: at three times the capacity its wait is at most
// 1.2 of what it is without the others, who get their share; the bounds hold.
func TestPremiumHardlyWaitsLongerForStandard(t *testing.T) {
	alone, _, tableAlone := contend(t, false)
	premium, standard, table := contend(t, true)
	ratio := float64(quantile(premium.waited, 95)) / float64(quantile(alone.waited, 95))
	share := float64(standard.got) / float64(standard.got+premium.got)
	t.Logf("without standard:\n%swith standard:\n%sp95 %.3f of that without; standard gets %.3f of what is granted", tableAlone, table, ratio, share)
	require.LessOrEqual(t, ratio, 1.2)
	require.GreaterOrEqual(t, share, 0.05-0.002)
	require.Greater(t, standard.got+premium.got, int64(60*97))
}

// TestLowRequestIsGrantedWithinItsShare is B65: one of a low class waits while a high one
// wants all that there is. With a share for it, it is served as soon as that is worth it,
// whoever of its class comes and leaves meanwhile; without one it waits for as long as the
// others come, and is seen to wait.
func TestLowRequestIsGrantedWithinItsShare(t *testing.T) {
	for _, c := range []struct {
		lower string
		most  int64 // that the high one gets before; 0 for all
	}{{"1%", 100 + 2}, {"5%", 20 + 2}, {"50%", 1 + 2}, {"0", 0}} {
		high := &member{name: "high", class: "premium", cost: 1, depth: 20}
		fickle := &member{name: "fickle", class: "standard", cost: 1, depth: 1, patient: 70 * time.Millisecond}
		low := &member{name: "low", class: "standard", cost: 1, depth: 1}
		l := newLined(t, `limits: [{key: k, rules: [10/1s bucket burst=1], line: {premium: 99, standard: 99, lower: `+c.lower+`}}]`, high, fickle, low)
		for l.now.Sub(start) < 10*time.Minute && low.got == 0 {
			l.run(time.Second/10, time.Second/20)
		}
		require.Greater(t, fickle.no["timed_out"], 3*int(l.now.Sub(start)/time.Second), "who of its class comes also leaves")
		if c.most > 0 {
			require.Positive(t, low.got, c.lower)
			require.LessOrEqual(t, high.got, c.most, c.lower)
			continue
		}
		require.Zero(t, low.got+fickle.got)
		require.Greater(t, high.got, int64(2900))
		standard := l.ledger.Summary(l.now).Classes[1]
		require.Equal(t, "standard", standard.Name)
		require.GreaterOrEqual(t, standard.Waiting, 1)
		require.Zero(t, standard.Granted)
	}
}
