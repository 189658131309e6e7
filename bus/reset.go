package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// resetSubject is where the leader of a partition is asked to take its wall clock.
func resetSubject(cell string, n int) string {
	return root + cell + ".admin.reset." + strconv.Itoa(n)
}

// answerResets serves questions to take the wall clock, one at a time.
func (s *serving) answerResets(ctx context.Context) error {
	if s.cfg.ResetClock == nil {
		return nil
	}
	s.resets.clerk = &clerk{tells: "the reset", remedy: "give the coordinator a shorter name", most: s.nc.MaxPayload()}
	subject := resetSubject(s.cfg.Cell, s.cfg.Partition)
	s.unwatch = append(s.unwatch, s.onForbidden(subject))
	sub, err := s.nc.Subscribe(subject, func(m *nats.Msg) {
		err := decodeReset(m.Data)
		var body []byte
		if err == nil {
			body, err = s.resets.clerk.answer(ctx, s.cfg.ResetClock)
		}
		if err != nil {
			body = encodeError(err)
		}
		_ = m.Respond(body) // who has no answer asks again: once more changes nothing
	})
	s.resets.sub = sub
	return err
}

// resets is what answers questions to take the wall clock.
type resets struct {
	sub   *nats.Subscription
	clerk *clerk
}

func (r *resets) close() {
	if r.sub != nil {
		_ = r.sub.Unsubscribe() // fails only where the connection has ended it
	}
	r.clerk.close()
}

// encodeReset and decodeReset: that the wall clock is to be taken. It says so, since an
// empty message is soon sent.
func encodeReset() []byte {
	w := &writer{}
	w.object("", func() {
		w.version()
		w.flag("clock", true)
	})
	return w.b
}

func decodeReset(body []byte) error {
	if err := opened(body); err != nil {
		return err
	}
	clock := false
	err := object(body, func(name string, raw []byte) (bool, error) {
		if name != "clock" {
			return false, nil
		}
		return true, readFlag(raw, &clock)
	}, "clock")
	if err == nil && !clock {
		err = fmt.Errorf("%w: it resets nothing; clock has to be true", lease.ErrBadRequest)
	}
	return err
}

// ResetClock asks the leader of a partition to take its wall clock for calendar time, and
// gives the JSON it answers once that is recorded. Errors are those of Acquire.
func (c *Client) ResetClock(ctx context.Context, n int) (json.RawMessage, error) {
	body, err := c.ask(ctx, resetSubject(c.cfg.Cell, n), encodeReset())
	if err != nil {
		return nil, err
	}
	if err := told(body); err != nil {
		return nil, misunderstood(err)
	}
	return body, nil
}
