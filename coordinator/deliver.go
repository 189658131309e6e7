package coordinator

import "ration/lease"

// deliver tells the answers of a recorded turn, and lets who wants to look at the
// ledger. Who asked alone and is not answered goes on waiting; who asked together
// with others is told so. What was granted so long ago that it is hardly of use is taken
// back: that is safe, since nobody was told of it.
func (t *turns) deliver(turn *lease.Turn) {
	late := t.leader.clock.now().Sub(turn.Instant) > t.leader.config.Lease.TokenTTL/2
	if late {
		t.ledger.TakeBack(turn)
	}
	for i := range turn.Answers {
		a := &turn.Answers[i]
		if late && a.Answer.Outcome == lease.Granted {
			a.Answer = lease.Answer{ID: a.Answer.ID, Outcome: lease.Ended}
		}
		if a.Answer.Epoch = turn.Epoch; a.Answer.Outcome == lease.Granted {
			a.Answer.Policy = t.leader.revision.Load()
		}
		t.answer(a.Ticket, a.Answer)
	}
	for i := range turn.Replies {
		r := &turn.Replies[i]
		r.Reply.Epoch = turn.Epoch
		e, _ := t.route(r.Ticket)
		e.reply(r.Reply, nil)
	}
	for _, ticket := range turn.Dropped {
		t.answer(ticket, lease.Answer{})
	}
	t.goOn(turn.Epoch)
	for _, r := range turn.Recalls {
		t.leader.recalls.deliver(r)
	}
	for i := range t.came {
		e := &t.came[i]
		if e.look != nil {
			e.look(turn.Instant, t.ledger)
		}
		switch {
		case e.looked == nil:
		case e.change != nil && t.mirror.away(): // it is not recorded
			e.looked(lease.ErrMirrorAway)
		default:
			e.looked(nil)
		}
	}
	clear(t.came)
	t.came = t.came[:0]
	t.ledger.Done(turn)
}

// route finds where a message of this turn came from.
func (t *turns) route(ticket lease.Ticket) (*envelope, *route) {
	r := &t.from[ticket-t.first]
	return &t.came[r.envelope], r
}

// answer tells one answer, or keeps it until those of its message are told. One
// without an outcome says that the copy was dropped.
func (t *turns) answer(ticket lease.Ticket, a lease.Answer) {
	if ticket < t.first {
		if told, ok := t.waiting[ticket]; ok { // else it is a request of many, told that it waits
			delete(t.waiting, ticket)
			tellOne(told, a)
		}
		return
	}
	e, r := t.route(ticket)
	r.answered = true
	if e.one != nil {
		tellOne(e.one, a)
		return
	}
	e.answers[r.place] = a
}

// goOn keeps the way back of who asked alone and waits, and tells the others what
// became of each.
func (t *turns) goOn(epoch lease.Epoch) {
	for i, r := range t.from {
		e := &t.came[r.envelope]
		switch {
		case r.answered || e.report != nil:
		case e.one != nil:
			t.waiting[t.first+lease.Ticket(i)] = e.one
		default:
			e.answers[r.place] = lease.Answer{ID: e.requests[r.place].ID, Outcome: lease.Waiting, Epoch: epoch}
		}
	}
	for i := range t.came {
		if e := &t.came[i]; e.all != nil {
			for j := range e.unknown { // asked again by itself it is told why
				if e.unknown[j] {
					e.answers[j] = lease.Answer{ID: e.requests[j].ID, Outcome: lease.Waiting, Epoch: epoch}
				}
			}
			e.all(e.answers, nil)
		}
	}
}

func tellOne(told func(lease.Answer, error), a lease.Answer) {
	if a.Outcome == 0 {
		told(lease.Answer{}, lease.ErrSuperseded)
		return
	}
	told(a, nil)
}
