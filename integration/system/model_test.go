package system

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/oracle"
	"ration/integration/upstream"
	"ration/lease"
	"ration/worker"
)

const (
	modelRules  = "50/3s, 20000/3s unit=tokens, 8 concurrent"
	modelTokens = "20000/3s unit=tokens"
)

// TestModelIsOverItsLimitByTheOverspendUnderWayAtMost: callers of a model ask for what
// they think a call costs, 30 to 140 % of which it uses; 16 of them want more than the
// contract has. The strict upstream counts what calls really use, and sees calls and
// slots never exceeded. It sees tokens exceeded by no more than what had been used beyond
// the estimates, and had not been told, when the last tokens of that window were granted.
// What was overspent is repaid by time: over all of the run it is within the limit, also
// where no call ever uses less than was thought.
func TestModelIsOverItsLimitByTheOverspendUnderWayAtMost(t *testing.T) {
	for seed := range uint64(scaled(4, 50)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { playModel(t, seed) })
	}
}

func playModel(t *testing.T, seed uint64) {
	const lasting = time.Minute
	within(t, "  - {key: model, rules: ["+modelRules+"]}\n", func(w *world) {
		contract, err := upstream.ParseContract(modelRules)
		require.NoError(w.t, err)
		strict := upstream.New([]upstream.Contract{contract}, 0)
		m := &meter{Lessor: w.leader, more: seed%2 == 1, granted: map[lease.ID]int64{}, heard: map[lease.ID]int64{}}
		ctx, cancel := soon(lasting)
		defer cancel()
		var callers sync.WaitGroup
		for i := range 4 {
			l := w.joinBy(m, fmt.Sprint("w", i)).Limiter("model")
			for j := range 4 {
				rnd := rand.New(rand.NewPCG(seed, uint64(4*i+j)))
				callers.Go(func() {
					for ctx.Err() == nil {
						m.call(ctx, l, strict, rnd)
					}
				})
			}
		}
		callers.Wait()
		for _, joined := range w.workers { // what they hold goes back, and all is told
			require.NoError(w.t, joined.Close(context.Background()))
		}
		m.judge(w.t, strict, lasting)
		s := w.status()
		require.Equal(w.t, m.over(), s.Stats.UnitsOverspent, "each overspend is debt once")
		require.NotZero(w.t, s.Stats.UnitsOverspent)
		<-time.After(4 * time.Second)
		for _, k := range w.status().Keys {
			for _, win := range k.Windows {
				require.Equal(w.t, win.Limit, win.Free, "%s is repaid", win.Rule)
			}
		}
	})
}

// meter stands between workers and the leader, two milliseconds from it, and notes what
// is known when.
type meter struct {
	lease.Lessor
	more    bool // calls never use less than they ask for; else now and then all do
	mu      sync.Mutex
	granted map[lease.ID]int64 // when
	spends  []spentUnits
	told    []overuse          // by when the ledger had it
	heard   map[lease.ID]int64 // of told, by the id that it was told under
	used    []overuse          // by when the call left
}

// spentUnits says that units of a lease were spent at an instant.
type spentUnits struct {
	id lease.ID
	at int64
}

// overuse is what calls used beyond what they had asked for.
type overuse struct{ at, n int64 }

const away = 2 * time.Millisecond

func (m *meter) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	time.Sleep(away)
	a, err := m.Lessor.Acquire(ctx, r)
	m.mu.Lock()
	if _, again := m.granted[r.ID]; err == nil && a.Outcome == lease.Granted && !again {
		m.granted[r.ID] = time.Now().UnixNano()
	}
	m.mu.Unlock()
	time.Sleep(away)
	return a, err
}

