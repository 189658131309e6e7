package main

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"ration/algo"
	"ration/bus"
	"ration/lease"
)

// document is the status as JSON: over NATS, and for status --json. Fields are
// added over time and never renamed.
type document struct {
	V       int    `json:"v"`
	Cell    string `json:"cell"`
	Leader  string `json:"leader"`
	Version string `json:"version"`
	State   string `json:"state"` // where it is kept: memory
	// Divided is into how many partitions the cell is divided. Of them Partitions has
	// those that were asked: all, or that of the key.
	Divided    int         `json:"divided"`
	Partitions []partition `json:"partitions"`
	Leases     int         `json:"leases"`
	Waiting    int         `json:"waiting"`
	Held       amount      `json:"held"`
	// Classes are those of the policy, first drained first, in all lines together.
	Classes []classState `json:"classes,omitempty"`
	// Problem says what is wrong with the policy file of a coordinator, which is not taken.
	Problem string `json:"policy_problem,omitempty"`
	// Clock is there while calendar time and the wall clock differ.
	Clock *clockState `json:"clock,omitempty"`
	Keys  []keyState  `json:"keys"`
	// Unknown says that no limit names the key that was asked for, so that it
	// is refused.
	Unknown bool `json:"unknown,omitempty"`
	// More says how many further keys there are.
	More int `json:"more"`
}

// clockState says in nanoseconds how far calendar time, which fixed rules go by, and
// the wall clock differ.
type clockState struct {
	// Ahead is how far the wall clock is ahead of calendar time; behind if negative.
	Ahead int64 `json:"ahead"`
	// Wider is how much wider the guards of fixed rules are for that.
	Wider int64 `json:"wider"`
}

type partition struct {
	N      int    `json:"n"`
	Leader string `json:"leader"`
	Epoch  uint64 `json:"epoch"`
	// Policy is the revision of the policy in force.
	Policy uint64 `json:"policy,omitempty"`
	// Problem says why nothing is known of the partition, if so.
	Problem string `json:"problem,omitempty"`
	// Behind is there while promise 1 is off.
	Behind *behindState `json:"behind,omitempty"`
}

type amount struct {
	Tokens int64 `json:"tokens"`
	Slots  int64 `json:"slots"`
	// Units are those besides calls, by name.
	Units map[string]int64 `json:"units,omitempty"`
}

func newAmount(m lease.Amount) amount {
	a := amount{Tokens: m.Tokens, Slots: m.Slots}
	for _, u := range m.Units {
		if a.Units == nil {
			a.Units = map[string]int64{}
		}
		a.Units[u.Unit] = u.N
	}
	return a
}

// add adds what another partition has.
func (a *amount) add(b amount) {
	a.Tokens += b.Tokens
	a.Slots += b.Slots
	for unit, n := range b.Units {
		if a.Units == nil {
			a.Units = map[string]int64{}
		}
		a.Units[unit] += n
	}
}

// keyState is one limited key: Key, or Key64 in base64 if it is not UTF-8.
type keyState struct {
	Key     string        `json:"key,omitempty"`
	Key64   []byte        `json:"key64,omitempty"`
	Windows []windowState `json:"windows"`
	Holders []holderState `json:"holders"`
	Waiting int           `json:"waiting"`
	// Pause is there while an operator has paused the key.
	Pause *pauseState `json:"pause,omitempty"`
	// Classes are those of the line, first drained first.
	Classes []classState `json:"classes,omitempty"`
}

// classState is a class of a line, or of all: how many requests of it wait, were granted
// and were refused; of a key since that came into use.
type classState struct {
	Class   string `json:"class"`
	Bound   *int   `json:"bound,omitempty"` // of those that wait
	Waiting int    `json:"waiting"`
	Granted int64  `json:"granted"`
	Refused int64  `json:"refused"`
}

func classStates(all []lease.ClassStatus) (states []classState) {
	for _, c := range all {
		s := classState{Class: c.Name, Waiting: c.Waiting, Granted: c.Granted, Refused: c.Refused}
		if c.Bound >= 0 {
			s.Bound = &c.Bound
		}
		states = append(states, s)
	}
	return states
}

// addClasses adds what another partition has of each class.
func (d *document) addClasses(other []classState) {
	for _, c := range other {
		i := slices.IndexFunc(d.Classes, func(mine classState) bool { return mine.Class == c.Class })
		if i < 0 {
			d.Classes = append(d.Classes, c)
			continue
		}
		mine := &d.Classes[i]
		mine.Waiting, mine.Granted, mine.Refused = mine.Waiting+c.Waiting, mine.Granted+c.Granted, mine.Refused+c.Refused
	}
}

// windowState is one rule: free + held + spent = limit. A rule without a limit
// has neither limit nor free.
type windowState struct {
	Rule string `json:"rule"`
	// Plan is the plan that has the rule; empty if the limit has it.
	Plan  string `json:"plan,omitempty"`
	Limit *int64 `json:"limit,omitempty"`
	Free  *int64 `json:"free,omitempty"`
	Held  int64  `json:"held"`
	Spent int64  `json:"spent"`
	// Shadow says that the rule binds nobody: held and spent may be more than the limit.
	// WouldRefuse is what it would have refused of what was spent.
	Shadow      bool  `json:"shadow,omitempty"`
	WouldRefuse int64 `json:"would_refuse,omitempty"`
	// FullIn is in how many nanoseconds all is free if nobody takes.
	FullIn int64 `json:"full_in"`
}

type holderState struct {
	Holder string `json:"holder"`
	amount
}

func newDocument(s lease.Status) *document {
	d := &document{
		V:       bus.Format,
		Leases:  s.Leases,
		Waiting: s.Waiting,
		Held:    newAmount(s.Held),
		Classes: classStates(s.Classes),
		Keys:    []keyState{},
		More:    s.More,
	}
	if c := s.Clock; c.Ahead != 0 {
		d.Clock = &clockState{Ahead: int64(c.Ahead), Wider: int64(c.Wider)}
	}
	for _, k := range s.Keys {
		d.Keys = append(d.Keys, newKeyState(k, s.Instant))
	}
	return d
}

func newKeyState(k lease.KeyStatus, now algo.Instant) keyState {
	ks := keyState{
		Waiting: k.Waiting, Classes: classStates(k.Classes), Pause: newPauseState(k.Pause, now),
		Windows: []windowState{}, Holders: []holderState{},
	}
	if utf8.ValidString(string(k.Key)) {
		ks.Key = string(k.Key)
	} else {
		ks.Key64 = []byte(k.Key)
	}
	for _, w := range k.Windows {
		ws := windowState{Rule: w.Rule, Plan: w.Plan, Held: w.Held, Spent: w.Spent, Shadow: w.Shadow, WouldRefuse: w.WouldRefuse, FullIn: int64(w.Full)}
		if w.Rule != algo.Unlimited.String() {
			ws.Limit, ws.Free = &w.Limit, &w.Free
		}
		ks.Windows = append(ks.Windows, ws)
	}
	for _, h := range k.Holders {
		ks.Holders = append(ks.Holders, holderState{h.Holder.String(), newAmount(h.Held)})
	}
	return ks
}

// name is the key's bytes.
func (k *keyState) name() string {
	if k.Key64 != nil {
		return string(k.Key64)
	}
	return k.Key
}

// parseDocument reads what a coordinator answered.
func parseDocument(body []byte) (*document, error) {
	d := &document{}
	if err := json.NewDecoder(strings.NewReader(string(body))).Decode(d); err != nil {
		return nil, err
	}
	return d, nil
}
