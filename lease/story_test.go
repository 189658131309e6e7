package lease_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// TestStories plays the scripts in testdata/stories: whole lives of leases, in
// virtual time, with one holder's message or a step of time a command.
//
//	policy                    a ledger under the policy given as input
//	ask ID [key= want= need= slots= units= wantunits= class= patience= sent=]    one copy of a request
//	report HOLDER [heartbeat goodbye sent=]             input: a line per lease
//	    ID [key= spent=COUNT[+UNITS]@AGE,... returned= back=UNITS freed= cut= over= overunits=UNITS]
//	    give up ID
//	pass D                    time passes; what comes about by itself is shown
//	status                    the windows
//	stats NAME...             those counts that are not zero
//	pause KEY [for=D reason=R by=W], resume KEY, reset KEY, charge KEY id=ID n=N [unit=U age=D]
//	restore                   another ledger takes over from the records
//
// The file scenarios has B49, B70, B71, B74, B76, B77 and B79.
//
// An ID is holder/sequence. Keys default to k, needs to 1 token. UNITS are written
// as 1200tokens, several joined by +.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &story{t: t, now: start, records: mirrored{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			return s.play(d)
		})
	})
}

type story struct {
	t       *testing.T
	policy  *lease.Policy
	ledger  *lease.Ledger
	now     algo.Instant
	records mirrored
	tickets map[lease.Ticket]string
}

func (s *story) play(d *datadriven.TestData) string {
	switch d.Cmd {
	case "policy":
		s.policy = policy(s.t, d.Input)
		s.ledger = lease.NewLedger(s.policy, lease.DefaultConfig())
		s.tickets = map[lease.Ticket]string{}
		clear(s.records)
		return ""
	case "ask":
		return s.ask(d)
	case "report":
		return s.report(d)
	case "pass":
		return s.pass(duration(s.t, d.CmdArgs[0].Key))
	case "status":
		return s.status()
	case "stats":
		return s.stats(d)
	case "restore":
		return s.restore()
	case "pause", "resume", "reset", "charge":
		return s.act(d)
	}
	d.Fatalf(s.t, "unknown command %s", d.Cmd)
	return ""
}

func (s *story) id(text string) lease.ID {
	name, seq, ok := strings.Cut(text, "/")
	require.True(s.t, ok, "%q is no id", text)
	return lease.ID{Holder: holder(name), Seq: uint64(number(s.t, seq))}
}

func holder(name string) lease.Holder {
	name, incarnation, _ := strings.Cut(name, "#")
	n, err := strconv.ParseUint(incarnation, 10, 64)
	if err != nil {
		n = 1
	}
	return lease.Holder{Name: name, Incarnation: n}
}

func (s *story) ask(d *datadriven.TestData) string {
	r := &lease.Request{
		ID:   s.id(d.CmdArgs[0].Key),
		Keys: []lease.Key{"k"},
		Need: lease.Amount{Tokens: 1},
		Sent: s.now.Sub(start),
	}
	wantSlots := int64(-1)
	for _, a := range d.CmdArgs[1:] {
		switch a.Key {
		case "key":
			r.Keys = nil
			for _, v := range a.Vals {
				r.Keys = append(r.Keys, lease.Key(v))
			}
		case "want":
			r.Want.Tokens = number(s.t, a.Vals[0])
		case "need":
			r.Need.Tokens = number(s.t, a.Vals[0])
		case "slots":
			r.Need.Slots = number(s.t, a.Vals[0])
		case "wantslots":
			wantSlots = number(s.t, a.Vals[0])
		case "units":
			r.Need.Units = units(s.t, a.Vals[0])
		case "wantunits":
			r.Want.Units = units(s.t, a.Vals[0])
		case "patience":
			r.Patience = duration(s.t, a.Vals[0])
		case "class":
			r.Class = a.Vals[0]
		case "sent": // so long ago
			r.Sent -= duration(s.t, a.Vals[0])
		default:
			d.Fatalf(s.t, "unknown argument %s", a.Key)
		}
	}
	r.Want.Tokens = max(r.Want.Tokens, r.Need.Tokens)
	r.Want.Slots = max(wantSlots, r.Need.Slots)
	if r.Want.Units == nil {
		r.Want.Units = r.Need.Units
	}
	require.NoError(s.t, r.Validate())
	return s.turn(lease.Message{Request: r}, d.CmdArgs[0].Key)
}