func (m *meter) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	sent := time.Now()
	time.Sleep(away)
	reply, err := m.Lessor.Report(ctx, r)
	m.mu.Lock()
	for _, c := range r.Counts {
		for _, p := range c.Points {
			m.spends = append(m.spends, spentUnits{c.ID, sent.Add(-p.Age).UnixNano()})
		}
		if n := c.OverUnits.Of("tokens") - m.heard[c.ID]; err == nil && n > 0 {
			m.heard[c.ID] += n
			m.told = append(m.told, overuse{time.Now().UnixNano(), n})
		}
	}
	m.mu.Unlock()
	time.Sleep(away)
	return reply, err
}

// call makes one call of the model.
func (m *meter) call(ctx context.Context, l *worker.Limiter, strict http.Handler, rnd *rand.Rand) {
	estimate := 200 + rnd.Int64N(1400)
	percent := 30 + rnd.Int64N(71)
	if m.more || time.Now().Unix()/6%2 == 0 {
		percent = 100 + rnd.Int64N(41)
	}
	uses := estimate * percent / 100
	h, err := l.Acquire(ctx, 1, lease.UnitAmount{Unit: "tokens", N: estimate})
	if err != nil {
		return // the time is over
	}
	if uses > estimate {
		m.mu.Lock()
		m.used = append(m.used, overuse{h.Sent().UnixNano(), uses - estimate})
		m.mu.Unlock()
	}
	url := fmt.Sprintf("/?unit=tokens=%d&delay=%v", uses, 50*time.Millisecond+time.Duration(rnd.Int64N(int64(time.Second))))
	strict.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, url, nil))
	if err := h.Settle(1, lease.UnitAmount{Unit: "tokens", N: uses}); err != nil {
		panic(err)
	}
}

func (m *meter) over() (all int64) {
	for _, u := range m.used {
		all += u.n
	}
	return all
}

// untold is what calls that had left by then had used beyond their estimates, and the
// ledger had not been told when it granted. Of what it was told at that very instant it
// may have heard after.
func (m *meter) untold(granted, then int64) (n int64) {
	for _, u := range m.used {
		if u.at <= then {
			n += u.n
		}
	}
	for _, o := range m.told {
		if o.at < granted {
			n -= o.n
		}
	}
	return n
}

// lastGrant is when the last of the leases was granted that a window (from, to] spent of.
func (m *meter) lastGrant(from, to int64) (at int64) {
	for _, s := range m.spends {
		if s.at > from && s.at <= to {
			at = max(at, m.granted[s.id])
		}
	}
	return at
}

func (m *meter) judge(t *testing.T, strict *upstream.Server, lasting time.Duration) {
	t.Helper()
	r := strict.Report()
	rule := oracle.MustRules(modelTokens)[0]
	var worst, then int64
	for _, v := range r.Contracts[0].Violations {
		require.Equal(t, modelTokens, v.Rule, "calls and slots are never exceeded")
		underWay := m.untold(m.lastGrant(v.At-int64(rule.Window), v.At), v.At)
		require.LessOrEqual(t, v.Load-v.Limit, underWay, "at %d", v.At)
		if v.Load-v.Limit > worst {
			worst, then = v.Load-v.Limit, underWay
		}
	}
	require.NotZero(t, worst, "the overspend under way is seen, or the test shows nothing")
	var used int64
	for _, a := range m.arrivals(t, strict) {
		used += a.Units["tokens"]
	}
	windows := int64(lasting / rule.Window)
	use := float64(used) / float64(rule.Limit*windows)
	t.Logf("%d calls used %d tokens, %.3f of %s; %d beyond their estimates, all repaid; at worst %d over the limit, with %d under way",
		r.Arrivals, used, use, modelTokens, m.over(), worst, then)
	require.LessOrEqual(t, used, rule.Limit*(windows+1)+worst, "what was overspent is repaid")
	require.Greater(t, use, 0.8)
}

func (m *meter) arrivals(t *testing.T, strict *upstream.Server) []oracle.Spend {
	t.Helper()
	rec := httptest.NewRecorder()
	strict.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/arrivals", nil))
	all, err := oracle.Read(rec.Body)
	require.NoError(t, err)
	return all
}
