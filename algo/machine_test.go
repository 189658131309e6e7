package algo_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

// must parses a rule that is known to be right.
func must(t testing.TB, text string) algo.Rule {
	t.Helper()
	r, err := algo.ParseRule(text)
	require.NoError(t, err)
	return r
}

// exact compiles a rule with no allowance.
func exact(t testing.TB, text string) *algo.Spec {
	t.Helper()
	return algo.Compile(must(t, text), algo.Allowance{})
}

// at is a readable origin: 15:11:39 UTC on a Thursday in the middle of a month.
var at = algo.Instant(time.Date(2026, 1, 15, 15, 11, 39, 0, time.UTC).UnixNano())

// chooser decides what a machine does next: a seeded generator or fuzzed bytes.
type chooser interface {
	// Int64N gives a number from 0 to n-1.
	Int64N(n int64) int64
}

// bytesChooser takes its choices from bytes and ends with them.
type bytesChooser struct{ left []byte }

func (b *bytesChooser) Int64N(n int64) int64 {
	if len(b.left) == 0 {
		return 0
	}
	first := int64(b.left[0])
	b.left = b.left[1:]
	if n <= 256 || len(b.left) == 0 {
		return first % n
	}
	second := int64(b.left[0])
	b.left = b.left[1:]
	if both := first<<8 | second; n <= 65536 {
		return both % n
	} else {
		return both * (n / 65536) % n
	}
}

// lot is what was taken at one instant and is still held.
type lot struct {
	taken algo.Instant
	n     int64
}

// machine drives one window through arbitrary steps, checks the law after each
// of them, and remembers what was really spent and when, for the oracle.
type machine struct {
	t    testing.TB
	name string
	spec *algo.Spec
	// window is under test; twin is replaced by a restored copy of itself now
	// and then and has to answer alike.
	window, twin algo.Window
	now          algo.Instant
	lots         []lot
	choose       chooser
	step         int
	// stride is about how far time goes in a step.
	stride int64
	// small makes takes and settlements of a few tokens each.
	small bool
	// debts lets it charge what was never taken.
	debts bool

	spends []spend
	slots  []interval
	takes  int
}

