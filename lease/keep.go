package lease

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"ration/algo"
)

// Who lacks nothing but one thing is kept that thing; else a large request would be
// overtaken there for ever. Who lacks several is kept nothing at first, so that it
// holds nobody back who could go on where it could not. But those who lack only one of
// them overtake it again and again: so once it has been its turn for soon, all that it
// needs is kept for it. That costs the others little, by three bounds.
//
//   - Of a rule it is kept what it needs, and no more.
//   - It may have all when everything that it lacks has come back, if nobody else
//     takes. Call that its turn. A rule that has all back in less than is left until
//     then is free to everybody: what they take now is back by then. And of any rule
//     others may take what will be there at its turn beyond its need.
//   - Slots are kept within soon of its turn, since nobody knows when one comes back.
//     And while it lacks one it is kept nothing that comes within soon anyhow, unless it
//     has been its turn for much longer.
//
// And nobody is overtaken for ever. Of the rules that it lacks, the one that is longest
// in having all back is kept from the beginning, as its turn is no further away; what
// is held of it now comes within a TTL. So the turn comes nearer, until the next longest
// rule is kept, and so on, and at the end slots, of which one comes when a call ends or
// is recalled.

// soon is for how long it is somebody's turn before all is kept for it, and how long
// before it may have the rest slots are kept.
const soon = 2 * time.Second

// claim is what a waiter may have kept for it, as of when it was last tried.
type claim struct {
	need   Amount
	since  algo.Instant // when nothing of what it lacks was kept for others any more
	first  bool         // nothing is: since holds
	turn   algo.Instant // when it may have all, at the soonest
	begins algo.Instant // when more is kept for it than now
}

// claim settles what is kept for w, which lacks something.
func (l *Ledger) claim(w *waiter, need Amount, lacks []lack) {
	was := w.claim
	w.claim = claim{need: need, since: was.since, first: true, turn: later(l.now, soonest(l.now, lacks)), begins: math.MaxInt64}
	for _, k := range lacks {
		w.claim.first = w.claim.first && !k.kept
	}
	if !was.first {
		w.claim.since = l.now
	}
	looser := was.turn < w.claim.turn || !was.need.Equal(need)
	for _, a := range w.accounts {
		keeps := false
		for i, r := range a.contract.rules {
			switch at := l.keptFrom(w, a, r, lacks); {
			case at <= l.now:
				keeps = l.keep(a, i, w) || keeps
			default:
				w.claim.begins = min(w.claim.begins, at)
				l.unkeep(a, i, w)
			}
		}
		if keeps && looser {
			l.stir(a)
		}
	}
}

// keptFrom is from when on what w needs of a rule is kept for it, as things are.
func (l *Ledger) keptFrom(w *waiter, a *account, r *contractRule, lacks []lack) algo.Instant {
	c := &w.claim
	need := c.need.of(r.of)
	if !c.first || need == 0 {
		return math.MaxInt64
	}
	within := soon
	if r.of != slots {
		within = l.back(a, r)
	}
	kept := c.turn.Add(-within)
	switch slotless := slices.ContainsFunc(lacks, func(k lack) bool { return k.of == slots }); {
	case len(lacks) > 1 || lacks[0].account != a || lacks[0].of != r.of:
		since := c.since.Add(soon)
		if slotless && r.of != slots && portion(within, need, r.spec.Max()) <= soon {
			since = c.since.Add(10 * soon)
		}
		return max(since, kept)
	case slotless:
		return c.since // it lacks nothing else
	default:
		return max(c.since, kept)
	}
}

// back is in how long a rule has surely all back that was spent, its allowance
// included; of a pace, also what is held.
func (l *Ledger) back(a *account, r *contractRule) time.Duration {
	rule, guard := r.spec.Rule(), a.contract.guard
	whole := rule.Span()
	switch rule.Kind {
	case algo.Counter: // what one period counts is less and less of the next
		whole *= 2
	case algo.Bucket:
		whole = portion(whole, rule.Burst, rule.Limit)
	case algo.Pace:
		whole += portion(guard, rule.Limit, 1) + l.config.TokenTTL
	}
	clocks := (whole/1_000_000 + 1) * time.Duration(l.config.PPM)
	return whole + clocks + whole/512 + 2*guard // a mark is a 1,024th late at most
}

