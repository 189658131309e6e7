package bus

import (
	"errors"
	"fmt"

	"ration/lease"
)

// encodeRequests writes many requests of one tenant into one message. They are
// sent together, so their Sent is one.
func encodeRequests(rs []lease.Request) ([]byte, error) {
	w := &writer{b: make([]byte, 0, 64+160*len(rs))}
	if err := checkMany(rs); err != nil {
		return nil, err
	}
	w.object("", func() {
		w.version()
		w.duration("sent", rs[0].Sent)
		w.list("requests", len(rs), func(i int) {
			w.object("", func() { w.request(&rs[i]) })
		})
	})
	return sized(w.done())
}

// checkMany says what cannot be in one message.
func checkMany(rs []lease.Request) error {
	if len(rs) == 0 || len(rs) > MaxRequests {
		return fmt.Errorf("%w: %d requests in a message; send 1 to %d", lease.ErrBadRequest, len(rs), MaxRequests)
	}
	seen := make(map[lease.ID]int, len(rs))
	for i, r := range rs {
		if j, ok := seen[r.ID]; ok {
			return fmt.Errorf("%w: field requests[%d].id: %v is that of requests[%d] too; give each an id of its own", lease.ErrBadRequest, i, r.ID, j)
		}
		seen[r.ID] = i
		if r.Sent != rs[0].Sent {
			return fmt.Errorf("%w: requests of one message that were sent at %v and at %v; give them one Sent", lease.ErrBadRequest, rs[0].Sent, r.Sent)
		}
	}
	return nil
}

// decodeRequests reads what a message asks for: one request, or many together,
// then rs is not nil.
func (h *heard) decodeRequests(body []byte) (one lease.Request, rs []lease.Request, err error) {
	if err := opened(body); err != nil {
		return one, nil, err
	}
	var seen fields
	err = members(body, &seen, func(name string, raw []byte) (bool, error) {
		switch name {
		case "sent":
			return true, readDuration(raw, &one.Sent)
		case "requests":
			rs, err = h.requests(raw)
			return true, err
		}
		return h.request(name, raw, &one)
	})
	if err == nil {
		err = seen.check([]string{"sent"})
	}
	switch {
	case err != nil:
		return one, nil, err
	case !seen.has("requests"):
		return one, nil, seen.check(requestFields)
	}
	for _, name := range append([]string{classField}, requestFields...) {
		if seen.has(name) {
			return one, nil, fieldError(name, "it stands beside requests; put it into each of them")
		}
	}
	for i := range rs {
		rs[i].Sent = one.Sent
	}
	return one, rs, checkMany(rs)
}

func (h *heard) requests(raw []byte) (rs []lease.Request, err error) {
	err = list(raw, MaxRequests, func(raw []byte) error {
		rs = append(rs, lease.Request{})
		r := &rs[len(rs)-1]
		return object(raw, func(name string, raw []byte) (bool, error) { return h.request(name, raw, r) }, requestFields...)
	})
	return rs, err
}

// answers writes the answers of a message with many requests, which are of one
// epoch. One without an outcome is none: a newer copy is answered.
func (w *writer) answers(as []lease.Answer) {
	var epoch lease.Epoch
	w.object("", func() {
		w.version()
		w.list("answers", len(as), func(i int) {
			w.object("", func() {
				if as[i].Outcome == 0 {
					w.failure(lease.ErrSuperseded)
					return
				}
				epoch = as[i].Epoch
				w.answer(&as[i])
			})
		})
		w.epoch(epoch)
	})
}

// decodeAnswers gives the answers, or the error that the coordinator answered. One
// without an outcome says that the copy was superseded.
func decodeAnswers(body []byte) (as []lease.Answer, err error) {
	if err := answered(body); err != nil {
		return nil, err
	}
	var epoch lease.Epoch
	err = object(body, func(name string, raw []byte) (bool, error) {
		switch name {
		case "answers":
			return true, list(raw, MaxRequests, func(raw []byte) error {
				a, err := readOneOfMany(raw)
				as = append(as, a)
				return err
			})
		case "epoch":
			return true, readEpoch(raw, &epoch)
		}
		return false, nil
	}, "answers", "epoch")
	for i := range as {
		as[i].Epoch = epoch
	}
	return as, err
}

func readOneOfMany(raw []byte) (a lease.Answer, err error) {
	failed := told(raw)
	if failure := (*toldError)(nil); errors.As(failed, &failure) && failure.sentinel == lease.ErrSuperseded {
		return a, nil
	}
	if failed != nil {
		return a, failed
	}
	err = object(raw, func(name string, raw []byte) (bool, error) { return readAnswer(name, raw, &a) }, "id", "outcome")
	if err == nil {
		err = complete(raw, a.Outcome)
	}
	return a, err
}
