package bus

import (
	"sync"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// question is a message under way, from its arrival until its answer is sent.
type question struct {
	desk           *desk
	partition      int
	token          string
	subject, reply string
	data           []byte // until it is read
	together       bool   // it asks for many, which are answered together
	places         int
	guests         *guests
	keys           []lease.Key // at which it sits

	prev, next *question // in asking, until it is answered
	answered   bool
	abandoned  bool // answered before the lessor has; it may yet
}

// kilobyte is how much of a message takes one place.
const kilobyte = 1 << 10

// asking is the questions that are not answered yet, and the places of all whose
// answer is not sent yet.
type asking struct {
	mu     sync.Mutex
	first  *question
	count  int
	closed bool
	none   chan struct{} // closed when there is none and none can come
	spare  []*question   // to be used again
}

// spareMost bounds the questions kept to be used again.
const spareMost = 1024

func newAsking() *asking { return &asking{none: make(chan struct{})} }

// enter lets a message in as a question, or says why not.
func (a *asking) enter(d *desk, partition int, token string, m *nats.Msg) (*question, error) {
	places := 1 + len(m.Data)/kilobyte
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, lease.ErrStopped
	}
	g, err := d.places.enter(token, places)
	if err != nil {
		return nil, err
	}
	q := a.room()
	*q = question{
		desk: d, partition: partition, token: token,
		subject: m.Subject, reply: m.Reply, data: m.Data,
		places: places, guests: g, next: a.first,
	}
	if q.next != nil {
		q.next.prev = q
	}
	a.first = q
	a.count++
	return q, nil
}

// room gives a question that nobody knows of.
func (a *asking) room() *question {
	last := len(a.spare) - 1
	if last < 0 {
		return &question{}
	}
	q := a.spare[last]
	a.spare = a.spare[:last]
	return q
}

// sit gives a question places at its keys too.
func (a *asking) sit(q *question, keys []lease.Key) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := q.desk.places.sit(q.guests, keys, q.places); err != nil {
		return err
	}
	q.keys = keys
	return nil
}

// answer says whether this is the first answer to q.
func (a *asking) answer(q *question) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.take(q)
}

func (a *asking) take(q *question) bool {
	if q.answered {
		return false
	}
	q.answered = true
	if q.prev != nil {
		q.prev.next = q.next
	} else {
		a.first = q.next
	}
	if q.next != nil {
		q.next.prev = q.prev
	}
	q.prev, q.next = nil, nil
	a.count--
	a.end()
	return true
}

// leave gives back the places of answers that were sent, and the questions.
func (a *asking) leave(sent []answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range sent {
		q := sent[i].to
		q.desk.places.leave(q.guests, q.keys, q.places)
		if !q.abandoned && len(a.spare) < spareMost {
			*q = question{answered: true}
			a.spare = append(a.spare, q)
		}
	}
}

// close says that no more questions come.
func (a *asking) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.end()
}

func (a *asking) end() {
	if a.closed && a.first == nil {
		close(a.none)
	}
}

// rest takes all that are not answered yet.
func (a *asking) rest() (left []*question) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.first != nil {
		q := a.first
		a.take(q)
		q.abandoned = true
		left = append(left, q)
	}
	return left
}

// under says how many questions have no answer yet.
func (a *asking) under() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count
}