func newMachine(t testing.TB, name string, spec *algo.Spec, choose chooser) *machine {
	// Not so far that the last instant comes near.
	stride := int64(min(spec.Rule().Span(), 60*24*time.Hour))
	if stride == 0 {
		stride = int64(time.Second)
	}
	return &machine{
		t: t, name: name, spec: spec, choose: choose, now: at, stride: stride,
		window: spec.Window(at), twin: spec.Window(at),
	}
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// where says what replays a failure.
func (m *machine) where() string {
	return fmt.Sprintf("%s, step %d, at %d", m.name, m.step, m.now)
}

func (m *machine) run(steps int) {
	for range steps {
		m.step++
		m.move()
		switch m.choose.Int64N(10) {
		case 0, 1, 2, 3:
			m.take()
		case 4:
			m.giveBack()
		case 5, 6, 7, 8:
			m.settle()
		case 9:
			m.checkWait()
		}
		if m.debts && m.choose.Int64N(8) == 0 {
			m.charge()
		}
		m.checkLaw()
	}
}

// move lets time pass: not at all, by a nanosecond, a little, exactly a span, or
// much; and now and then asks with an instant that is past.
func (m *machine) move() {
	switch m.choose.Int64N(12) {
	case 0, 1:
	case 2:
		m.now++
	case 3, 4, 5, 6, 7, 8:
		m.now = m.now.Add(time.Duration(m.choose.Int64N(m.stride/4 + 2)))
	case 9:
		m.now = m.now.Add(time.Duration(m.stride))
	case 10:
		if !m.small {
			m.now = m.now.Add(time.Duration(3 * m.stride))
		}
	case 11:
		past := m.now.Add(-time.Duration(m.choose.Int64N(m.stride + 1)))
		free := m.window.Free(m.now)
		require.Equal(m.t, free, m.window.Free(past), m.where())
	}
}

func (m *machine) amount(most int64) int64 {
	switch {
	case most <= 0:
		return 0
	case m.small:
		return min(most, 1+m.choose.Int64N(3))
	case m.choose.Int64N(3) == 0:
		return most
	}
	return 1 + m.choose.Int64N(min(most, 1<<40))
}

func (m *machine) take() {
	n := m.amount(m.window.Free(m.now))
	m.window.Take(m.now, n)
	m.twin.Take(m.now, n)
	if n > 0 {
		m.takes++
		m.lots = append(m.lots, lot{m.now, n})
	}
}

// draw takes some tokens out of one lot.
func (m *machine) draw() lot {
	if len(m.lots) == 0 {
		return lot{taken: m.now}
	}
	i := m.choose.Int64N(int64(len(m.lots)))
	n := m.amount(m.lots[i].n)
	drawn := lot{m.lots[i].taken, n}
	if m.lots[i].n -= n; m.lots[i].n == 0 {
		m.lots[i] = m.lots[len(m.lots)-1]
		m.lots = m.lots[:len(m.lots)-1]
	}
	return drawn
}

func (m *machine) giveBack() {
	d := m.draw()
	m.window.Return(m.now, d.n)
	m.twin.Return(m.now, d.n)
	m.slots = append(m.slots, interval{int64(d.taken), int64(m.now), d.n})
}

// settle settles a spend that was made at some instant since its take, dated
// then or later.
func (m *machine) settle() {
	d := m.draw()
	if d.n == 0 {
		return
	}
	spent := m.between(d.taken)
	dated := m.between(spent)
	m.window.Settle(m.now, d.n, dated)
	m.twin.Settle(m.now, d.n, dated)
	m.spends = append(m.spends, spend{int64(spent), d.n})
	m.slots = append(m.slots, interval{int64(d.taken), int64(spent), d.n})
}

// charge charges what was spent beside what was taken. What is counted has the bound
// of a debt, and less is only counted there.
func (m *machine) charge() {
	n := m.amount(2 * min(m.spec.Max(), 1<<60))
	before := m.window.Held() + m.window.Spent(m.now)
	counted := m.window.Charge(m.now, n, m.now)
	require.Equal(m.t, counted, m.twin.Charge(m.now, n, m.now), m.where())
	require.LessOrEqual(m.t, counted, n, m.where())
	if counted < n && m.spec.Rule().Kind != algo.Pace {
		require.Equal(m.t, max(2*m.spec.Max(), before), before+counted, m.where())
	}
}

// between gives an instant from the one given to now, often either of them.
func (m *machine) between(from algo.Instant) algo.Instant {
	switch m.choose.Int64N(4) {
	case 0:
		return from
	case 1:
		return m.now
	}
	gap := int64(m.now.Sub(from))
	return from.Add(time.Duration(m.choose.Int64N(gap + 1)))
}

func (m *machine) checkLaw() {
	free, held, spent := m.window.Free(m.now), m.window.Held(), m.window.Spent(m.now)
	require.GreaterOrEqual(m.t, free, int64(0), m.where())
	require.GreaterOrEqual(m.t, held, int64(0), m.where())
	require.GreaterOrEqual(m.t, spent, int64(0), m.where())
	if limit := m.window.Limit(); m.debts && held+spent > limit {
		require.Zero(m.t, free, m.where())
		require.LessOrEqual(m.t, held+spent, 2*limit, m.where())
	} else {
		require.Equal(m.t, limit, free+held+spent, "%s: %d free, %d held, %d spent", m.where(), free, held, spent)
	}
	var lots int64
	for _, l := range m.lots {
		lots += l.n
	}
	require.Equal(m.t, lots, held, m.where())

	require.Equal(m.t, free, m.twin.Free(m.now), m.where())
	require.Equal(m.t, held, m.twin.Held(), m.where())
	require.Equal(m.t, spent, m.twin.Spent(m.now), m.where())
	require.Equal(m.t, held+spent == 0, m.window.Idle(m.now), m.where())
	if m.step%16 == 0 {
		state := m.window.State(m.now)
		require.Equal(m.t, state, m.twin.State(m.now), m.where())
		m.twin = m.spec.Restore(state)
		require.Equal(m.t, state, m.twin.State(m.now), m.where())
		m.checkRemaining(state, free)
	}
}

// checkRemaining holds that with k free, k can be taken and k+1 cannot.
func (m *machine) checkRemaining(state algo.State, free int64) {
	works, fails := m.spec.Restore(state), m.spec.Restore(state)
	works.Take(m.now, free)
	require.Zero(m.t, works.Free(m.now), m.where())
	require.Panics(m.t, func() { fails.Take(m.now, free+1) }, m.where())
	require.Equal(m.t, state, fails.State(m.now), "a refused take changed something: %s", m.where())
}

// checkWait asks for a wait with some of what is held due, and plays both the
// instant it tells and the nanosecond before it.
func (m *machine) checkWait() {
	due := m.dues()
	n := 1 + m.choose.Int64N(min(m.spec.Max()+1, 1<<40))
	if m.choose.Int64N(3) == 0 {
		n = m.spec.Max()
	}
	wait, ok := m.window.Wait(m.now, n, due)
	if !ok {
		rule := m.spec.Rule()
		require.True(m.t, n > m.spec.Max() || rule.Limit == 0, "%s: never for %d", m.where(), n)
		later := m.now.Add(200 * 365 * 24 * time.Hour)
		require.Less(m.t, m.freeAt(due, later), n, m.where())
		return
	}
	then := m.now.Add(wait)
	require.GreaterOrEqual(m.t, m.freeAt(due, then), n, "%s: %d after %d", m.where(), n, wait)
	if wait > 0 {
		require.Less(m.t, m.freeAt(due, then-1), n, "%s: %d, 1 ns before %d", m.where(), n, wait)
	}
}

// dues makes some of the lots due, most of them later and some overdue.
func (m *machine) dues() []algo.Due {
	var due []algo.Due
	for _, l := range m.lots {
		if m.choose.Int64N(4) == 0 {
			continue
		}
		when := m.now.Add(time.Duration(m.choose.Int64N(m.stride + 1)))
		if m.choose.Int64N(4) == 0 {
			when = m.between(l.taken)
		}
		due = append(due, algo.Due{At: when, N: l.n})
	}
	sortDue(due)
	return due
}

// freeAt plays a copy of the window up to the instant then: what is not due is
// returned now, what is due by then is settled.
func (m *machine) freeAt(due []algo.Due, then algo.Instant) int64 {
	w := m.spec.Restore(m.window.State(m.now))
	held := w.Held()
	for _, d := range due {
		held -= d.N
	}
	w.Return(m.now, held)
	for _, d := range due {
		if d.At <= then {
			w.Settle(max(d.At, m.now), d.N, d.At)
		}
	}
	return w.Free(then)
}

// drain settles all that is held and lets so much time pass that it is back.
func (m *machine) drain() {
	for _, l := range m.lots {
		m.window.Settle(m.now, l.n, m.now)
		m.spends = append(m.spends, spend{int64(m.now), l.n})
		m.slots = append(m.slots, interval{int64(l.taken), int64(m.now), l.n})
	}
	m.lots = nil
}