func (s *story) report(d *datadriven.TestData) string {
	r := &lease.Report{Holder: holder(d.CmdArgs[0].Key), Sent: s.now.Sub(start)}
	for _, a := range d.CmdArgs[1:] {
		switch a.Key {
		case "heartbeat":
			r.Heartbeat = true
		case "goodbye":
			r.Goodbye = true
		default:
			d.Fatalf(s.t, "unknown argument %s", a.Key)
		}
	}
	for _, line := range strings.Split(d.Input, "\n") {
		words := strings.Fields(line)
		if words[0] == "give" {
			r.GivenUp = append(r.GivenUp, lease.GivenUp{ID: s.id(words[2]), Keys: []lease.Key{"k"}})
			continue
		}
		c := lease.Count{ID: s.id(words[0]), Keys: []lease.Key{"k"}}
		for _, w := range words[1:] {
			name, value, _ := strings.Cut(w, "=")
			switch name {
			case "key":
				c.Keys = nil
				for _, k := range strings.Split(strings.Trim(value, "()"), ",") {
					c.Keys = append(c.Keys, lease.Key(k))
				}
			case "returned":
				c.Returned = number(s.t, value)
			case "back":
				c.ReturnedUnits = units(s.t, value)
			case "freed":
				c.Freed = number(s.t, value)
			case "cut":
				c.Cut = number(s.t, value)
			case "over":
				c.Over = number(s.t, value)
			case "overunits":
				c.OverUnits = units(s.t, value)
			case "spent":
				for _, p := range strings.Split(value, ",") {
					n, age, _ := strings.Cut(p, "@")
					n, of, _ := strings.Cut(n, "+")
					c.Points = append(c.Points, lease.Point{Count: number(s.t, n), Age: duration(s.t, age), Units: units(s.t, of)})
				}
			default:
				d.Fatalf(s.t, "unknown count %s", name)
			}
		}
		r.Counts = append(r.Counts, c)
	}
	require.NoError(s.t, r.Validate())
	return s.turn(lease.Message{Report: r}, d.CmdArgs[0].Key)
}

func (s *story) act(d *datadriven.TestData) string {
	a := lease.Act{Verb: lease.Verb(d.Cmd), Key: lease.Key(d.CmdArgs[0].Key)}
	for _, arg := range d.CmdArgs[1:] {
		value := strings.Join(arg.Vals, " ")
		switch arg.Key {
		case "for":
			a.For = duration(s.t, value)
		case "reason":
			a.Reason = value
		case "by":
			a.By = value
		case "id":
			a.ID = value
		case "n":
			a.N = number(s.t, value)
		case "unit":
			a.Unit = value
		case "age":
			a.Age = duration(s.t, value)
		default:
			d.Fatalf(s.t, "unknown argument %s", arg.Key)
		}
	}
	if err := a.Validate(); err != nil {
		return err.Error() + "\n"
	}
	s.load(s.ledger.Unloaded(nil, a.Key))
	acted, err := s.ledger.Act(s.now, s.now, a)
	var b strings.Builder
	switch {
	case err != nil:
		fmt.Fprintf(&b, "%v\n", err)
	case a.Verb == lease.VerbPause:
		fmt.Fprintf(&b, "paused %v; %d leases live\n", acted.Pause, acted.Leases)
	case a.Verb == lease.VerbReset:
		fmt.Fprintf(&b, "reset %d prefixes\n", acted.Reset)
	case acted.Pause != nil:
		fmt.Fprintf(&b, "was paused %v\n", acted.Pause)
	case acted.Again:
		b.WriteString("charged before\n")
	}
	return b.String() + s.show(s.ledger.Turn(s.now, nil))
}

func (s *story) load(keys []lease.Key) {
	for _, k := range keys {
		r := s.records[k]
		r.Key = k
		s.ledger.Restore(r)
	}
}

func (s *story) turn(m lease.Message, who string) string {
	m.Arrived = s.now
	m.Ticket = lease.Ticket(len(s.tickets) + 1)
	s.tickets[m.Ticket] = who
	s.load(s.ledger.Unloaded([]lease.Message{m}))
	return s.show(s.ledger.Turn(s.now, []lease.Message{m}))
}

func (s *story) pass(d time.Duration) string {
	var b strings.Builder
	end := s.now.Add(d)
	for {
		at, ok := s.ledger.Next()
		if !ok || end.Before(at) {
			break
		}
		s.now = max(s.now, at)
		if shown := s.show(s.ledger.Turn(s.now, nil)); shown != "" {
			fmt.Fprintf(&b, "at %v:\n%s", s.now.Sub(start), shown)
		}
	}
	s.now = end
	s.show(s.ledger.Turn(s.now, nil))
	return b.String()
}

