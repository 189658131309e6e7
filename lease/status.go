package lease

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"ration/algo"
)

// Stats counts what a ledger has done since it began. Tokens balance at every
// moment: Granted + Adopted = Spent + Returned + Expired + what live leases hold;
// slots likewise, by SlotsFreed, SlotsCut and SlotsExpired, and further units, all
// of them added up.
type Stats struct {
	Turns    int64 // taken
	Leases   int64 // granted
	Granted  int64 // tokens
	Spent    int64 // tokens reported as spent
	Returned int64 // tokens that came back unspent
	Expired  int64 // tokens settled as spent because nobody was heard of
	Adopted  int64 // tokens held by leases that were restored
	// Overspent counts, apart from that balance, what calls used beyond what they asked
	// for, as told; UnitsOverspent likewise.
	Overspent      int64
	UnitsOverspent int64

	SlotsGranted int64
	SlotsFreed   int64
	SlotsCut     int64
	SlotsExpired int64
	SlotsAdopted int64

	UnitsGranted  int64
	UnitsSpent    int64
	UnitsReturned int64
	UnitsExpired  int64
	UnitsAdopted  int64

	Refused map[string]int64 // requests, by the code of the reason
	Waited  int64            // requests that stood in line
	Recalls int64
	Renewed int64

	Pauses         int64 // acts that paused a prefix
	Resumes        int64 // and ended a pause
	PausesOver     int64 // pauses whose time was over
	Parked         int64 // requests that waited for the end of a pause
	RecalledPaused int64 // recalls because of a pause, one for the leases of a holder on a key
	Charges        int64 // acts that charged
	ChargedAgain   int64 // charges told again
	Resets         int64 // prefixes whose spent tokens were forgotten

	Runs        int64 // leases of tokens under a pace rule
	RunsExpired int64 // runs that ended with tokens nobody had accounted for

	// What seldom happens, and must be right when it does.
	Replayed          int64 // a copy of a request that had been granted
	ReplayedAtOnce    int64 // that came in the very turn of the grant
	RecalledSome      int64 // recalls where some was free, but not enough
	Rejoined          int64 // a copy of a request that waits
	AnsweredEnded     int64 // a copy of a request that was over
	Stale             int64 // a request nobody could be waiting for any more
	Silent            int64 // waiters whose holder fell silent
	Lifted            int64 // waiters of lower classes that went before higher ones
	TimedOut          int64 // waiters whose deadline passed
	GivenUpGranted    int64 // ids given up whose grant was on its way
	GivenUpWaiting    int64 // ids given up in the line
	GivenUpEarly      int64 // ids given up before their request came
	ReportedEnded     int64 // counts about a lease that was over
	ReportedLate      int64 // counts about tokens that had expired
	PointsSkipped     int64 // points that added nothing
	PointsBeforeGrant int64 // points dated before their lease began
	Clamped           int64 // counts above what the lease held
	Doubted           int64 // keys that a mirror had lost, taken for fully spent
	TakenBack         int64 // leases whose grant was never told, since that took too long
	Charged           int64 // keys charged with what a mirror may not have
	PolicyChanges     int64 // policies that came into force
	WaitersRefused    int64 // waiters that another policy can never serve, or not in time
	RecalledOver      int64 // slots recalled since a limit was lowered below what is held
	WouldRefuse       int64 // tokens and units that were spent and a limit in shadow would have refused

	// What a bound met, besides the reasons in Refused.
	HoldersRefused int64 // messages of holders that cannot become known
	IDsFolded      int64 // ids over the bound, remembered by number alone
	AnsweredFolded int64 // requests up to the highest of those
}

func (s *Stats) refused(reason error) {
	if s.Refused == nil {
		s.Refused = map[string]int64{}
	}
	s.Refused[Code(reason)]++
}

// expired counts what counts as spent since nobody was heard of.
func (s *Stats) expired(of resource, n int64) {
	switch of {
	case tokens:
		s.Expired += n
	case slots:
		s.SlotsExpired += n
	default:
		s.UnitsExpired += n
	}
}

