package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"ration/lease"
)

// clerkWait is how long a question to a clerk may take.
const clerkWait = 2 * time.Second

// errHandsOver is told to who asks as serving ends.
var errHandsOver = fmt.Errorf("%w: the coordinator hands over; ask again", lease.ErrStopped)

// clerk answers the questions of people about a coordinator, one at a time, until it is
// closed. What is asked its caller has read.
type clerk struct {
	tells  string             // what the answers are, for people
	remedy string             // of an answer that is too large; may be empty
	most   int64              // bytes that an answer may have
	cancel context.CancelFunc // of what is being asked; may be nil

	mu     sync.Mutex // held while something is asked
	closed bool
}

// close waits for the question that is under way. Of a clerk that is nil there is none.
func (c *clerk) close() {
	if c == nil {
		return
	}
	if c.cancel != nil {
		c.cancel()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// answer asks, and gives the JSON of what it is told. A question that the coordinator could
// not answer in time waits for its mirror, as all it does.
func (c *clerk) answer(ctx context.Context, ask func(context.Context) (any, error)) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errHandsOver
	}
	asking, cancel := context.WithTimeout(ctx, clerkWait)
	defer cancel()
	told, err := ask(asking)
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil, errHandsOver
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%w (no answer within %v: %v)", lease.ErrMirrorAway, clerkWait, err)
	default:
		return nil, err
	}
	body, ok := told.([]byte)
	if !ok {
		if body, err = json.Marshal(told); err != nil {
			return nil, fmt.Errorf("%w: %s cannot be written: %v", lease.ErrInternal, c.tells, err)
		}
	}
	if int64(len(body)) > c.most {
		remedy := ""
		if c.remedy != "" {
			remedy = "; " + c.remedy
		}
		return nil, fmt.Errorf("%w: %s has %d bytes, the NATS server takes %d%s", lease.ErrBadRequest, c.tells, len(body), c.most, remedy)
	}
	return body, nil
}
