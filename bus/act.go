package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"ration/algo"
	"ration/lease"
)

// actSubject is where the leader of a partition is told what operators do to keys. A reset
// may also be of its clock.
func actSubject(cell string, verb lease.Verb, n int) string {
	return root + cell + ".admin." + string(verb) + "." + strconv.Itoa(n)
}

// acts is what answers operators.
type acts struct {
	subs  []*nats.Subscription
	clerk *clerk
}

// answerActs serves what operators do, one after the other.
func (s *serving) answerActs(ctx context.Context) error {
	if s.cfg.Act == nil && s.cfg.ResetClock == nil {
		return nil
	}
	s.acts.clerk = &clerk{tells: "what was done", most: s.nc.MaxPayload()}
	for _, verb := range lease.Verbs {
		if verb != lease.VerbReset && s.cfg.Act == nil {
			continue
		}
		subject := actSubject(s.cfg.Cell, verb, s.cfg.Partition)
		s.unwatch = append(s.unwatch, s.onForbidden(subject))
		sub, err := s.nc.Subscribe(subject, func(m *nats.Msg) {
			body, err := s.act(ctx, verb, m.Data)
			if err != nil {
				body = encodeError(err)
			}
			_ = m.Respond(body) // who has no answer asks again: once more changes nothing
		})
		if err != nil {
			return fmt.Errorf("bus: subscribing to %s: %w", subject, err)
		}
		s.acts.subs = append(s.acts.subs, sub)
	}
	return nil
}

func (a *acts) close() {
	for _, sub := range a.subs {
		_ = sub.Unsubscribe() // fails only where the connection has ended it
	}
	a.clerk.close()
}

// act does what one message asks.
func (s *serving) act(ctx context.Context, verb lease.Verb, body []byte) ([]byte, error) {
	a, clock, err := decodeAct(verb, body)
	switch {
	case err != nil:
		return nil, err
	case clock && s.cfg.ResetClock != nil:
		return s.acts.clerk.answer(ctx, s.cfg.ResetClock)
	case clock || s.cfg.Act == nil:
		return nil, fmt.Errorf("%w: this coordinator does not do that", lease.ErrBadRequest)
	}
	if err := s.belongs(&question{partition: s.cfg.Partition, token: Token(a.Key.Tenant())}, nil); err != nil {
		return nil, err
	}
	return s.acts.clerk.answer(ctx, func(ctx context.Context) (any, error) { return s.cfg.Act(ctx, a) })
}

// encodeAct writes an act, without its verb, which the subject says.
func encodeAct(a *lease.Act) ([]byte, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	w := &writer{}
	w.object("", func() {
		w.version()
		w.key(a.Key)
		for _, field := range [...]struct{ name, text string }{{"reason", a.Reason}, {"by", a.By}, {"id", a.ID}, {"unit", a.Unit}} {
			if field.text != "" {
				w.text(field.name, field.text)
			}
		}
		if a.For != 0 {
			w.duration("for", a.For)
		}
		if a.N != 0 {
			w.number("n", a.N)
		}
		if a.Age != 0 {
			w.duration("age", a.Age)
		}
	})
	return w.done()
}

// decodeAct reads an act. A reset of the clock has no key, and says so, since an empty message
// is soon sent.
func decodeAct(verb lease.Verb, body []byte) (a lease.Act, clock bool, err error) {
	if err := opened(body); err != nil {
		return a, false, err
	}
	a.Verb = verb
	err = object(body, func(name string, raw []byte) (bool, error) {
		switch name {
		case "key":
			return true, readKey(raw, &a.Key)
		case "key64":
			return true, readKey64(raw, &a.Key)
		case "clock":
			return true, readFlag(raw, &clock)
		case "reason":
			return true, readText(raw, &a.Reason)
		case "by":
			return true, readText(raw, &a.By)
		case "for":
			return true, readDuration(raw, &a.For)
		case "id":
			return true, readText(raw, &a.ID)
		case "n":
			return true, readNumber(raw, &a.N)
		case "unit":
			return true, readText(raw, &a.Unit)
		case "age":
			return true, readDuration(raw, &a.Age)
		}
		return false, nil
	})
	switch {
	case err != nil:
	case clock && (verb != lease.VerbReset || a.Key != ""):
		err = fmt.Errorf("%w: clock is reset by itself, and nothing else is done to it", lease.ErrBadRequest)
	case clock:
	case a.Key == "" && verb == lease.VerbReset:
		err = fmt.Errorf("%w: it resets nothing; name a key, or let clock be true", lease.ErrBadRequest)
	case a.Key == "":
		err = fieldError("key", "it is missing")
	default:
		err = a.Validate()
	}
	return a, clock, err
}

// Act tells the leader of the key's partition what an operator does, and gives the JSON it
// answers once that is recorded. All acts may be told again. Errors are those of Acquire.
func (c *Client) Act(ctx context.Context, a lease.Act) (json.RawMessage, error) {
	message, err := encodeAct(&a)
	if err != nil {
		return nil, err
	}
	token := Token(a.Key.Tenant())
	for try := 0; ; try++ {
		body, err := c.ask(ctx, actSubject(c.cfg.Cell, a.Verb, Partition(token, int(c.partitions.Load()))), message)
		if err != nil {
			return nil, err
		}
		var elsewhere *partitionError
		switch err := told(body); {
		case err == nil:
			return body, nil
		case try < tries && errors.As(err, &elsewhere):
			c.partitions.Store(int64(elsewhere.partitions))
		default:
			return nil, misunderstood(err)
		}
	}
}

// ResetClock asks the leader of a partition to take its wall clock for calendar time, and
// gives the JSON it answers once that is recorded. Errors are those of Acquire.
func (c *Client) ResetClock(ctx context.Context, n int) (json.RawMessage, error) {
	body, err := c.ask(ctx, actSubject(c.cfg.Cell, lease.VerbReset, n), encodeClockReset())
	if err != nil {
		return nil, err
	}
	if err := told(body); err != nil {
		return nil, misunderstood(err)
	}
	return body, nil
}

// encodeClockReset says that the wall clock is to be taken.
func encodeClockReset() []byte {
	w := &writer{}
	w.object("", func() {
		w.version()
		w.flag("clock", true)
	})
	return w.b
}

// pause writes the pause that refuses.
func (w *writer) pause(p *lease.Pause) {
	w.object("pause", func() {
		w.text("since", time.Unix(0, int64(p.Since)).UTC().Format(time.RFC3339Nano))
		if p.By != "" {
			w.text("by", p.By)
		}
		if p.Reason != "" {
			w.text("reason", p.Reason)
		}
	})
}

func readPause(raw []byte, to *lease.Pause) error {
	return object(raw, func(name string, raw []byte) (bool, error) {
		switch name {
		case "since":
			var text string
			if err := readText(raw, &text); err != nil {
				return true, err
			}
			since, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				return true, fieldError("", "%.40q is no time such as 2027-01-15T08:00:00Z", text)
			}
			to.Since = algo.Instant(since.UnixNano())
		case "by":
			return true, readText(raw, &to.By)
		case "reason":
			return true, readText(raw, &to.Reason)
		default:
			return false, nil
		}
		return true, nil
	}, "since")
}