// portion is d*n/of, or a hundred years if it is more.
func portion(d time.Duration, n, of int64) time.Duration {
	const most = 100 * 365 * 24 * time.Hour
	hi, lo := bits.Mul64(uint64(d), uint64(n))
	if hi >= uint64(of) {
		return most
	}
	quo, _ := bits.Div64(hi, lo, uint64(of))
	return time.Duration(min(quo, uint64(most)))
}

// keep makes w the keeper of a rule unless somebody before it is, and says whether it
// is.
func (l *Ledger) keep(a *account, rule int, w *waiter) bool {
	if a.line.keepers == nil {
		a.line.keepers = make([]*waiter, len(a.contract.rules))
	}
	k := a.line.keepers[rule]
	if k == nil || w.before(k) {
		a.line.keepers[rule] = w
	}
	if k != nil && w.before(k) {
		for _, a := range k.accounts { // it may keep less elsewhere now
			l.stir(a)
		}
	}
	return a.line.keepers[rule] == w
}

func (l *Ledger) unkeep(a *account, rule int, w *waiter) {
	if a.line.keepers != nil && a.line.keepers[rule] == w {
		a.line.keepers[rule] = nil
		l.stir(a)
	}
}

// keeper is for whom somewhat of a rule is kept before w, or nil.
func (n *line) keeper(rule int, w *waiter) *waiter {
	if n.keepers == nil {
		return nil
	}
	if k := n.keepers[rule]; k != nil && k.before(w) {
		return k
	}
	return nil
}

// keeps says that something of the resource is kept for w at a.
func (a *account) keeps(of resource, w *waiter) bool {
	for i, k := range a.line.keepers {
		if k == w && a.contract.rules[i].of == of {
			return true
		}
	}
	return false
}

// forsake lets w keep nothing any more, and says whether it kept anything.
func (n *line) forsake(w *waiter) (kept bool) {
	for i, k := range n.keepers {
		if k == w {
			n.keepers[i], kept = nil, true
		}
	}
	return kept
}

// allows says whether n of a rule are free to w now, and if not, whether that is, or
// will be, for somebody before it.
func (l *Ledger) allows(a *account, rule int, n int64, w *waiter) (free, kept bool) {
	k, now := a.line.keeper(rule, w), a.freeAt(rule, l.now)
	switch {
	case now < n:
		return false, k != nil
	case k == nil:
		return true, false
	}
	r := a.contract.rules[rule]
	switch {
	case r.spec.Gap() > 0:
		return false, true // all or nothing is free of a pace
	case now-n >= a.keptFor(r.of, k, w):
		return true, false
	}
	spared := l.spared(a, rule, n, k, w)
	return spared, !spared
}

// keptFor is how many of a resource are kept from w where k is the keeper: what that needs.
// But what is left over by one of a higher class serves the next of that class, and not
// a lower one, or large requests of a high class would go without for small ones of a low.
func (a *account) keptFor(of resource, k, w *waiter) int64 {
	need := k.claim.need.of(of)
	if w.rank > k.rank && of == tokens {
		need = max(need, a.line.tokensAbove(w.rank))
	}
	return need
}

// spared says that n of a rule, taken now and held for a token TTL, are not missed when
// it is the keeper's turn.
func (l *Ledger) spared(a *account, rule int, n int64, k, w *waiter) bool {
	r := a.contract.rules[rule]
	if r.of == slots {
		return false
	}
	d, ok := a.waitAt(rule, l.now, a.keptFor(r.of, k, w)+n, a.lasting(l.now, r.of, l.config.TokenTTL))
	return ok && d <= k.claim.turn.Sub(l.now)
}

// opens is when passing time alone may have freed n of a resource to w. What is held is
// reckoned to stay held for a token TTL: whatever changes it stirs the account anyhow.
func (l *Ledger) opens(a *account, of resource, n int64, w *waiter) algo.Instant {
	at := l.now + 1
	due := a.lasting(l.now, of, l.config.TokenTTL)
	for i, r := range a.contract.rules {
		if r.of != of {
			continue
		}
		m := n
		switch k := a.line.keeper(i, w); {
		case k == nil:
		case r.spec.Gap() > 0:
			return math.MaxInt64 // the keeper's leaving stirs the account
		case !l.spared(a, i, n, k, w):
			m += a.keptFor(of, k, w)
		}
		d, ok := a.waitAt(i, l.now, m, due)
		if !ok {
			return math.MaxInt64
		}
		at = max(at, later(l.now, d))
	}
	return at
}
