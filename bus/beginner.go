package bus

import (
	"context"
	"sync"

	"ration/lease"
)

// Beginner is a lessor that can be asked without being waited for, so that who
// stands in line costs no goroutine. Each method calls told once, from any
// goroutine; told does not block. Serve asks in this way where it can.
type Beginner interface {
	// Begin is Acquire.
	Begin(r lease.Request, told func(lease.Answer, error))
	// BeginAll asks for the requests of one message, of one tenant, and tells of
	// all at once, in their order. None holds up the others: one that has to wait
	// is answered lease.Waiting, and is asked again by itself. An answer without an
	// outcome says that the copy was superseded.
	BeginAll(rs []lease.Request, told func([]lease.Answer, error))
	// BeginReport is Report.
	BeginReport(r lease.Report, told func(lease.Reply, error))
}

// waited makes a Beginner of a lessor that has to be waited for, with a goroutine
// for each message.
type waited struct {
	lessor lease.Lessor
	ctx    context.Context // the scope of requests under way
	work   *sync.WaitGroup
}

var _ Beginner = waited{}

func (w waited) Begin(r lease.Request, told func(lease.Answer, error)) {
	w.work.Go(func() { told(w.acquire(r)) })
}

// BeginAll lets nobody wait, since the lessor can not say who would.
func (w waited) BeginAll(rs []lease.Request, told func([]lease.Answer, error)) {
	w.work.Go(func() {
		answers := make([]lease.Answer, len(rs))
		for i, r := range rs {
			r.Patience = 0
			a, err := w.acquire(r)
			if err != nil {
				told(nil, err)
				return
			}
			answers[i] = a
		}
		told(answers, nil)
	})
}

func (w waited) BeginReport(r lease.Report, told func(lease.Reply, error)) {
	w.work.Go(func() { told(w.lessor.Report(w.ctx, r)) })
}

// acquire gives a lessor its time: it answers within the patience, and this only
// bounds what a fault could leave behind.
func (w waited) acquire(r lease.Request) (lease.Answer, error) {
	ctx, cancel := context.WithTimeout(w.ctx, min(r.Patience, longest)+slack)
	defer cancel()
	return w.lessor.Acquire(ctx, r)
}