// Status is what a ledger holds, for people.
type Status struct {
	Instant algo.Instant
	Clock   Clock
	Keys    []KeyStatus
	// More says how many further keys there are, Live how many in all.
	More    int
	Live    int
	Leases  int
	Waiting int
	// Holders is how many are known, of each tenant apart, and Remembered how many
	// ids that are over.
	Holders    int
	Remembered int
	Held       Amount
	Stats      Stats
	// Classes are those of the policy, first drained first, in all lines together.
	Classes []ClassStatus
}

// ClassStatus is a class, of a line or of all. Of a line its counts are those since the key
// came into use.
type ClassStatus struct {
	Name string
	// Bound is how many of it may wait; of all lines together, and of a line that names no
	// classes, it is -1.
	Bound   int
	Waiting int
	Granted int64 // requests
	Refused int64 // requests
}

// KeyStatus is one limited prefix.
type KeyStatus struct {
	Key     Key
	Windows []WindowStatus
	Holders []HolderStatus
	Waiting int
	// Pause is that of the key itself, nil for none.
	Pause *Pause
	// Classes are those that the line names, first drained first, or those that have come.
	Classes []ClassStatus
}

// WindowStatus is one rule of it: Free + Held + Spent = Limit.
type WindowStatus struct {
	Rule string
	// Plan is the plan that has the rule; empty if the limit has it.
	Plan  string
	Limit int64
	Free  int64
	Held  int64
	Spent int64
	// Shadow says that the rule is in shadow, and binds nobody: held and spent may be more
	// than the limit. WouldRefuse is how much it would have refused of what was spent since
	// its key came into use here, or the rules of that changed.
	Shadow      bool
	WouldRefuse int64
	// Full is in how long all of it is free again if nobody takes.
	Full time.Duration
}

// HolderStatus is what one holder has of it.
type HolderStatus struct {
	Holder Holder
	Held   Amount
}

// statusMax bounds the keys of one Status.
const statusMax = 500

// Summary is a Status without its keys.
func (l *Ledger) Summary(now algo.Instant) Status {
	return Status{
		Instant:    max(now, l.now),
		Clock:      l.dial.status(),
		Live:       l.accounts.Len(),
		Leases:     l.leases.Len(),
		Waiting:    l.waiting.Len(),
		Holders:    l.holders.Len(),
		Remembered: l.ended.Len(),
		Held:       Amount{l.held.Tokens, l.held.Slots, slices.Clone(l.held.Units)},
		Stats:      l.Stats(),
		Classes:    l.classStatus(),
	}
}

func (l *Ledger) classStatus() (all []ClassStatus) {
	for _, name := range l.policy.Classes {
		s := ClassStatus{Name: name, Bound: -1}
		for _, c := range l.classes {
			if c.name == name {
				s.Waiting, s.Granted, s.Refused = c.standing, c.granted, c.refused
			}
		}
		all = append(all, s)
	}
	return all
}

func (a *account) classStatus() (all []ClassStatus) {
	for _, c := range a.contract.classes {
		all = append(all, ClassStatus{Name: c.Name, Bound: c.Bound})
	}
	for _, c := range a.line.classes {
		if c.name == "" {
			continue
		}
		i := slices.IndexFunc(all, func(s ClassStatus) bool { return s.Name == c.name })
		if i < 0 {
			i, all = len(all), append(all, ClassStatus{Name: c.name, Bound: -1})
		}
		all[i].Waiting, all[i].Granted, all[i].Refused = c.standing, c.granted, c.refused
	}
	return all
}

// Known is how many holders are known, of each tenant apart.
func (l *Ledger) Known() int { return l.holders.Len() }

// carry adds n to what leases hold of a resource, or takes them off.
func (l *Ledger) carry(of resource, n int64) {
	switch of {
	case tokens:
		l.held.Tokens += n
	case slots:
		l.held.Slots += n
	default:
		if l.held.Units = l.held.Units.Plus(string(of), n); len(l.held.Units) == 0 {
			l.held.Units = nil
		}
	}
}

