package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// Policy is the text of a policy that is to come into force.
type Policy struct {
	// File is its name, for errors.
	File string
	Text string
	// Least is the least revision that it is given, 0 for any.
	Least uint64
}

// mostLeast is the highest revision that may be asked for: as many may follow it.
const mostLeast = maxNumber / 2

// applySubject is where the leader of a partition is given a policy.
func applySubject(cell string, n int) string {
	return root + cell + ".admin.apply." + strconv.Itoa(n)
}

// applies is what takes policies.
type applies struct {
	sub   *nats.Subscription
	clerk *clerk
}

func (a *applies) close() {
	if a.sub != nil {
		_ = a.sub.Unsubscribe() // fails only where the connection has ended it
	}
	a.clerk.close()
}

// takePolicies serves policies that are to come into force, one at a time.
func (s *serving) takePolicies(ctx context.Context) error {
	if s.cfg.Apply == nil {
		return nil
	}
	s.applies.clerk = &clerk{tells: "the policy's revision", remedy: "give the coordinator a shorter name", most: s.nc.MaxPayload()}
	subject := applySubject(s.cfg.Cell, s.cfg.Partition)
	s.unwatch = append(s.unwatch, s.onForbidden(subject))
	sub, err := s.nc.Subscribe(subject, func(m *nats.Msg) {
		p, err := decodePolicy(m.Data)
		var body []byte
		if err == nil {
			body, err = s.applies.clerk.answer(ctx, func(ctx context.Context) (any, error) { return s.cfg.Apply(ctx, p) })
		}
		if err != nil {
			body = encodeError(err)
		}
		_ = m.Respond(body) // who has no answer asks again: the same policy changes nothing
	})
	s.applies.sub = sub
	return err
}

func encodePolicy(p Policy) ([]byte, error) {
	w := &writer{}
	w.object("", func() {
		w.version()
		w.text("file", strings.ToValidUTF8(p.File, "?"))
		w.text("text", p.Text)
		if p.Least > 0 {
			w.number("least", int64(p.Least))
		}
	})
	return w.done()
}

func decodePolicy(body []byte) (p Policy, err error) {
	if err := document(body); err != nil {
		return p, err
	}
	if err := checkFormat(body); err != nil {
		return p, err
	}
	var least int64
	err = object(body, func(name string, raw []byte) (bool, error) {
		switch name {
		case "file":
			return true, readText(raw, &p.File)
		case "text":
			return true, readText(raw, &p.Text)
		case "least":
			return true, readNumber(raw, &least)
		}
		return false, nil
	}, "text")
	if err == nil && least > mostLeast {
		err = fieldError("least", "%d is above %d, and no revision that follows it could be told", least, mostLeast)
	}
	p.Least = uint64(least)
	return p, err
}

// Apply gives the leader of a partition a policy, and gives the JSON it answers once that
// is in force and recorded. A policy that is wrong anywhere is lease.ErrBadRequest, with
// its places; other errors are those of Acquire.
func (c *Client) Apply(ctx context.Context, n int, p Policy) (json.RawMessage, error) {
	body, err := encodePolicy(p)
	if err != nil {
		return nil, err
	}
	if most := c.nc.MaxPayload(); most > 0 && int64(len(body)) > most {
		return nil, fmt.Errorf("%w: the policy has %d bytes as a message, the NATS server takes %d; shorten it, or raise max_payload there", lease.ErrBadRequest, len(body), most)
	}
	answer, err := c.ask(ctx, applySubject(c.cfg.Cell, n), body)
	if err != nil {
		return nil, err
	}
	if err := told(answer); err != nil {
		return nil, misunderstood(err)
	}
	return answer, nil
}
