package sim

import (
	"time"

	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
)

// log is a limiter as a program has it for one rule: it remembers when it let
// calls through.
type log struct {
	limit  int
	window time.Duration
	let    []time.Duration
}

// wait is how long the limiter makes a call wait.
func (l *log) wait(now time.Duration) time.Duration {
	for len(l.let) > 0 && now-l.let[0] >= l.window {
		l.let = l.let[1:]
	}
	if len(l.let) < l.limit {
		return 0
	}
	return l.let[0] + l.window - now
}

// Chained lets callers, all at once, pass one limiter for each rule, one after
// the other, and tells when their calls left. Each limiter records a call when
// it lets it through; it leaves when the last one does, so the early records
// expire early.
func Chained(seed uint64, rules []oracle.Rule, callers int) []oracle.Spend {
	w := newWorld(seed)
	var chain []*log
	for _, r := range rules {
		chain = append(chain, &log{limit: int(r.Limit), window: r.Window})
	}
	var pass func(next int)
	pass = func(next int) {
		if next == len(chain) {
			w.spends = append(w.spends, oracle.Spend{Key: "k", At: w.unix(), Cost: 1})
			return
		}
		if d := chain[next].wait(w.now); d > 0 {
			w.after(d+w.between(0, time.Millisecond), func() { pass(next) })
			return
		}
		chain[next].let = append(chain[next].let, w.now)
		w.after(w.between(0, time.Millisecond), func() { pass(next + 1) })
	}
	for range callers {
		w.after(w.between(0, time.Millisecond), func() { pass(0) })
	}
	w.run(time.Minute)
	return w.spends
}

// Leased lets as many callers in four holders take the same calls by lease.
func Leased(seed uint64, rules []oracle.Rule, callers int) []oracle.Spend {
	w := newWorld(seed)
	w.calm = true
	text := ""
	for _, r := range rules {
		text += r.String() + ", "
	}
	policy, err := lease.ParsePolicy("leased", []byte("limits: [{key: k, rules: ["+text+"]}]"))
	if err != nil {
		panic(err)
	}
	l := newSite(w, policy, Contract{})
	w.run(time.Second) // in which somebody begins to lead
	var fleet []*holder
	w.calls = calls{world: w, pending: map[*worker.Call]*caller{}, stopped: true}
	for _, name := range []string{"a", "b", "c", "d"} {
		fleet = append(fleet, newHolder(w, name, "", l, 0, []lease.Key{"k"}))
	}
	for i := range callers {
		x := &caller{holder: fleet[i%len(fleet)], key: "k", spend: -1}
		w.after(w.between(0, time.Millisecond), func() { w.calls.once(x) })
	}
	w.run(w.now + time.Minute)
	return w.spends
}

// once lets a caller make one call.
func (c *calls) once(x *caller) {
	x.call = x.holder.pools[x.key].Ask(x.holder.elapsed(), 1, false, worker.Forever)
	c.pending[x.call] = x
	c.decide(x)
	x.holder.drive(x.key)
}