// Status tells of the limited prefixes of a key and of those below it, or with
// an empty key of all, in order of the key, at most 500 of them. Those that nobody
// uses are left out, but for the prefixes of a key that is named. It changes
// nothing but the windows' idea of the time. Like every method of a Ledger it is
// for the goroutine that owns it.
func (l *Ledger) Status(now algo.Instant, key Key) Status {
	now = max(now, l.now)
	s := l.Summary(now)
	found, more := l.related(key)
	s.More = more
	if key != "" {
		for _, m := range l.policy.Match(key) {
			if !slices.ContainsFunc(found, func(a *account) bool { return a.key == m.Prefix }) {
				found = append(found, newAccount(now, m.Prefix, l.contract(m.Binding)))
			}
		}
		slices.SortFunc(found, func(x, y *account) int { return cmp.Compare(x.key, y.key) })
	}
	for _, a := range found {
		s.Keys = append(s.Keys, a.status(now))
	}
	return s
}

// related gives the first statusMax accounts related to a key, by their keys, and how
// many more there are. Of the others it sorts none: there may be millions.
func (l *Ledger) related(key Key) (found []*account, more int) {
	cut := func() {
		slices.SortFunc(found, func(x, y *account) int { return cmp.Compare(x.key, y.key) })
		if len(found) > statusMax {
			found = found[:statusMax]
		}
	}
	var last Key // the one that no further one may be behind, once there are enough
	n := 0
	for _, a := range l.order {
		if !related(key, a.key) {
			continue
		}
		if n++; last != "" && a.key > last {
			continue
		}
		if found = append(found, a); len(found) == 2*statusMax {
			cut()
			last = found[statusMax-1].key
		}
	}
	cut()
	return found, n - len(found)
}

// related says that b is a or a prefix of it, or lies below it.
func related(a, b Key) bool {
	return a == "" || a == b || strings.HasPrefix(string(a), string(b)+"/") || strings.HasPrefix(string(b), string(a)+"/")
}

func (a *account) status(now algo.Instant) KeyStatus {
	s := KeyStatus{Key: a.key, Windows: a.windowStatus(now), Waiting: a.line.len(), Classes: a.classStatus(), Pause: a.paused()}
	if a.acts != nil {
		s.Waiting += a.acts.parked.n
	}
	held := map[Holder]Amount{}
	for _, le := range a.leases {
		h := held[le.id.Holder]
		h.Tokens += le.tokens.rest()
		h.Slots += le.slots.rest()
		h.Units = sumUnits(h.Units, le.units, (*Part).rest)
		held[le.id.Holder] = h
	}
	for h, m := range held {
		s.Holders = append(s.Holders, HolderStatus{h, m})
	}
	slices.SortFunc(s.Holders, func(x, y HolderStatus) int {
		return cmp.Or(cmp.Compare(x.Holder.Name, y.Holder.Name), cmp.Compare(x.Holder.Incarnation, y.Holder.Incarnation))
	})
	return s
}

func (a *account) windowStatus(now algo.Instant) (all []WindowStatus) {
	for i, r := range a.contract.list() {
		if r.shadow != nil {
			all = append(all, a.shadowStatus(i, now))
			continue
		}
		w, at := a.window(i, now)
		full, _ := a.waitAt(i, now, r.spec.Max(), a.due(r.of))
		all = append(all, WindowStatus{
			Rule:  r.text,
			Plan:  r.plan,
			Limit: w.Limit(),
			Free:  w.Free(at),
			Held:  w.Held(),
			Spent: w.Spent(at),
			Full:  full,
		})
	}
	return all
}

// Stats gives the counts so far.
func (l *Ledger) Stats() Stats {
	s := l.stats
	s.Refused = map[string]int64{}
	for code, n := range l.stats.Refused {
		s.Refused[code] = n
	}
	return s
}
