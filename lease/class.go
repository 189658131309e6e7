package lease

import (
	"cmp"
	"slices"
	"time"

	"ration/algo"
)

// class is what a line knows of one of its classes. A line that names none has those of
// the policy as they come.
type class struct {
	name     string
	rank     int
	bound    int   // of those that counts has; below 0 where the whole line has one bound
	standing int   // who stand here
	counts   int   // those of them that lacked something here when they came
	tokens   int64 // that they need
	granted  int64
	refused  int64

	flows   map[Holder]*flow // see fair; nil while nobody waits
	active  int              // flows that wait
	started algo.Instant     // the latest start of those who were granted
	speed   measure
	credit  time.Duration // see lift
	price   time.Duration // what credit was too little for, when it was last looked at
}

// rankedClass is a class that a contract names.
type rankedClass struct {
	LineClass
	rank int
}

// classify settles the class of a request: the one that it names, or the lowest, but none
// above that of a plan. It refuses a class that no line has.
func (l *Ledger) classify(w *waiter) (Refusal, bool) {
	all := l.policy.Classes
	if len(all) == 0 {
		w.rank, w.class = 0, "" // it may have come under another policy
		return Refusal{}, false // nobody tells them apart
	}
	rank, named := l.policy.Rank(w.req.Class)
	switch {
	case named:
	case w.req.Class != "":
		return Refusal{Reason: ErrUnknownClass, Key: w.req.Keys[0], Class: w.req.Class}, true
	case slices.ContainsFunc(w.accounts, func(a *account) bool { return a.contract.class != "" }):
	default:
		rank = len(all) - 1
	}
	for _, a := range w.accounts {
		if of, ok := l.policy.Rank(a.contract.class); ok {
			rank = max(rank, of)
		}
	}
	w.rank, w.class = rank, all[rank]
	return Refusal{}, false
}

// classAt finds or makes the class of a line in which w stands there: the lowest that is
// not below its own, or else the highest.
func (a *account) classAt(w *waiter) *class {
	want := rankedClass{LineClass{w.class, -1}, w.rank}
	if c := a.contract.classOf(w.rank); c != nil {
		want = *c
	}
	at, found := slices.BinarySearchFunc(a.line.classes, want, func(c *class, want rankedClass) int {
		return cmp.Or(cmp.Compare(c.rank, want.rank), cmp.Compare(c.name, want.Name))
	})
	if !found {
		a.line.classes = slices.Insert(a.line.classes, at, &class{name: want.Name, rank: want.rank, bound: want.Bound})
	}
	return a.line.classes[at]
}

// tokensAbove is what waiters of higher classes need.
func (n *line) tokensAbove(rank int) (sum int64) {
	for _, c := range n.classes {
		if c.rank < rank {
			sum += c.tokens
		}
	}
	return sum
}

// leave takes w out of the class.
func (c *class) leave(l *Ledger, w *waiter, p post) {
	if c.tokens -= l.lineShare(w.req.Need.Tokens); p.counts {
		c.counts--
	}
	if w.payer == c && !w.served {
		c.credit += w.paid
	}
	c.price = 0
	l.flowOut(c, w, p.share)
	if c.standing--; c.standing == 0 {
		c.flows, c.active, c.started, c.credit = nil, 0, 0, 0
	}
}

// classOf is the class of a rank, of those that the contract names; nil if it names none.
func (c *contract) classOf(rank int) (of *rankedClass) {
	for i := range c.classes {
		if i == 0 || c.classes[i].rank <= rank {
			of = &c.classes[i]
		}
	}
	return of
}

// boundOf is how many of a rank the policy lets wait; below 0 if it does not say.
func (c *contract) boundOf(rank int) int {
	if of := c.classOf(rank); of != nil {
		return of.Bound
	}
	return c.bound
}

// full says that no more who lack something may come to stand in the class of w, and how
// many may.
func (l *Ledger) full(a *account, c *class) (bound int, full bool) {
	if c.bound >= 0 {
		return c.bound, c.counts >= c.bound
	}
	bound = l.config.Line
	if a.contract.bound >= 0 {
		bound = a.contract.bound
	}
	counts := 0
	for _, c := range a.line.classes {
		counts += c.counts
	}
	return bound, counts >= bound
}

// tally counts what became of a request, in the lines of its accounts and in all, where
// classes are told apart.
func (l *Ledger) tally(w *waiter, granted bool) {
	if w.class == "" {
		return
	}
	count := func(c *class) {
		if granted {
			c.granted++
		} else {
			c.refused++
		}
	}
	for _, a := range w.accounts {
		if a.busy != &resting { // as it may be while w waited for the end of a pause
			count(a.classAt(w))
		}
	}
	count(l.total(w))
}

// total is what is known of the class of w in all lines together.
func (l *Ledger) total(w *waiter) *class {
	at, found := slices.BinarySearchFunc(l.classes, w.class, func(c *class, name string) int { return cmp.Compare(c.name, name) })
	if !found {
		l.classes = slices.Insert(l.classes, at, &class{name: w.class})
	}
	return l.classes[at]
}
