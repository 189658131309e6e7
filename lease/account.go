package lease

import (
	"math"
	"slices"
	"time"

	"ration/algo"
)

// resource tells apart the things a lease carries: tokens, slots, and further
// units by their names.
type resource string

const (
	tokens resource = ""
	slots  resource = "4 concurrent" // no name of a unit has a blank
)

// contract is what binds a prefix, with its rules worked out. All accounts that are
// bound alike share it.
type contract struct {
	guard time.Duration
	// rules are those of the policy that bind. All are these, then its rules in shadow, with
	// which they are the first listed, and then those that it has no more, which are kept
	// until they are drained.
	rules   []*contractRule
	all     []*contractRule
	listed  int
	slots   bool          // whether a rule of the policy counts slots
	named   bool          // whether a limit or a plan binds; else acts or rules of before have made the account
	class   string        // that of the plan, above which nobody is; empty for none
	classes []rankedClass // that the line names, first drained first
	bound   int           // of a line that names none; below 0 for that of the config
	lower   int64         // the percentage kept for lower classes
	shed    int           // how many may wait in all classes together; 0 for no bound
	patient time.Duration // how long one may wait; 0 for no bound
	keep    time.Duration // see Ledger.lasts; 0 until it is asked for
}

type contractRule struct {
	spec      *algo.Spec
	text      string
	plan      string // that has it; empty for none
	of        resource
	allowance algo.Allowance
	until     algo.Instant // of a rule that the policy has no more: when nothing can be left of it
	shadow    *algo.Spec   // of a rule in shadow: as it would bind

	// Of a fixed rule: what its windows go by, and the specs while guards are wider.
	dial  *dial
	wider map[time.Duration]*algo.Spec
}

func newContract(b Binding, ppm int64, d *dial) *contract {
	c := &contract{guard: b.Guard(), named: b != Binding{}, bound: -1, lower: defaultLower}
	if b.Limit != nil && !b.Limit.Shadow {
		c.add(b.Limit.Rules, "", ppm, d)
	}
	if b.Plan != nil {
		c.add(b.Plan.Rules, b.Plan.Name, ppm, d)
	}
	if b.Limit != nil && b.Limit.Shadow {
		c.addShadow(b.Limit.Rules, ppm, d)
	}
	return c
}

// order takes up what the binding says of the line, in the order of a policy's classes.
func (c *contract) order(b Binding, p *Policy) {
	if b.Plan != nil {
		c.class = b.Plan.Class
	}
	if b.Limit == nil {
		return
	}
	line := &b.Limit.Waiting
	c.patient = line.ShedAfter
	sum := 0
	for _, class := range line.Classes {
		sum += class.Bound
		if class.Name == "" {
			c.bound = class.Bound
			continue
		}
		rank, _ := p.Rank(class.Name)
		c.classes = append(c.classes, rankedClass{class, rank})
		c.lower = line.Lower
	}
	if line.ShedShare > 0 {
		c.shed = max(1, sum*int(line.ShedShare)/100)
	}
}

func (c *contract) add(rules []algo.Rule, plan string, ppm int64, d *dial) {
	for _, r := range rules {
		if r.Kind == algo.Unlimited {
			continue // it counts nothing, so it has no window
		}
		of := resource(r.Unit)
		if !r.CountsTokens() {
			of, c.slots = slots, true
		}
		rule := &contractRule{text: r.String(), plan: plan, of: of, allowance: algo.Allowance{Guard: c.guard, PPM: ppm}}
		rule.spec = rule.compile(r, rule.allowance)
		if r.Kind == algo.Fixed {
			rule.dial = d
		}
		c.rules = append(c.rules, rule)
	}
	c.all, c.listed = c.rules, len(c.rules)
}

// compile works the rule out. One in shadow, or that the policy has no more, binds nobody.
func (r *contractRule) compile(rule algo.Rule, a algo.Allowance) *algo.Spec {
	spec := algo.Compile(rule, a)
	if r.until != 0 || r.shadow != nil {
		return spec.Unbound()
	}
	return spec
}

// current is the spec that windows of the rule are under.
func (r *contractRule) current() *algo.Spec {
	if r.dial != nil {
		return r.under(r.dial.Apart)
	}
	return r.spec
}

// planned is what the name of a rule of a plan begins with.
const planned = "plan "

// name tells a rule apart from the others of its prefix, in a record: a plan may have
// the very rule that the limit has.
func (r *contractRule) name() string {
	if r.plan == "" {
		return r.text
	}
	return planned + r.text
}

// quota says that the rule is a quota, for a day or more of the calendar, and no rate.
func (r *contractRule) quota() bool {
	rule := r.spec.Rule()
	return rule.Kind == algo.Fixed && rule.Span() >= 24*time.Hour
}

// account is what the ledger knows of one limited prefix: its windows, the
// leases that hold from it, and who waits. It is complete by itself. There may
// be millions: what only one in use needs lies apart.
type account struct {
	key      Key
	contract *contract
	windows  []algo.Window // one per rule of the contract, in its order
	*busy
	copied *copies // nil for none
	cast   []cast  // by its rules in shadow; nil for nothing yet
	place  uint32  // in Ledger.order
	change uint32  // its place in the turn's changes
	// written is the ledger's generation since which the mirror has all of it but its last
	// change; with another, all of it is to be written.
	written uint16
	dirty   bool // its line is to be served this turn
	touched bool // it changed this turn
	used    bool // it may come to rest at the end of this turn
	kept    bool // it counts as one of the keys in memory
	renamed bool // its rules are others than the mirror has: all of it is to be written
}

