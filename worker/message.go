package worker

import (
	"context"
	"time"

	"ration/lease"
)

// told is what one lane has in a message.
type told struct {
	lane    *lane
	counts  []lease.Count
	givenUp []lease.GivenUp
}

// pack divides what lanes tell into messages of at most so many counts.
func pack(parts []told, most int) (messages [][]told) {
	var message []told
	room := most
	for _, part := range parts {
		for len(part.counts)+len(part.givenUp) > 0 {
			n := min(room, len(part.counts))
			m := min(room-n, len(part.givenUp))
			message = append(message, told{part.lane, part.counts[:n], part.givenUp[:m]})
			part.counts, part.givenUp = part.counts[n:], part.givenUp[m:]
			if room -= n + m; room == 0 {
				messages, message, room = append(messages, message), nil, most
			}
		}
	}
	if len(message) > 0 {
		messages = append(messages, message)
	}
	return messages
}

// tell sends one message and hands each lane what the reply says of it.
func (t *tenant) tell(ctx context.Context, r lease.Report, message []told) error {
	partOf := map[lease.ID]int{}
	for i, part := range message {
		r.Counts = append(r.Counts, part.counts...)
		r.GivenUp = append(r.GivenUp, part.givenUp...)
		for _, c := range part.counts {
			partOf[c.ID] = i
		}
		for _, g := range part.givenUp {
			partOf[g.ID] = i
		}
	}
	ctx, cancel := context.WithTimeout(ctx, t.worker.cfg.SendTimeout)
	defer cancel()
	reply, err := t.worker.lessor.Report(ctx, r)
	replies := divide(reply, partOf, len(message))
	for i, part := range message {
		own := lease.Report{Holder: r.Holder, Sent: r.Sent, Counts: part.counts, GivenUp: part.givenUp}
		part.lane.do(func(now time.Duration) {
			if err != nil {
				part.lane.pool.Unreported(now, own)
				return
			}
			part.lane.pool.Replied(now, own, replies[i])
		})
	}
	return err
}

// divide gives each part of a message its share of the reply.
func divide(reply lease.Reply, partOf map[lease.ID]int, n int) []lease.Reply {
	own := make([]lease.Reply, n)
	for _, r := range reply.Renewed {
		if i, ok := partOf[r.ID]; ok {
			own[i].Renewed = append(own[i].Renewed, r)
		}
	}
	for _, id := range reply.Ended {
		if i, ok := partOf[id]; ok {
			own[i].Ended = append(own[i].Ended, id)
		}
	}
	for _, id := range reply.Acknowledged {
		if i, ok := partOf[id]; ok {
			own[i].Acknowledged = append(own[i].Acknowledged, id)
		}
	}
	return own
}