func (s *story) show(t *lease.Turn) string {
	balanced(s.t, s.ledger, t.Instant)
	var b strings.Builder
	for _, r := range t.Replies {
		for _, x := range r.Reply.Renewed {
			fmt.Fprintf(&b, "renewed %s/%d: slots for %v\n", x.ID.Holder.Name, x.ID.Seq, x.SlotTTL)
		}
		for _, id := range r.Reply.Ended {
			fmt.Fprintf(&b, "ended %s/%d\n", id.Holder.Name, id.Seq)
		}
		for _, id := range r.Reply.Acknowledged {
			fmt.Fprintf(&b, "acknowledged %s/%d\n", id.Holder.Name, id.Seq)
		}
	}
	for _, a := range t.Answers {
		fmt.Fprintf(&b, "%s: %s\n", s.tickets[a.Ticket], tell(a.Answer))
	}
	for _, d := range t.Dropped {
		fmt.Fprintf(&b, "%s: dropped\n", s.tickets[d])
	}
	for _, r := range t.Recalls {
		fmt.Fprintf(&b, "recall from %s: idle tokens, %d slots\n", r.Holder.Name, r.Slots)
	}
	s.records.keep(t)
	return b.String()
}

func tell(a lease.Answer) string {
	switch a.Outcome {
	case lease.Granted:
		text := fmt.Sprintf("granted %d tokens for %v", a.Granted.Tokens, a.TokenTTL)
		if len(a.Granted.Units) > 0 {
			text = fmt.Sprintf("granted %d tokens, and %s, for %v", a.Granted.Tokens, a.Granted.Units, a.TokenTTL)
		}
		if a.Granted.Slots > 0 {
			text += fmt.Sprintf(", %d slots for %v", a.Granted.Slots, a.SlotTTL)
		}
		if a.Waited > 0 {
			text += fmt.Sprintf(", after %v in line", a.Waited-1)
		}
		return text
	case lease.Refused:
		text := "refused: " + lease.Code(a.Refusal.Reason)
		if a.Refusal.Rule != "" {
			text += " by " + a.Refusal.Rule
			if a.Refusal.Quota {
				text += ", a quota,"
			}
			if a.Refusal.Plan != "" {
				text += " of plan " + a.Refusal.Plan
			}
			text += " on " + string(a.Refusal.Key)
		}
		if a.Refusal.Pause != nil {
			text += ": " + a.Refusal.Binds()
		}
		if a.Refusal.Wait > 0 {
			text += fmt.Sprintf(", wait %v", a.Refusal.Wait)
		}
		return text
	case lease.Waiting:
		return "waiting: ask again"
	default:
		return "ended"
	}
}

func (s *story) status() string {
	var b strings.Builder
	for _, k := range s.ledger.Status(s.now, "").Keys {
		for _, w := range k.Windows {
			rule := w.Rule
			if w.Plan != "" {
				rule += " of plan " + w.Plan
			}
			fmt.Fprintf(&b, "%s %s: %d free, %d held, %d spent\n", k.Key, rule, w.Free, w.Held, w.Spent)
		}
		if k.Pause != nil {
			fmt.Fprintf(&b, "%s: paused %v\n", k.Key, k.Pause)
		}
		if k.Waiting > 0 {
			fmt.Fprintf(&b, "%s: %d waiting\n", k.Key, k.Waiting)
		}
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func (s *story) stats(d *datadriven.TestData) string {
	st := s.ledger.Stats()
	all := map[string]int64{
		"over": st.Overspent, "uover": st.UnitsOverspent,
		"granted": st.Granted, "spent": st.Spent, "returned": st.Returned, "expired": st.Expired,
		"clamped": st.Clamped, "skipped": st.PointsSkipped, "late": st.ReportedLate, "ended": st.ReportedEnded,
		"ugranted": st.UnitsGranted, "uspent": st.UnitsSpent, "ureturned": st.UnitsReturned, "uexpired": st.UnitsExpired,
		"replayed": st.Replayed, "stale": st.Stale, "early": st.GivenUpEarly, "beforegrant": st.PointsBeforeGrant,
	}
	var b strings.Builder
	for _, a := range d.CmdArgs {
		n, ok := all[a.Key]
		require.True(s.t, ok, "unknown count %s", a.Key)
		fmt.Fprintf(&b, "%s %d\n", a.Key, n)
	}
	return b.String()
}

// restore lets a new ledger take over: all it knows is the records.
func (s *story) restore() string {
	s.ledger = lease.NewLedger(s.policy, lease.DefaultConfig())
	s.ledger.Turn(s.now, nil)
	for _, r := range s.records {
		s.ledger.Restore(r)
	}
	return ""
}

// units reads units such as 1200tokens+3images.
func units(t *testing.T, text string) lease.Units {
	amounts := map[string]int64{}
	for part := range strings.SplitSeq(text, "+") {
		if name := strings.TrimLeft(part, "0123456789"); name != "" {
			amounts[name] = number(t, strings.TrimSuffix(part, name))
		}
	}
	return lease.UnitsOf(amounts)
}

func number(t *testing.T, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

func duration(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}
