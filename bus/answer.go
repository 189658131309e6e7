package bus

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// answer is what a question is answered: one of one, all and reply, or err.
type answer struct {
	to    *question
	one   lease.Answer
	all   []lease.Answer
	reply lease.Reply
	err   error
}

// answer hands on what is to be sent, unless the question was answered already.
func (s *serving) answer(a answer) {
	if s.asking.answer(a.to) {
		s.answers.put(a)
	}
}

// tell sends answers until no more come.
func (s *serving) tell() {
	w := &writer{}
	for as, ok := s.answers.take(nil); ok; as, ok = s.answers.take(as) {
		for i := range as {
			s.send(w, &as[i])
		}
		s.asking.leave(as)
	}
}

func (s *serving) send(w *writer, a *answer) {
	if a.to.reply == "" {
		return
	}
	w.b, w.err = w.b[:0], nil
	if a.err == nil {
		a.err = a.write(w)
	}
	if a.err != nil {
		s.failed(a.to.subject, a.err)
		w.b = append(w.b[:0], encodeError(a.err)...)
	}
	err := s.nc.Publish(a.to.reply, w.b)
	if errors.Is(err, nats.ErrMaxPayload) {
		err = fmt.Errorf("%w: the answer has %d bytes, the NATS server takes %d; ask for less at once",
			lease.ErrBadRequest, len(w.b), s.nc.MaxPayload())
		_ = s.nc.Publish(a.to.reply, encodeError(err))
	} // else it fails only where the connection does, and then the asker asks again
}

// write turns an answer that cannot be written into a fault of this side.
func (a *answer) write(w *writer) error {
	switch {
	case a.to.desk.verb == verbReport:
		w.reply(a.reply)
	case a.to.together:
		w.answers(a.all)
	default:
		w.alone(&a.one)
	}
	if w.err != nil {
		return fmt.Errorf("%w: its answer cannot be written: %v", lease.ErrInternal, w.err)
	}
	return nil
}

// refuse answers a message that was not let in.
func (s *serving) refuse(m *nats.Msg, err error) {
	s.failed(m.Subject, err)
	if m.Reply != "" {
		_ = m.Respond(encodeError(err)) // fails only where the connection does
	}
}

func (s *serving) failed(subject string, err error) {
	s.count.errors.Add(1)
	if lease.Code(err) == lease.ErrInternal.Code() {
		s.cfg.Log.Error("a request failed", "subject", subject, "error", err)
	}
}
