package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"ration/lease"
)

// statusWait is how long a question for the status may take.
const statusWait = 2 * time.Second

// statusDesk answers questions for a status, one at a time, until it is closed.
type statusDesk struct {
	most   int64 // bytes that an answer may have
	status func(ctx context.Context, key lease.Key) (any, error)
	cancel context.CancelFunc // of what is being asked; may be nil

	mu     sync.Mutex // held while the status is asked for
	closed bool
}

// close waits for the question that is under way. Of a desk that is nil there is none.
func (d *statusDesk) close() {
	if d == nil {
		return
	}
	if d.cancel != nil {
		d.cancel()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

func (d *statusDesk) reply(ctx context.Context, r micro.Request) {
	body, err := d.answer(ctx, r.Data())
	if err != nil {
		code := "500"
		if lease.Code(err) != lease.ErrInternal.Code() {
			code = "400"
		}
		_ = r.Error(code, err.Error(), encodeError(err))
		return
	}
	_ = r.Respond(body)
}

func (d *statusDesk) answer(ctx context.Context, question []byte) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("%w: the coordinator hands over; ask again", lease.ErrStopped)
	}
	key, err := decodeQuestion(question)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	state, err := d.status(ctx, key)
	if err != nil {
		return nil, err
	}
	body, ok := state.([]byte)
	if !ok {
		if body, err = json.Marshal(state); err != nil {
			return nil, fmt.Errorf("%w: its status cannot be written: %v", lease.ErrInternal, err)
		}
	}
	if int64(len(body)) > d.most {
		return nil, fmt.Errorf("%w: the status has %d bytes, the NATS server takes %d; ask for one key",
			lease.ErrBadRequest, len(body), d.most)
	}
	return body, nil
}
