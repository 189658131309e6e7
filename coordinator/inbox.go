package coordinator

import (
	"slices"
	"sync"

	"ration/algo"
	"ration/lease"
)

// envelope is what the turn loop takes in: a request, all requests of one message or
// a report, with the way back of what is answered, or a question about the ledger, or a
// change of it, or of the policy, that nobody's message brings about.
type envelope struct {
	arrived  algo.Instant
	request  lease.Request
	one      func(lease.Answer, error)
	requests []lease.Request
	all      func([]lease.Answer, error)
	answers  []lease.Answer // gathered for it
	unknown  []bool         // those of requests that are not taken up; nil for none
	report   *lease.Report
	reply    func(lease.Reply, error)
	look     func(now algo.Instant, l *lease.Ledger)
	change   func(l *lease.Ledger)
	about    lease.Key // that the change is about; empty for none
	whole    bool      // the change is of all that the mirror has
	looked   func(error)
	policy   *lease.Policy
	least    uint64
	changed  func(revision uint64, err error)
	over     func() error // says that nobody waits for the change of the policy any more
}

// fail tells whoever waits that there is no answer.
func (e *envelope) fail(err error) {
	switch {
	case e.one != nil:
		e.one(lease.Answer{}, err)
	case e.all != nil:
		e.all(nil, err)
	case e.reply != nil:
		e.reply(lease.Reply{}, err)
	case e.looked != nil:
		e.looked(err)
	case e.changed != nil:
		e.changed(0, err)
	}
}

// inbox gathers what arrives while a turn is taken and recorded. Whoever puts
// never waits, and so bounds itself how much of its own is under way.
type inbox struct {
	mu      sync.Mutex
	arrived []envelope
	closed  bool
	some    chan struct{} // has something while arrived has
}

func newInbox() *inbox { return &inbox{some: make(chan struct{}, 1)} }

// put adds e, unless no more is taken: then e fails with lease.ErrStopped.
func (b *inbox) put(e envelope) {
	b.mu.Lock()
	closed := b.closed
	if !closed {
		b.arrived = append(b.arrived, e)
	}
	first := len(b.arrived) == 1
	b.mu.Unlock()
	switch {
	case closed:
		e.fail(lease.ErrStopped)
	case first:
		b.wake()
	}
}

// wake lets the turn loop look.
func (b *inbox) wake() {
	select {
	case b.some <- struct{}{}:
	default:
	}
}

// refuse takes out the requests that will not wait, and fails them: nothing has become
// of them.
func (b *inbox) refuse(err error) {
	b.mu.Lock()
	var hasty []envelope
	b.arrived = slices.DeleteFunc(b.arrived, func(e envelope) bool {
		no := e.one != nil && e.request.Patience <= 0
		if no {
			hasty = append(hasty, e)
		}
		return no
	})
	b.mu.Unlock()
	for i := range hasty {
		hasty[i].fail(err)
	}
}

// take gives all that has arrived, and keeps the room of before for what comes.
func (b *inbox) take(before []envelope) []envelope {
	clear(before)
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.arrived
	b.arrived = before[:0]
	return taken
}

// close takes no more, and gives what has arrived.
func (b *inbox) close() []envelope {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.arrived
}