// busy is what an account has while it is in use.
type busy struct {
	leases   []*lease
	line     line
	slots    map[Holder]int64        // held, by holder
	recalled map[Holder]algo.Instant // when it was asked for tokens, while others wait
	// blocked is until when nothing is granted, since the record may lack what was recorded
	// last; 0 for not.
	blocked algo.Instant
	trusted uint64 // while it is blocked: the number of the last epoch whose record is in no such doubt
	acts    *acts  // nil for none
}

// resting is the busy part of all accounts at rest. It is never written to:
// Ledger.use gives an account one of its own.
var resting busy

// copies are the marks of each window as the mirror has them.
type copies [][]algo.Mark

func accountKey(a *account) Key { return a.key }

func newAccount(now algo.Instant, key Key, c *contract) *account {
	a := &account{key: key, contract: c, windows: make([]algo.Window, len(c.all)), busy: &resting}
	for i, r := range c.all {
		a.windows[i] = r.fresh(now)
	}
	return a
}

// counts says that a rule of the policy that binds counts the resource, lists that one of the
// policy does, also in shadow, and has that any rule does.
func (a *account) counts(of resource) bool { return counting(a.contract.rules, of) }
func (a *account) lists(of resource) bool  { return counting(a.contract.list(), of) }
func (a *account) has(of resource) bool    { return counting(a.contract.all, of) }

func counting(rules []*contractRule, of resource) bool {
	return slices.ContainsFunc(rules, func(r *contractRule) bool { return r.of == of })
}

// free is what every window of the resource has free.
func (a *account) free(now algo.Instant, of resource) int64 {
	n := int64(math.MaxInt64)
	if a.blocked != 0 && a.counts(of) {
		return 0
	}
	for i, r := range a.contract.rules {
		if r.of == of {
			w, now := a.window(i, now)
			n = min(n, w.Free(now))
		}
	}
	return n
}

func (a *account) take(now algo.Instant, of resource, n int64) {
	a.each(of, n, func(i int) {
		w, now := a.window(i, now)
		w.Take(now, n)
	})
}

func (a *account) giveBack(now algo.Instant, of resource, n int64) {
	a.each(of, n, func(i int) {
		w, now := a.window(i, now)
		w.Return(now, n)
	})
}

func (a *account) settle(now algo.Instant, of resource, n int64, at algo.Instant) {
	a.each(of, n, func(i int) {
		at := a.contract.all[i].dated(at, now)
		w, now := a.window(i, now)
		w.Settle(now, n, at)
	})
}

func (a *account) each(of resource, n int64, do func(i int)) {
	if n == 0 {
		return
	}
	for i, r := range a.contract.all {
		if r.of == of {
			do(i)
		}
	}
}

// never gives the rule that could not ever grant need.
func (a *account) never(need Amount) (*contractRule, bool) {
	for _, r := range a.contract.rules {
		n := need.of(r.of)
		if n > 0 && n > r.spec.Max() {
			return r, true
		}
	}
	return nil, false
}

// wait says how long until n of the resource are free and which rule that is,
// if nobody else takes and held ones are settled as due says. Free only grows
// while nobody takes, so the longest wait of the windows is exact.
func (a *account) wait(now algo.Instant, of resource, n int64, due []algo.Due) (longest time.Duration, binds *contractRule) {
	for i, r := range a.contract.rules {
		if r.of != of {
			continue
		}
		if d, ok := a.waitAt(i, now, n, due); !ok {
			return math.MaxInt64, r
		} else if d > longest {
			longest, binds = d, r
		}
	}
	return longest, binds
}

// due lists when the leases' unspent amounts expire, soonest first.
func (a *account) due(of resource) []algo.Due {
	due := make([]algo.Due, 0, len(a.leases))
	for _, le := range a.leases {
		if p := le.part(of); p != nil && p.rest() > 0 {
			due = append(due, algo.Due{At: p.Expires, N: p.rest()})
		}
	}
	slices.SortFunc(due, func(x, y algo.Due) int { return int(x.At.Sub(y.At)) })
	return due
}

// quiet says that nobody holds from the account nor waits, that it grants, and that no act
// has left anything.
func (a *account) quiet() bool {
	return len(a.leases) == 0 && a.line.len() == 0 && a.blocked == 0 && a.acts == nil
}

// idle says that the account is equal to a fresh one. It looks at every window,
// since one that is looked at lets go of what has come back.
func (a *account) idle(now algo.Instant) bool {
	idle := a.quiet()
	for i := range a.windows {
		w, now := a.window(i, now)
		idle = w.Idle(now) && idle
	}
	return idle
}

func (a *account) at() *uint32 { return &a.place }

// hold adds n slots to what a holder has, or takes them off.
func (a *account) hold(h Holder, n int64) {
	if n == 0 || !a.contract.slots {
		return
	}
	if a.slots == nil {
		a.slots = map[Holder]int64{}
	}
	if a.slots[h] += n; a.slots[h] == 0 {
		delete(a.slots, h)
	}
}

func (m *Amount) of(r resource) int64 {
	switch r {
	case tokens:
		return m.Tokens
	case slots:
		return m.Slots
	}
	return m.Units.Of(string(r))
}

// lasting reckons everything held of the resource as settled in one piece after
// ttl.
func (a *account) lasting(now algo.Instant, of resource, ttl time.Duration) []algo.Due {
	for i, r := range a.contract.rules {
		if held := a.windows[i].Held(); r.of == of && held > 0 {
			return []algo.Due{{At: now.Add(ttl), N: held}}
		}
	}
	return nil
}
