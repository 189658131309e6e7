package bus

import (
	"math"

	"ration/lease"
)

var outcomes = [...]string{
	lease.Granted: "granted",
	lease.Refused: "refused",
	lease.Waiting: "waiting",
	lease.Ended:   "ended",
}

// alone writes the answer of a message with one request.
func (w *writer) alone(a *lease.Answer) {
	w.object("", func() {
		w.version()
		w.answer(a)
		w.epoch(a.Epoch)
	})
}

// answer writes what an answer has besides the epoch.
func (w *writer) answer(a *lease.Answer) {
	outcome := ""
	if int(a.Outcome) < len(outcomes) {
		outcome = outcomes[a.Outcome]
	}
	if outcome == "" {
		w.fail("outcome", "%d is no outcome", a.Outcome)
	}
	granted := a.Outcome == lease.Granted
	w.id("id", a.ID)
	w.text("outcome", outcome)
	if granted || !a.Granted.Zero() {
		w.amount("granted", a.Granted)
	}
	if granted || a.TokenTTL != 0 {
		w.duration("token_ttl", a.TokenTTL)
	}
	if granted || a.SlotTTL != 0 {
		w.duration("slot_ttl", a.SlotTTL)
	}
	if a.Policy != 0 {
		w.number("policy", int64(a.Policy))
	}
	if a.Waited != 0 {
		w.duration("waited", a.Waited)
	}
	if granted || a.Terms != (lease.Terms{}) {
		w.terms(a.Terms)
	}
	if a.Outcome == lease.Refused {
		w.refusal(a.Refusal)
	}
}

func (w *writer) terms(t lease.Terms) {
	w.object("terms", func() {
		if t.Window != 0 {
			w.duration("window", t.Window)
		}
		if t.Spacing != 0 {
			w.duration("spacing", t.Spacing)
		}
		w.flag("concurrent", t.Concurrent)
		w.flag("unlimited", t.Unlimited)
		if t.Bounded {
			w.number("line", int64(t.Line))
		}
	})
}

func (w *writer) refusal(r lease.Refusal) {
	w.object("refusal", func() {
		if r.Reason == nil {
			w.fail("refusal.reason", "it is missing")
			return
		}
		w.text("reason", lease.Code(r.Reason))
		w.text("message", r.Reason.Error())
		if r.Key != "" {
			w.key(r.Key)
		}
		if r.Rule != "" {
			w.text("rule", r.Rule)
		}
		if r.Plan != "" {
			w.text("plan", r.Plan)
		}
		if r.Quota {
			w.flag("quota", true)
		}
		if r.Class != "" {
			w.text("class", r.Class)
		}
		if r.Wait != 0 {
			w.duration("wait", r.Wait)
		}
		if r.Pause != nil {
			w.pause(r.Pause)
		}
	})
}

// decodeAnswer gives the answer, or the error that the coordinator answered.
func decodeAnswer(body []byte) (a lease.Answer, err error) {
	if err := answered(body); err != nil {
		return a, err
	}
	err = object(body, func(name string, raw []byte) (bool, error) {
		if name == "epoch" {
			return true, readEpoch(raw, &a.Epoch)
		}
		return readAnswer(name, raw, &a)
	}, "id", "outcome", "epoch")
	if err == nil {
		err = complete(body, a.Outcome)
	}
	return a, err
}

// readAnswer reads a field of an answer, but the epoch.
func readAnswer(name string, raw []byte, a *lease.Answer) (known bool, err error) {
	switch name {
	case "id":
		return true, readID(raw, &a.ID)
	case "outcome":
		return true, readOutcome(raw, &a.Outcome)
	case "granted":
		return true, readAmount(raw, &a.Granted)
	case "token_ttl":
		return true, readDuration(raw, &a.TokenTTL)
	case "slot_ttl":
		return true, readDuration(raw, &a.SlotTTL)
	case "policy":
		return true, readRevision(raw, &a.Policy)
	case "waited":
		return true, readDuration(raw, &a.Waited)
	case "terms":
		return true, readTerms(raw, &a.Terms)
	case "refusal":
		return true, readRefusal(raw, &a.Refusal)
	}
	return false, nil
}

// complete checks for the fields that an outcome cannot do without.
func complete(raw []byte, o lease.Outcome) error {
	var required []string
	switch o {
	case lease.Granted:
		required = []string{"granted", "token_ttl", "slot_ttl", "terms"}
	case lease.Refused:
		required = []string{"refusal"}
	default:
		return nil
	}
	return object(raw, func(name string, _ []byte) (bool, error) { return contains(required, name), nil }, required...)
}

func readRevision(raw []byte, to *uint64) error {
	var n int64
	err := readNumber(raw, &n)
	*to = uint64(n)
	return err
}

func readOutcome(raw []byte, to *lease.Outcome) error {
	s, err := unquote(raw)
	if err != nil {
		return err
	}
	for o, name := range outcomes {
		if name == s && name != "" {
			*to = lease.Outcome(o)
			return nil
		}
	}
	return fieldError("", "%.40q is not granted, refused, waiting or ended", s)
}

func readTerms(raw []byte, to *lease.Terms) error {
	return object(raw, func(name string, raw []byte) (bool, error) {
		switch name {
		case "window":
			return true, readDuration(raw, &to.Window)
		case "spacing":
			return true, readDuration(raw, &to.Spacing)
		case "concurrent":
			return true, readFlag(raw, &to.Concurrent)
		case "unlimited":
			return true, readFlag(raw, &to.Unlimited)
		case "line":
			var n int64
			err := readNumber(raw, &n)
			to.Bounded, to.Line = true, int(min(n, math.MaxInt32))
			return true, err
		}
		return false, nil
	})
}

func readRefusal(raw []byte, to *lease.Refusal) error {
	var reason, message string
	err := object(raw, func(name string, raw []byte) (bool, error) {
		switch name {
		case "reason":
			return true, readText(raw, &reason)
		case "message":
			return true, readText(raw, &message)
		case "key":
			return true, readKey(raw, &to.Key)
		case "key64":
			return true, readKey64(raw, &to.Key)
		case "rule":
			return true, readText(raw, &to.Rule)
		case "plan":
			return true, readText(raw, &to.Plan)
		case "quota":
			return true, readFlag(raw, &to.Quota)
		case "class":
			return true, readText(raw, &to.Class)
		case "wait":
			return true, readDuration(raw, &to.Wait)
		case "pause":
			to.Pause = new(lease.Pause)
			return true, readPause(raw, to.Pause)
		}
		return false, nil
	}, "reason")
	to.Reason = said(reason, message)
	return err
}
