package coordinator

import (
	"slices"

	"ration/lease"
)

// withhold takes out what is about keys that the ledger does not know and the mirror does
// not tell, and fails what is about nothing else: the rest goes on from what is known.
func (t *turns) withhold() {
	came := t.came
	t.came = t.came[:0]
	for _, e := range came {
		if left := t.known(&e); left {
			t.came = append(t.came, e)
			continue
		}
		e.fail(lease.ErrMirrorAway)
	}
	clear(came[len(t.came):])
	t.number()
}

// known leaves what is about known keys in e, and says whether that is anything.
func (t *turns) known(e *envelope) bool {
	switch {
	case e.one != nil:
		return t.knows(e.request.Keys)
	case e.all != nil:
		return t.knownRequests(e)
	case e.report != nil:
		return t.knownCounts(e)
	}
	return true
}

// knows says that the ledger has all that limits keys.
func (t *turns) knows(keys []lease.Key) bool {
	return len(t.ledger.Unloaded([]lease.Message{{Request: &lease.Request{Keys: keys}}})) == 0
}

// knownRequests marks the requests that are not taken up. They are told that they wait: asked
// again by itself each is told why.
func (t *turns) knownRequests(e *envelope) bool {
	e.unknown = make([]bool, len(e.requests))
	for i := range e.requests {
		e.unknown[i] = !t.knows(e.requests[i].Keys)
	}
	return slices.Contains(e.unknown, false)
}

// knownCounts leaves the counts and given-up ids that are taken up. A holder takes a reply for
// one to all that it has told, so only a heartbeat has one, without which slots would be lost:
// spends that are not taken up count as spent at their lease's expiry, which is later. Anything
// else is failed once the rest is taken up, and so told again; as is a heartbeat that tells of
// an overspend, which would never be charged.
func (t *turns) knownCounts(e *envelope) bool {
	r := *e.report
	again := !r.Heartbeat
	r.Counts, r.GivenUp = nil, nil
	for _, c := range e.report.Counts {
		if t.knows(c.Keys) {
			r.Counts = append(r.Counts, c)
			continue
		}
		again = again || c.Over > 0 || len(c.OverUnits) > 0
	}
	for _, g := range e.report.GivenUp {
		if t.knows(g.Keys) {
			r.GivenUp = append(r.GivenUp, g)
		} // else it is not acknowledged, and named again
	}
	left := len(r.Counts) + len(r.GivenUp)
	if left == len(e.report.Counts)+len(e.report.GivenUp) {
		return true
	}
	r.Goodbye = false // the counts are not final for all
	if e.report = &r; again {
		told := e.reply
		e.reply = func(_ lease.Reply, err error) {
			if err == nil {
				err = lease.ErrMirrorAway
			}
			told(lease.Reply{}, err)
		}
	}
	return left > 0
}
